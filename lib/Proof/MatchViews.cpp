//===- MatchViews.cpp - Blocks that are moved in other shapes -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramMatcher.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;

/// How the ranks hold values of the reference in `value` of the first program,
/// if it results from reshapes, transposes and data movements of their blocks.
ArrayRef<ProgramMatcher::ViewReplica> ProgramMatcher::getViews(Value value) {
  if (auto it = views.find(value); it != views.end())
    return it->second;
  auto &found = views[value];
  Operation *op = value.getDefiningOp();
  if (!op || !View::isFollowed(op))
    return found = {};
  Value operand = op->getOperand(0);
  SmallVector<ViewReplica, 1> from(getViews(operand));
  for (const Replica *replica : byNumber.lookup(firstNumbers.lookup(operand))) {
    RankedTensorType global = reference.getType(replica->value);
    if (global && !reference.get(replica->value).isLocal)
      from.push_back({replica->value,
                      View(algebra, mesh, global, replica->sharding,
                           getCuts(operand, replica->sharding)),
                      replica->numbers});
  }
  SmallVector<ViewReplica, 1> result;
  for (ViewReplica &each : from)
    if (succeeded(follow(op, each)))
      result.push_back(std::move(each));
  return views[value] = std::move(result);
}

using AxisSet = llvm::SmallSetVector<AxisRefAttr, 8>;

static void insertAxes(AxisSet &axes, ShardingAttr sharding) {
  for (AxisListAttr list : sharding.getDims())
    axes.insert_range(list.getAxes());
  for (PartialAttr partial : sharding.getPartial())
    axes.insert(partial.getAxis());
}

/// The axes of the data movements that start, directly or indirectly, from
/// `value`, and those of function results that they lead to.
ArrayRef<AxisRefAttr> ProgramMatcher::getMovementAxes(Value value) {
  auto [it, isNew] = movementAxes.try_emplace(value);
  if (!isNew)
    return it->second;
  AxisSet found;
  llvm::SmallSetVector<Value, 8> made;
  made.insert(value);
  for (size_t i = 0; i < made.size(); ++i)
    for (OpOperand &use : made[i].getUses()) {
      Operation *user = use.getOwner();
      if (isa<func::ReturnOp>(user))
        insertAxes(found, getResultSharding(programs.front().function,
                                            use.getOperandNumber()));
      if (!View::isFollowed(user))
        continue;
      if (auto list = user->getAttrOfType<AxisListAttr>("axes"))
        found.insert_range(list.getAxes());
      made.insert(user->getResult(0));
    }
  return it->second = found.takeVector();
}

/// The axes that determine how mesh dimensions are divided into parts for a
/// value with this placement. Its own axes come first, because their parts need
/// not nest with those of other values.
SmallVector<AxisRefAttr> ProgramMatcher::getCuts(Value value,
                                                 ShardingAttr sharding) {
  AxisSet cuts;
  insertAxes(cuts, sharding);
  cuts.insert_range(getMovementAxes(value));
  cuts.insert_range(axes);
  return cuts.takeVector();
}

/// Turns the view of the operand of `op` into that of its result.
LogicalResult ProgramMatcher::follow(Operation *op, ViewReplica &view) {
  if (failed(view.view.apply(op, programs.front().ranks.front())))
    return failure();
  for (auto [index, program] : llvm::enumerate(programs)) {
    RankedTensorType type = view.view.getLocalType(program.ranks);
    if (!type || (index == 0 && type != op->getResult(0).getType()))
      return failure();
    view.numbers[index] = numbering.get(op, view.numbers[index], Type(type));
  }
  return success();
}

/// Whether `value` is known to hold the elements of a value of the reference,
/// as a block of it or in another shape. Its users are followed when the
/// matcher visits them.
bool ProgramMatcher::followViews(Value value) {
  ArrayRef<ViewReplica> found = getViews(value);
  if (found.empty())
    return false;
  viewed.insert(value);
  bool isCollective = isa<CollectiveOpInterface>(value.getDefiningOp());
  for (const ViewReplica &each : found) {
    if (isCollective)
      addCounterparts(each.numbers);
    FailureOr<ShardingAttr> sharding = each.view.getPlacement();
    if (succeeded(sharding))
      add({each.value, *sharding, each.numbers});
  }
  drain();
  return true;
}

/// Whether `op` moves a value that was found by followViews().
bool ProgramMatcher::isOfView(Operation *op) const {
  return View::isFollowed(op) && viewed.contains(op->getOperand(0));
}
