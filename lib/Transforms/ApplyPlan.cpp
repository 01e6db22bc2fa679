//===- ApplyPlan.cpp - annotate a model with a parallelize plan -----------===//

#include "mlir/IR/Builders.h"
#include "tp/Plan/Plan.h"
#include "tp/Transforms/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_APPLYPLAN
#include "tp/Transforms/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

class ApplyPlanPass final : public tp::impl::ApplyPlanBase<ApplyPlanPass> {
public:
  using ApplyPlanBase::ApplyPlanBase;

  void runOnOperation() override {
    ModuleOp model = getOperation();
    if (planPath.empty()) {
      emitError(model.getLoc(), "tp-apply-plan needs the option plan=FILE");
      return signalPassFailure();
    }
    for (auto mesh : model.getOps<MeshOp>()) {
      InFlightDiagnostic error =
          emitError(model.getLoc(), "the model has been given a plan before");
      error.attachNote(mesh.getLoc()) << "its mesh is declared here";
      return signalPassFailure();
    }
    FailureOr<plan::CheckedPlan> checked = plan::loadPlan(planPath, model);
    if (failed(checked))
      return signalPassFailure();
    annotate(*checked, model);
  }

private:
  void annotate(const plan::CheckedPlan &checked, ModuleOp model) {
    auto mesh = FlatSymbolRefAttr::get(insertMesh(checked.mesh, model));
    model.walk([&](nn::ParameterOp parameter) {
      auto it = checked.parameters.find(parameter.getFqnAttr());
      if (it == checked.parameters.end())
        return;
      parameter->setAttr(kShardingAttr,
                         plan::getSharding(it->second, mesh, checked.axis,
                                           parameter.getType().getRank()));
    });
    numParameters += checked.parameters.size();

    for (const plan::ModuleLayouts &layouts : checked.modules) {
      nn::ModuleOp module = layouts.module;
      OpBuilder builder(module);
      auto redistribute = [&](Value value, const plan::LayoutStep &step) {
        int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
        ++numRedistributions;
        return RedistributeOp::create(
            builder, module.getLoc(), value.getType(), value,
            plan::getSharding(step.placement, mesh, checked.axis, rank),
            module.getFqnAttr(), builder.getStringAttr(step.reason));
      };
      for (auto [index, steps] : llvm::enumerate(layouts.inputs)) {
        OpOperand &operand = module.getInputsMutable()[index];
        for (const plan::LayoutStep &step : steps)
          operand.set(redistribute(operand.get(), step));
      }
      builder.setInsertionPointAfter(module);
      for (auto [result, steps] :
           llvm::zip(module.getResults(), layouts.outputs)) {
        Value value = result;
        for (const plan::LayoutStep &step : steps) {
          RedistributeOp op = redistribute(value, step);
          value.replaceAllUsesExcept(op, op);
          value = op;
        }
      }
    }
  }

  /// Declares the mesh in front of everything else, and returns its symbol.
  static StringAttr insertMesh(ArrayRef<plan::MeshAxis> axes, ModuleOp model) {
    OpBuilder builder = OpBuilder::atBlockBegin(model.getBody());
    SmallVector<StringRef> names;
    SmallVector<int64_t> sizes;
    for (const plan::MeshAxis &axis : axes) {
      names.push_back(axis.name);
      sizes.push_back(axis.size);
    }
    auto mesh = MeshOp::create(builder, model.getLoc(), "mesh",
                               builder.getStrArrayAttr(names), sizes,
                               /*devices=*/DenseI64ArrayAttr());
    return SymbolTable(model).insert(mesh);
  }
};

} // namespace
