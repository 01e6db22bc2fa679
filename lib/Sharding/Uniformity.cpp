//===- Uniformity.cpp - Values that ranks have in common ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Uniformity.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/TP/Shardings.h"

using namespace mlir;
using namespace mlir::tp;

bool tp::onlyMakesResults(Operation *op) {
  if (isMemoryEffectFree(op))
    return true;
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
      getEffectsRecursively(op);
  return effects && llvm::all_of(*effects, [&](const auto &effect) {
           return isa<MemoryEffects::Allocate>(effect.getEffect()) &&
                  isa_and_present<RankedTensorType>(
                      effect.getValue() ? effect.getValue().getType() : Type());
         });
}

SmallVector<Value> tp::getControlOperands(Operation *op) {
  llvm::SmallPtrSet<OpOperand *, 8> forwarded;
  SmallVector<Value> control;
  auto branch = dyn_cast<RegionBranchOpInterface>(op);
  auto collect = [&](Operation *from, RegionBranchPoint point,
                     auto getOperands) {
    SmallVector<RegionSuccessor> successors;
    branch.getSuccessorRegions(point, successors);
    for (RegionSuccessor &successor : successors) {
      OperandRange operands = getOperands(successor);
      for (unsigned i = 0; i < operands.size(); ++i)
        forwarded.insert(
            &from->getOpOperand(operands.getBeginOperandIndex() + i));
    }
    for (OpOperand &operand : from->getOpOperands())
      if (!forwarded.contains(&operand))
        control.push_back(operand.get());
  };
  if (!branch) {
    llvm::append_range(control, op->getOperands());
    return control;
  }
  collect(op, RegionBranchPoint::parent(), [&](RegionSuccessor successor) {
    return branch.getEntrySuccessorOperands(successor);
  });
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(
              block.getTerminator()))
        collect(terminator, terminator, [&](RegionSuccessor successor) {
          return terminator.getSuccessorOperands(successor);
        });
  return control;
}

Uniformity::Uniformity(ModuleOp module, MeshOp mesh)
    : module(module), mesh(mesh) {
  for (size_t i = 0; i < mesh.getNumAxes(); ++i)
    all |= getBit(AxisRefAttr::get(mesh.getContext(), mesh.getAxisName(i)));
}

