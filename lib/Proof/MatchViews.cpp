//===- MatchViews.cpp - Blocks that are moved in other shapes -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramMatcher.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;

/// How the ranks hold values of the reference in `value` of the first program,
/// as far as reshapes, transposes and data movements led there.
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

/// The axes that movements of `value` and of what they make mention, and
/// results of the function that are among these.
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

/// In which parts mesh dimensions are taken for a value placed so: first those
/// that it needs, as parts need not nest with those of other values.
SmallVector<AxisRefAttr> ProgramMatcher::getCuts(Value value,
                                                 ShardingAttr sharding) {
  AxisSet cuts;
  insertAxes(cuts, sharding);
  cuts.insert_range(getMovementAxes(value));
  cuts.insert_range(axes);
  return cuts.takeVector();
}

/// Makes of what `op` reads what it gives.
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
/// be they a block of it or not. What of its users does so is found as they
/// come.
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

/// Whether `op` goes on with what was found in another shape.
bool ProgramMatcher::isOfView(Operation *op) const {
  return View::isFollowed(op) && viewed.contains(op->getOperand(0));
}
