//===- Heads.cpp - heads that ranks don't divide --------------------------===//
//
// A projection's columns are split, and then taken apart into heads: a rank
// must hold whole heads, or they have to be gathered first.
//
//===----------------------------------------------------------------------===//

#include "Flow.h"
#include "Lint.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

class HeadCheck final : public FlowCheck {
public:
  explicit HeadCheck(FlowContext &context) : context(context) {}

  void visitMajorPart(OpOperand &operand, const KnownLayout &known,
                      int64_t majorSize, StringRef module) override {
    if (!known.origin)
      return;
    const MeshGroup &group = context.getGroup();
    auto type = cast<RankedTensorType>(operand.get().getType());
    int64_t size = type.getDimSize(known.placement->dim);
    int64_t bytes = getReceivedBytes(*known.placement, Placement::replicate(),
                                     type, group.size);
    context.add(
        {"heads", known.origin->loc,
         "'" + module.str() + "' takes a dimension of size " +
             std::to_string(size) + " apart into " + std::to_string(majorSize) +
             " × " + std::to_string(size / majorSize) + ", and " +
             std::to_string(majorSize) + " isn't divisible by " +
             group.describe() + ", which splits it by " +
             known.origin->argument,
         "where no uneven split of the parts is possible, each rank receives " +
             printBytes(bytes),
         "sizes of the mesh dimension that divide " +
             std::to_string(majorSize) + " are " + listDivisors(majorSize) +
             "; a fused weight of " + std::to_string(majorSize) +
             " parts needs packed_colwise with blocks: " +
             std::to_string(majorSize)});
  }

private:
  FlowContext &context;
};

} // namespace

std::unique_ptr<FlowCheck> plan::createHeadCheck(FlowContext &context) {
  return std::make_unique<HeadCheck>(context);
}
