//===- DataParallel.cpp - the batch over mesh dimensions ------------------===//
//
// Data parallelism is placements, as tensor parallelism is. That gradients are
// reduced follows: with the batch split, they are Partial. What modules give is
// held split: gathering the batch once, and computing all of it on every rank,
// would be the least communication.
//
//===----------------------------------------------------------------------===//

#include "DataParallel.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Plan/Style.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

/// Finds the dimension of each value that is the batch, dimension 0 of the
/// inputs, as it goes through the ops' rules.
class BatchDims {
public:
  void visit(Block &block) {
    for (Operation &op : block)
      visit(&op);
  }
  void set(Value value, std::optional<int64_t> dim) {
    if (dim)
      dims[value] = *dim;
  }
  std::optional<int64_t> get(Value value) const {
    auto found = dims.find(value);
    return found == dims.end() ? std::nullopt : std::optional(found->second);
  }

private:
  void visit(Operation *op) {
    if (auto module = dyn_cast<nn::ModuleOp>(op)) {
      Block &body = module.getBody().front();
      for (auto [operand, argument] :
           llvm::zip_equal(op->getOperands(), body.getArguments()))
        set(argument, get(operand));
      visit(body);
      for (auto [result, yielded] : llvm::zip_equal(
               op->getResults(), body.getTerminator()->getOperands()))
        set(result, get(yielded));
      return;
    }
    if (auto redistribute = dyn_cast<RedistributeOp>(op))
      return set(redistribute.getResult(), get(redistribute.getInput()));
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || llvm::none_of(op->getOperands(), [&](Value operand) {
          return dims.contains(operand);
        }))
      return;
    ShardingRule rule = ruled.getShardingRule();
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (std::optional<int64_t> dim = get(operand);
          dim && !rule.operands[i][*dim].empty())
        for (auto [r, result] : llvm::enumerate(op->getResults()))
          set(result, findMajor(rule.results[r], rule.operands[i][*dim][0]));
  }

  /// The dimension of which `factor` is the major one.
  static std::optional<int64_t> findMajor(const TensorFactors &tensor,
                                          unsigned factor) {
    for (auto [dim, factors] : llvm::enumerate(tensor))
      if (!factors.empty() && factors[0] == factor)
        return dim;
    return std::nullopt;
  }

  DenseMap<Value, int64_t> dims;
};

class DataParallel {
public:
  DataParallel(const plan::PlanFile &plan, MeshOp mesh)
      : plan(plan), mesh(mesh),
        meshRef(FlatSymbolRefAttr::get(mesh.getSymNameAttr())) {}

  void apply(ModuleOp model) {
    for (auto function : model.getOps<FunctionOpInterface>())
      if (!function.isExternal()) {
        splitInputs(function);
        holdBatch(function);
      }
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

  /// What the modules give stays split along the batch.
  void holdBatch(FunctionOpInterface function) {
    BatchDims batch;
    DenseSet<int64_t> sizes;
    for (BlockArgument argument : function.getArguments())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType());
          type && type.getRank() > 0) {
        batch.set(argument, 0);
        sizes.insert(type.getDimSize(0));
      }
    batch.visit(function.getFunctionBody().front());
    DenseSet<Value> held;
    // Inner modules first.
    function.walk([&](nn::ModuleOp module) {
      Operation *yield = module.getBody().front().getTerminator();
      for (OpOperand &operand : yield->getOpOperands()) {
        Value value = operand.get();
        std::optional<int64_t> dim = batch.get(value);
        // Where the batch is merged with others, blocks may differ.
        if (!dim ||
            !sizes.contains(
                cast<RankedTensorType>(value.getType()).getDimSize(*dim)))
          continue;
        if (!held.contains(value))
          operand.set(hold(value, *dim, module, yield));
        held.insert(module.getResult(operand.getOperandNumber()));
      }
    });
  }

  Value hold(Value value, int64_t dim, nn::ModuleOp module, Operation *before) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<AxisRefAttr> axes;
    for (const plan::DataAxis &data : plan.data)
      axes.push_back(getAxis(data));
    MLIRContext *context = mesh.getContext();
    SmallVector<AxisListAttr> dims(type.getRank(),
                                   AxisListAttr::get(context, {}));
    dims[dim] = AxisListAttr::get(context, axes);
    OpBuilder builder(before);
    return RedistributeOp::create(builder, value.getLoc(), type, value,
                                  ShardingAttr::get(context, meshRef, dims, {}),
                                  module.getFqnAttr(),
                                  builder.getStringAttr(plan::printReason(
                                      plan.data.front().loc, "data_parallel")),
                                  dims[dim]);
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
