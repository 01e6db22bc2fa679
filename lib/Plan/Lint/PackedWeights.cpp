//===- PackedWeights.cpp - fused weights with a plain style ---------------===//
//
// A fused query-key-value or gate-up projection is one weight whose output is
// cut into pieces. Split in plain blocks, a rank's block lies across the
// pieces.
//
//===----------------------------------------------------------------------===//

#include "Flow.h"
#include "Lint.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

class PackedWeightCheck final : public FlowCheck {
public:
  explicit PackedWeightCheck(FlowContext &context) : context(context) {}

  void visitSplit(OpOperand &operand, const KnownLayout &known,
                  StringRef module) override {
    auto slice = dyn_cast<nn::SliceOp>(operand.getOwner());
    Value fused = operand.get();
    if (!slice || !known.origin ||
        static_cast<int64_t>(slice.getDim()) != known.placement->dim ||
        !seen.insert(fused).second)
      return;
    std::string pieces = listPieces(fused, known.placement->dim);
    int64_t bytes = getReceivedBytes(*known.placement, Placement::replicate(),
                                     fused.getType(), context.getGroup().size);
    context.add(
        {"packed-weight", known.origin->loc,
         "'" + module.str() + "' cuts a dimension that " +
             known.origin->argument + " splits in plain blocks into pieces" +
             (pieces.empty() ? "" : " of " + pieces) +
             ": a rank's block isn't its part of each piece",
         "each rank receives " + printBytes(bytes),
         pieces.empty()
             ? "write style: packed_colwise with the pieces as segments"
             : "write {style: packed_colwise, segments: [" + pieces + "]}"});
  }

private:
  /// "64, 32, 32" when the slices of `fused` cut all of `dim` into pieces;
  /// empty when they do something else.
  static std::string listPieces(Value fused, int64_t dim) {
    std::map<int64_t, int64_t> sizeByStart;
    for (Operation *user : fused.getUsers())
      if (auto slice = dyn_cast<nn::SliceOp>(user))
        if (static_cast<int64_t>(slice.getDim()) == dim && slice.getStep() == 1)
          sizeByStart[slice.getStart()] = slice.getType().getDimSize(dim);
    std::string pieces;
    int64_t end = 0;
    for (auto [start, size] : sizeByStart) {
      if (start != end)
        return "";
      end += size;
      pieces += (pieces.empty() ? "" : ", ") + std::to_string(size);
    }
    auto type = cast<RankedTensorType>(fused.getType());
    return end == type.getDimSize(dim) ? pieces : "";
  }

  FlowContext &context;
  llvm::DenseSet<Value> seen;
};

} // namespace

std::unique_ptr<FlowCheck> plan::createPackedWeightCheck(FlowContext &context) {
  return std::make_unique<PackedWeightCheck>(context);
}
