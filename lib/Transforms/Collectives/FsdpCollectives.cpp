//===- FsdpCollectives.cpp - Collectives of FSDP parameter groups ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As with fully_shard, one collective gathers a group's parameters before the
// first of them is used, in each pass over the model that uses any.
//
//===----------------------------------------------------------------------===//

#include "FsdpCollectives.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

using Ops = llvm::SmallSetVector<Operation *, 8>;

FsdpParameterGroups::FsdpParameterGroups(func::FuncOp program) {
  program.walk([&](Operation *op) {
    if (ParameterOpInterface parameter = getParameter(op))
      if (auto group = op->getAttrOfType<StringAttr>(kFsdpGroupAttr))
        groups[parameter.getFqnAttr()] = group;
  });
}

/// The parameter that `ops` read; null if they read none or several.
static ParameterOpInterface getOnlyParameter(const Ops &ops) {
  ParameterOpInterface found;
  for (Operation *op : ops)
    if (ParameterOpInterface parameter = getParameter(op)) {
      if (found && found.getFqnAttr() != parameter.getFqnAttr())
        return {};
      found = parameter;
    }
  return found;
}

StringAttr FsdpParameterGroups::ofGathered(Operation *gather) const {
  Ops ops;
  if (groups.empty() || !collectOfParameters(gather->getOperand(0), ops))
    return {};
  ParameterOpInterface parameter = getOnlyParameter(ops);
  return parameter ? groups.lookup(parameter.getFqnAttr()) : StringAttr();
}

StringAttr FsdpParameterGroups::ofGradient(Operation *reduction) const {
  if (groups.empty())
    return {};
  // Look for the assignment; an update is computed element by element.
  auto type = cast<RankedTensorType>(reduction->getResult(0).getType());
  SmallVector<Operation *> worklist = {reduction};
  llvm::SmallPtrSet<Operation *, 8> seen = {reduction};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    for (Operation *user : op->getUsers()) {
      if (auto assign = dyn_cast<AssignOpInterface>(user))
        if (StringAttr group = groups.lookup(assign.getFqnAttr()))
          return group;
      bool mayFollow = isPure(user) || isa<AllReduceOp>(user);
      if (mayFollow && user->getNumResults() != 0 &&
          cast<RankedTensorType>(user->getResult(0).getType()).getShape() ==
              type.getShape() &&
          seen.insert(user).second)
        worklist.push_back(user);
    }
  }
  return groups.lookup(
      StringAttr::get(reduction->getContext(),
                      cast<CollectiveOpInterface>(reduction).getOriginFqn()));
}

/// The pass over the model in which `ops` read a parameter.
static int64_t getPass(const Ops &ops) {
  int64_t pass = 0;
  for (Operation *op : ops)
    if (auto number = op->getAttrOfType<IntegerAttr>(kPassAttr))
      pass = std::max(pass, number.getInt());
  return pass;
}

namespace {
/// The gathers of a group's parameters in one pass that can be joined.
struct Members {
  SmallVector<CollectiveOpInterface> gathers;
  /// Indexed by parameter.
  DenseMap<StringAttr, SmallVector<AllGatherOp>> byName;
};
} // namespace

unsigned collectives::joinGathers(func::FuncOp program) {
  FsdpParameterGroups groups(program);
  using Key = std::tuple<JoinKey, StringAttr, int64_t>;
  llvm::MapVector<Key, Members> all;
  unsigned numJoined = 0;
  Block &block = program.getBody().front();
  // The positions of ops; a block would renumber its ops after each move.
  DenseMap<Operation *, size_t> places;
  for (auto [place, op] : llvm::enumerate(block))
    places[&op] = place;
  for (auto gather : llvm::make_early_inc_range(block.getOps<AllGatherOp>())) {
    StringAttr group = groups.ofGathered(gather);
    std::optional<JoinKey> key = getJoinKey(gather, /*mayFill=*/true);
    if (!group || !key)
      continue;
    Ops ops;
    (void)collectOfParameters(gather.getInput(), ops);
    Members &members = all[{*key, group, getPass(ops)}];
    auto &known = members.byName[getOnlyParameter(ops).getFqnAttr()];
    auto same = llvm::find_if(known, [&](AllGatherOp other) {
      return other.getType() == gather.getType() &&
             getMeaning(other) == getMeaning(gather);
    });
    if (same != known.end()) {
      gather.replaceAllUsesWith(same->getResult());
      gather.erase();
      ++numJoined;
      continue;
    }
    known.push_back(gather);
    // Move it to the group's earlier gathers.
    if (!members.gathers.empty()) {
      ops.insert(gather);
      Operation *last = members.gathers.back();
      for (Operation *op : ops)
        if (places.lookup(last) < places.lookup(op)) {
          op->moveAfter(last);
          places[op] = places.lookup(last);
          last = op;
        }
    }
    members.gathers.push_back(
        cast<CollectiveOpInterface>(gather.getOperation()));
  }
  for (auto &[key, members] : all)
    if (members.gathers.size() > 1) {
      join(members.gathers);
      numJoined += members.gathers.size() - 1;
    }
  return numJoined;
}
