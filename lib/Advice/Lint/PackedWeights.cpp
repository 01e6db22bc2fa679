//===- PackedWeights.cpp - Fused weights that are split wrongly -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fused query-key-value or gate-up projection is one weight whose output is
// cut into pieces. If the weight is split in plain blocks, or in segments that
// aren't the pieces, a rank's block isn't its part of each piece.
//
//===----------------------------------------------------------------------===//

#include "PlacementFlow.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

class PackedWeightCheck final : public FlowCheck {
public:
  explicit PackedWeightCheck(FlowContext &context) : context(context) {}

  void visitShard(OpOperand &operand, const KnownLayout &known,
                  StringRef module) override {
    Placement placement = *known.getPlacement();
    if (!known.origin || context.getGroup().size == 1)
      return;
    SmallVector<int64_t> segments =
        placement.getSegments(cast<RankedTensorType>(operand.get().getType())
                                  .getDimSize(placement.dim));
    Pieces pieces = getPieces(operand, placement.dim);
    // If plain blocks are reshaped, the check of heads says more.
    bool isSlice = isa<nn::SliceOp>(operand.getOwner());
    if (pieces.sizes.empty() || (!isSlice && segments.size() < 2) ||
        isMadeOf(pieces.sizes, segments) || !seen.insert(operand.get()).second)
      return;
    int64_t bytes = getReceivedBytes(
        Placement::shard(placement.dim), Placement::replicate(),
        operand.get().getType(), context.getGroup().size);
    // A plan counts the elements of the tensor that it places, of which the
    // operand may have only the heads.
    int64_t size = cast<RankedTensorType>(operand.get().getType())
                       .getDimSize(placement.dim);
    int64_t placed = known.originType.getDimSize(known.origin->placement.dim);
    if (placed % size != 0)
      return;
    auto toTexts = [&](ArrayRef<int64_t> sizes) {
      return llvm::join(llvm::map_range(sizes,
                                        [&](int64_t piece) {
                                          return std::to_string(piece * placed /
                                                                size);
                                        }),
                        ", ");
    };
    context.add(
        {"packed-weight", known.origin->loc,
         describeModule(module) + " cuts a dimension that " +
             known.origin->argument + " splits in " +
             (segments.size() < 2 ? "plain blocks"
                                  : "segments of " + toTexts(segments)) +
             " into pieces" +
             (pieces.areAll ? " of " + toTexts(pieces.sizes) : "") +
             ": a rank's block isn't its part of each piece",
         "each rank receives " + printBytes(bytes),
         pieces.areAll
             ? "write {style: packed_colwise, segments: [" +
                   toTexts(pieces.sizes) + "]}"
             : "ask for another output layout here, such as Replicate"});
  }

private:
  /// The pieces that slices cut a dimension into.
  struct Pieces {
    /// In elements, from the first piece on. Empty without a slice.
    SmallVector<int64_t> sizes;
    /// Whether there is a slice for each of them.
    bool areAll = true;
  };

  /// The pieces that slices of `fused` cut `dim` into, `minor` elements for
  /// each of its indices.
  static Pieces getSlices(Value fused, int64_t dim, int64_t minor) {
    // The beginning and the end of each slice.
    std::map<int64_t, int64_t> endByStart;
    for (Operation *user : fused.getUsers())
      if (auto slice = dyn_cast<nn::SliceOp>(user))
        if (static_cast<int64_t>(slice.getDim()) == dim && slice.getStep() == 1)
          endByStart[slice.getStart()] =
              slice.getStart() + slice.getType().getDimSize(dim);
    Pieces pieces;
    if (endByStart.empty())
      return pieces;
    int64_t end = 0;
    auto addGap = [&](int64_t next) {
      if (next == end)
        return;
      pieces.sizes.push_back((next - end) * minor);
      pieces.areAll = false;
    };
    for (auto [start, next] : endByStart) {
      pieces.areAll &= start >= end;
      if (start > end)
        addGap(start);
      if (next > std::max(start, end))
        pieces.sizes.push_back((next - std::max(start, end)) * minor);
      end = std::max(end, next);
    }
    addGap(cast<RankedTensorType>(fused.getType()).getDimSize(dim));
    return pieces;
  }

  /// The pieces that `dim` of the operand's value is cut into, by slices or by
  /// a reshape whose major part is sliced.
  static Pieces getPieces(OpOperand &operand, int64_t dim) {
    if (auto slice = dyn_cast<nn::SliceOp>(operand.getOwner())) {
      if (static_cast<int64_t>(slice.getDim()) != dim)
        return {};
      return getSlices(operand.get(), dim, 1);
    }
    auto op = dyn_cast<ShardingRuleOpInterface>(operand.getOwner());
    if (!op)
      return {};
    // In a reshape, the pieces are taken from the dimension's major part.
    ShardingRule rule = op.getShardingRule();
    const DimFactors &factors = rule.operands[operand.getOperandNumber()][dim];
    if (factors.size() < 2)
      return {};
    int64_t minor =
        cast<RankedTensorType>(operand.get().getType()).getDimSize(dim) /
        rule.factors[factors.front()].size;
    for (auto [result, tensor] : llvm::zip(op->getResults(), rule.results))
      for (auto [resultDim, dimFactors] : llvm::enumerate(tensor))
        if (dimFactors == DimFactors{factors.front()})
          if (Pieces pieces = getSlices(result, resultDim, minor);
              !pieces.sizes.empty())
            return pieces;
    return {};
  }

  /// Whether each piece consists of whole segments.
  static bool isMadeOf(ArrayRef<int64_t> pieces, ArrayRef<int64_t> segments) {
    llvm::DenseSet<int64_t> ends;
    int64_t end = 0;
    for (int64_t segment : segments)
      ends.insert(end += segment);
    end = 0;
    return llvm::all_of(
        pieces, [&](int64_t piece) { return ends.contains(end += piece); });
  }

  FlowContext &context;
  llvm::DenseSet<Value> seen;
};

} // namespace

std::unique_ptr<FlowCheck> plan::createPackedWeightCheck(FlowContext &context) {
  return std::make_unique<PackedWeightCheck>(context);
}
