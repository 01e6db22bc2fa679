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
    SmallVector<int64_t> pieces = getPieces(operand, placement.dim);
    // If plain blocks are reshaped, the check of heads says more.
    bool isSlice = isa<nn::SliceOp>(operand.getOwner());
    if (pieces.empty() || (!isSlice && segments.size() < 2) ||
        isMadeOf(pieces, segments) || !seen.insert(operand.get()).second)
      return;
    int64_t bytes = getReceivedBytes(
        Placement::shard(placement.dim), Placement::replicate(),
        operand.get().getType(), context.getGroup().size);
    bool isCut = !isSlice || isAll(pieces, placement.dim, operand.get());
    context.add(
        {"packed-weight", known.origin->loc,
         describeModule(module) + " cuts a dimension that " +
             known.origin->argument + " splits in " +
             (segments.size() < 2
                  ? "plain blocks"
                  : "segments of " + llvm::join(toTexts(segments), ", ")) +
             " into pieces" +
             (isCut ? " of " + llvm::join(toTexts(pieces), ", ") : "") +
             ": a rank's block isn't its part of each piece",
         "each rank receives " + printBytes(bytes),
         isCut ? "write {style: packed_colwise, segments: [" +
                     llvm::join(toTexts(pieces), ", ") + "]}"
               : "ask for another output layout here, such as Replicate"});
  }

private:
  static SmallVector<std::string> toTexts(ArrayRef<int64_t> sizes) {
    return llvm::map_to_vector(
        sizes, [](int64_t size) { return std::to_string(size); });
  }

  /// The sizes of the pieces that `dim` of the operand's value is cut into, by
  /// slices or by a reshape whose major part is used piece by piece; empty if
  /// the operand's op doesn't cut it.
  static SmallVector<int64_t> getPieces(OpOperand &operand, int64_t dim) {
    Value fused = operand.get();
    auto type = cast<RankedTensorType>(fused.getType());
    SmallVector<int64_t> pieces;
    if (auto slice = dyn_cast<nn::SliceOp>(operand.getOwner())) {
      if (static_cast<int64_t>(slice.getDim()) != dim)
        return {};
      // The beginning and the end of each piece.
      std::map<int64_t, int64_t> endByStart;
      for (Operation *user : fused.getUsers())
        if (auto other = dyn_cast<nn::SliceOp>(user))
          if (static_cast<int64_t>(other.getDim()) == dim &&
              other.getStep() == 1)
            endByStart[other.getStart()] =
                other.getStart() + other.getType().getDimSize(dim);
      int64_t end = 0;
      for (auto [start, next] : endByStart) {
        if (start > end)
          pieces.push_back(start - end);
        if (next > std::max(start, end))
          pieces.push_back(next - std::max(start, end));
        end = std::max(end, next);
      }
      if (end < type.getDimSize(dim))
        pieces.push_back(type.getDimSize(dim) - end);
      return pieces;
    }
    auto op = dyn_cast<ShardingRuleOpInterface>(operand.getOwner());
    if (!op)
      return {};
    // In a reshape, the pieces are taken from the dimension's major part.
    ShardingRule rule = op.getShardingRule();
    const DimFactors &factors = rule.operands[operand.getOperandNumber()][dim];
    if (factors.size() < 2)
      return {};
    int64_t count = rule.factors[factors.front()].size;
    for (auto [result, tensor] : llvm::zip(op->getResults(), rule.results))
      for (auto [resultDim, dimFactors] : llvm::enumerate(tensor))
        if (dimFactors == DimFactors{factors.front()} &&
            llvm::any_of(result.getUsers(), [&](Operation *user) {
              auto slice = dyn_cast<nn::SliceOp>(user);
              return slice && slice.getDim() == resultDim;
            }))
          return SmallVector<int64_t>(count, type.getDimSize(dim) / count);
    return {};
  }

  /// Whether slices give all pieces.
  static bool isAll(ArrayRef<int64_t> pieces, int64_t dim, Value fused) {
    unsigned found = 0;
    int64_t start = 0;
    for (int64_t piece : pieces) {
      found += llvm::any_of(fused.getUsers(), [&](Operation *user) {
        auto slice = dyn_cast<nn::SliceOp>(user);
        return slice && static_cast<int64_t>(slice.getDim()) == dim &&
               slice.getStep() == 1 &&
               static_cast<int64_t>(slice.getStart()) == start &&
               slice.getType().getDimSize(dim) == piece;
      });
      start += piece;
    }
    return found == pieces.size();
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
