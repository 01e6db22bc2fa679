//===- DataParallel.cpp - the batch over mesh dimensions ------------------===//
//
// Data parallelism is placements, as tensor parallelism is. That gradients are
// reduced follows: with the batch split, they are Partial.
//
//===----------------------------------------------------------------------===//

#include "DataParallel.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Plan/Style.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

class DataParallel {
public:
  DataParallel(const plan::PlanFile &plan, MeshOp mesh)
      : plan(plan), mesh(mesh),
        meshRef(FlatSymbolRefAttr::get(mesh.getSymNameAttr())) {}

  void apply(ModuleOp model) {
    for (auto function : model.getOps<FunctionOpInterface>())
      if (!function.isExternal())
        splitInputs(function);
    model.walk([&](nn::ParameterOp parameter) { placeParameter(parameter); });
  }

private:
  AxisRefAttr getAxis(const plan::DataAxis &data) {
    return AxisRefAttr::get(mesh.getContext(), plan.mesh[data.axis].name);
  }

  /// `sharding`, or replicated, with `axes` as the minor ones of dimension 0.
  ShardingAttr addToFirst(ShardingAttr sharding, RankedTensorType type,
                          ArrayRef<AxisRefAttr> axes) {
    MLIRContext *context = mesh.getContext();
    if (!sharding)
      sharding = ShardingAttr::getReplicated(meshRef, type.getRank());
    SmallVector<AxisListAttr> dims(sharding.getDims());
    SmallVector<AxisRefAttr> first(dims[0].getAxes());
    llvm::append_range(first, axes);
    dims[0] = AxisListAttr::get(context, first, dims[0].getSegments());
    return ShardingAttr::get(context, meshRef, dims, sharding.getPartial());
  }

  void splitInputs(FunctionOpInterface function) {
    SmallVector<AxisRefAttr> axes;
    for (const plan::DataAxis &data : plan.data)
      axes.push_back(getAxis(data));
    for (BlockArgument argument : function.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || type.getRank() == 0)
        continue;
      unsigned index = argument.getArgNumber();
      function.setArgAttr(
          index, kShardingAttr,
          addToFirst(getArgSharding(function, index), type, axes));
    }
  }

  void placeParameter(nn::ParameterOp parameter) {
    RankedTensorType type = parameter.getType();
    auto whole = parameter->getAttrOfType<ShardingAttr>(kShardingAttr);
    if (!whole)
      whole = ShardingAttr::getReplicated(meshRef, type.getRank());
    SmallVector<AxisRefAttr> axes;
    const plan::DataAxis *first = nullptr;
    bool reshard = false;
    for (const plan::DataAxis &data : plan.data)
      if (data.style == plan::DataAxis::FSDP) {
        axes.push_back(getAxis(data));
        first = first ? first : &data;
        reshard |= data.reshardAfterForward;
      }
    // A scalar can't be split; a buffer isn't worth it.
    if (axes.empty() || type.getRank() == 0 || parameter.getFrozen()) {
      parameter->setAttr(kShardingAttr, whole);
      return;
    }
    parameter->setAttr(kShardingAttr, addToFirst(whole, type, axes));
    OpBuilder builder(parameter->getContext());
    builder.setInsertionPointAfter(parameter);
    auto module = parameter->getParentOfType<nn::ModuleOp>();
    auto gathered = RedistributeOp::create(
        builder, parameter.getLoc(), type, parameter, whole,
        module ? module.getFqnAttr() : builder.getStringAttr(""),
        builder.getStringAttr(plan::printReason(first->loc, "fsdp")));
    if (reshard)
      gathered->setAttr(kReshardAttr, builder.getUnitAttr());
    parameter.getResult().replaceAllUsesExcept(gathered, gathered);
  }

  const plan::PlanFile &plan;
  MeshOp mesh;
  FlatSymbolRefAttr meshRef;
};

} // namespace

void tp::applyDataParallel(const plan::PlanFile &plan, ModuleOp model,
                           MeshOp mesh) {
  DataParallel(plan, mesh).apply(model);
}
