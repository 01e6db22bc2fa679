//===- DataParallel.cpp - Batch and sequence over mesh dimensions ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data parallelism consists of placements, as tensor parallelism does. The
// reduction of gradients follows from them: with the batch split, gradients are
// Partial. `tp.batch` tells the propagation which dimension is the batch, so
// that it stays split. Context parallelism does the same with the sequence
// (`tp.sequence`), and tells attention how to communicate.
//
//===----------------------------------------------------------------------===//

#include "DataParallel.h"
#include "tp/Dialect/TP/Batch.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Plan/Style.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

class DataParallel {
public:
  DataParallel(const plan::CheckedPlan &checked, MeshOp mesh)
      : checked(checked), plan(checked.file), mesh(mesh),
        meshRef(FlatSymbolRefAttr::get(mesh.getSymNameAttr())) {}

  void apply(ModuleOp model) {
    for (auto function : model.getOps<FunctionOpInterface>())
      if (!function.isExternal())
        splitInputs(function);
    if (plan.context) {
      keepTokenDims(model);
      model.walk([&](AttentionOpInterface op) { setMethod(op); });
    }
    model.walk([&](AssignOpInterface op) { written.insert(op.getFqnAttr()); });
    model.walk(
        [&](ParameterOpInterface parameter) { placeParameter(parameter); });
  }

private:
  AxisRefAttr getAxis(unsigned axis) {
    return AxisRefAttr::get(mesh.getContext(), plan.mesh[axis].name);
  }

  /// `sharding`, or the replicated one if it is null, with `axes` added to
  /// dimension `dim` as its minor axes.
  ShardingAttr addTo(int64_t dim, ShardingAttr sharding, RankedTensorType type,
                     ArrayRef<AxisRefAttr> axes) {
    MLIRContext *context = mesh.getContext();
    if (!sharding)
      sharding = ShardingAttr::getReplicated(meshRef, type.getRank());
    SmallVector<AxisListAttr> dims(sharding.getDims());
    SmallVector<AxisRefAttr> all(dims[dim].getAxes());
    llvm::append_range(all, axes);
    dims[dim] = AxisListAttr::get(context, all, dims[dim].getSegments());
    return ShardingAttr::get(context, meshRef, dims, sharding.getPartial());
  }

  void splitInputs(FunctionOpInterface function) {
    // Tokens that are sent to experts together are contiguous: the experts' mesh
    // dimension is the minor one.
    SmallVector<AxisRefAttr> axes;
    for (const plan::DataAxis &data : plan.data)
      if (!plan.experts || data.axis != plan.experts->axis)
        axes.push_back(getAxis(data.axis));
    if (plan.experts)
      axes.push_back(getAxis(plan.experts->axis));
    splitInputs(function, checked.batchDims, axes, kBatchAttr);
    if (!plan.context)
      return;
    splitInputs(function, checked.sequenceDims, getAxis(plan.context->axis),
                kSequenceAttr);
    // As under PyTorch's context_parallel, results stay split.
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (!getResultSharding(function, i))
        function.setResultAttr(i, kOpenAttr,
                               UnitAttr::get(function.getContext()));
  }

  void splitInputs(FunctionOpInterface function,
                   const llvm::DenseMap<Value, int64_t> &dims,
                   ArrayRef<AxisRefAttr> axes, StringRef attr) {
    auto names = llvm::map_to_vector(
        axes, [](AxisRefAttr axis) { return axis.getName(); });
    for (BlockArgument argument : function.getArguments()) {
      auto dim = dims.find(argument);
      if (dim == dims.end())
        continue;
      unsigned index = argument.getArgNumber();
      function.setArgAttr(index, kShardingAttr,
                          addTo(dim->second, getArgSharding(function, index),
                                cast<RankedTensorType>(argument.getType()),
                                axes));
      function.setArgAttr(index, attr,
                          Builder(mesh.getContext()).getStrArrayAttr(names));
    }
  }

  /// Attention of another number of rows isn't over the sequence.
  void setMethod(AttentionOpInterface op) {
    auto [input, dim] = *checked.sequenceDims.begin();
    if (op.getNumRows() ==
        cast<RankedTensorType>(input.getType()).getDimSize(dim))
      op.setContextMethod(plan.context->method);
  }

  void placeParameter(ParameterOpInterface parameter) {
    RankedTensorType type = parameter.getType();
    auto whole = parameter->getAttrOfType<ShardingAttr>(kShardingAttr);
    // The propagation places what the model writes: a cache follows the batch.
    if (!whole && parameter->hasAttr(kBufferAttr) &&
        written.contains(parameter.getFqnAttr()))
      return;
    if (!whole)
      whole = ShardingAttr::getReplicated(meshRef, type.getRank());
    bool hasExperts = checked.expertParameters.contains(parameter.getFqnAttr());
    if (hasExperts)
      whole = addTo(0, whole, type, getAxis(plan.experts->axis));
    SmallVector<AxisRefAttr> axes;
    const plan::DataAxis *first = nullptr;
    StringAttr group = checked.fsdpGroups.lookup(parameter.getFqnAttr());
    bool reshard = false;
    for (const plan::DataAxis &data : plan.data)
      if (data.style == plan::DataAxis::FSDP &&
          !(hasExperts && data.axis == plan.experts->axis)) {
        axes.push_back(getAxis(data.axis));
        first = first ? first : &data;
        reshard |= data.reshardAfterForward.value_or(group &&
                                                     !group.getValue().empty());
      }
    // A scalar can't be split, and fully_shard doesn't split buffers.
    if (axes.empty() || type.getRank() == 0 ||
        parameter->hasAttr(kBufferAttr)) {
      parameter->setAttr(kShardingAttr, whole);
      return;
    }
    parameter->setAttr(kFsdpGroupAttr, group);
    parameter->setAttr(kShardingAttr, addTo(0, whole, type, axes));
    OpBuilder builder(parameter->getContext());
    builder.setInsertionPointAfter(parameter);
    auto module = parameter->getParentOfType<ModuleOpInterface>();
    auto gathered = RedistributeOp::create(
        builder, parameter.getLoc(), type, parameter.getResult(), whole,
        module ? module.getFqnAttr() : builder.getStringAttr(""),
        builder.getStringAttr(plan::printReason(first->loc, "fsdp")));
    if (reshard)
      gathered->setAttr(kReshardAttr, builder.getUnitAttr());
    parameter.getResult().replaceAllUsesExcept(gathered, gathered);
  }

  const plan::CheckedPlan &checked;
  const plan::PlanFile &plan;
  MeshOp mesh;
  FlatSymbolRefAttr meshRef;
  llvm::DenseSet<StringAttr> written; ///< FQNs
};

} // namespace

void tp::applyDataParallel(const plan::CheckedPlan &plan, ModuleOp model,
                           MeshOp mesh) {
  DataParallel(plan, mesh).apply(model);
}