void Uniformity::analyze() {
  begun = true;
  for (auto function : module.getOps<FunctionOpInterface>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (ShardingAttr sharding = getArgSharding(function, i))
        if (!function.isExternal())
          add(function.getArgument(i), getBits(sharding));
  // This ends because values only ever gain varying dimensions.
  do {
    changed = false;
    module.walk<WalkOrder::PreOrder>([&](Operation *op) { visit(op); });
  } while (changed);
  complete = true;
}

bool Uniformity::isUniform(Value value, ArrayRef<AxisRefAttr> axes) {
  return (getVarying(value) & getBits(axes)) == 0;
}

SmallVector<StringRef> Uniformity::getVaryingAxes(Value value) {
  SmallVector<StringRef> names;
  for (size_t i = 0; i < mesh.getNumAxes(); ++i) {
    StringRef name = mesh.getAxisName(i);
    if (getVarying(value) & getBit(AxisRefAttr::get(mesh.getContext(), name)))
      names.push_back(name);
  }
  return names;
}

Uniformity::Axes Uniformity::getBit(AxisRefAttr axis) {
  // A part of a dimension counts as the whole.
  unsigned bit = 0;
  for (size_t i = 0; i < mesh.getNumAxes(); ++i) {
    bool counts = mesh.getAxisSizes()[i] > 1;
    if (mesh.getAxisName(i) == axis.getName())
      return counts ? Axes(1) << bit : 0;
    bit += counts;
  }
  return all;
}

Uniformity::Axes Uniformity::getBits(ArrayRef<AxisRefAttr> axes) {
  Axes bits = 0;
  for (AxisRefAttr axis : axes)
    bits |= getBit(axis);
  return bits;
}

Uniformity::Axes Uniformity::getBits(ShardingAttr sharding) {
  Axes bits = 0;
  for (AxisListAttr axes : sharding.getDims())
    bits |= getBits(axes.getAxes());
  for (PartialAttr partial : sharding.getPartial())
    bits |= getBit(partial.getAxis());
  return bits;
}

Uniformity::Axes Uniformity::getVarying(Value value) {
  if (!begun)
    analyze();
  auto it = varying.find(value);
  if (it != varying.end())
    return it->second;
  // While the analysis runs, values that it hasn't reached count as uniform.
  return complete ? all : 0;
}

void Uniformity::add(Value value, Axes axes) {
  auto [it, isNew] = varying.try_emplace(value, axes);
  changed |= isNew || (it->second | axes) != it->second;
  it->second |= axes;
}

void Uniformity::visit(Operation *op) {
  if (isa<FunctionOpInterface>(op)) {
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        add(argument, 0);
    return;
  }
  if (isa<CallOpInterface>(op))
    return visitCall(op);
  if (auto start = dyn_cast<StartOp>(op))
    return add(start.getResult(),
               getVarying(start.getCollective()->getResult(0)));
  if (auto wait = dyn_cast<WaitOp>(op))
    return add(wait.getResult(), getVarying(wait.getPending()));
  if (op->getNumRegions() != 0 && !onlyMakesResults(op) &&
      !isa<RegionBranchOpInterface>(op)) {
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        add(argument, all);
    for (Value result : op->getResults())
      add(result, all);
    return;
  }
  if (isa<RegionBranchOpInterface>(op))
    return visitRegions(op);
  Axes axes = getResultAxes(op);
  for (Value result : op->getResults())
    add(result, axes);
  // The body of an op like linalg.generic computes on its operands' elements.
  for (Region &region : op->getRegions())
    for (BlockArgument argument : region.getArguments())
      add(argument, axes);
}

Uniformity::Axes Uniformity::getResultAxes(Operation *op) {
  Axes axes = 0;
  for (Value operand : op->getOperands())
    axes |= getVarying(operand);
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        axes |= getVarying(operand);
    });
  if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
    Axes group = 0;
    for (AxisRefAttr axis : collective.getAxes())
      if (!collective.isSameInGroup() || axis.isWhole())
        group |= getBit(axis);
    if (collective.isSameInGroup())
      return axes & ~group;
    // An exchange's result also varies along the axes of its target, and a
    // transfer's along those that it names.
    for (NamedAttribute attr : op->getAttrDictionary())
      if (auto sharding = dyn_cast<ShardingAttr>(attr.getValue()))
        axes |= getBits(sharding);
      else if (auto named = dyn_cast<AxisListAttr>(attr.getValue()))
        axes |= getBits(named.getAxes());
    return axes | group;
  }
  if (!onlyMakesResults(op))
    return all;
  // The axes of a slice or an offset.
  if (isa_and_present<TPDialect>(op->getDialect()))
    if (auto own = op->getAttrOfType<AxisListAttr>("axes"))
      axes |= getBits(own.getAxes());
  // The sharding of a parameter.
  if (auto sharding = op->getAttrOfType<ShardingAttr>(kShardingAttr))
    axes |= getBits(sharding);
  return axes;
}

void Uniformity::visitRegions(Operation *op) {
  auto branch = cast<RegionBranchOpInterface>(op);
  Axes control = 0;
  for (Value operand : getControlOperands(op))
    control |= getVarying(operand);
  auto flow = [&](RegionBranchPoint point, auto getOperands) {
    SmallVector<RegionSuccessor> successors;
    branch.getSuccessorRegions(point, successors);
    for (RegionSuccessor &successor : successors)
      for (auto [operand, input] :
           llvm::zip(getOperands(successor), successor.getSuccessorInputs()))
        add(input, getVarying(operand) | control);
  };
  flow(RegionBranchPoint::parent(), [&](RegionSuccessor successor) {
    return branch.getEntrySuccessorOperands(successor);
  });
  for (Region &region : op->getRegions()) {
    for (BlockArgument argument : region.getArguments())
      add(argument, control); // an induction variable too
    for (Block &block : region)
      if (auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(
              block.getTerminator()))
        flow(terminator, [&](RegionSuccessor successor) {
          return terminator.getSuccessorOperands(successor);
        });
  }
  for (Value result : op->getResults())
    add(result, control);
}

void Uniformity::visitCall(Operation *op) {
  auto call = cast<CallOpInterface>(op);
  auto callee = dyn_cast_or_null<FunctionOpInterface>(call.resolveCallable());
  if (!callee || callee.isExternal() ||
      callee.getNumArguments() != call.getArgOperands().size()) {
    for (Value result : op->getResults())
      add(result, all);
    return;
  }
  for (auto [argument, operand] :
       llvm::zip(callee.getArguments(), call.getArgOperands()))
    add(argument, getVarying(operand));
  for (Value result : op->getResults())
    add(result, 0);
  for (Block &block : callee.getFunctionBody())
    if (block.getTerminator()->hasTrait<OpTrait::ReturnLike>())
      for (auto [result, operand] :
           llvm::zip(op->getResults(), block.getTerminator()->getOperands()))
        add(result, getVarying(operand));
}
