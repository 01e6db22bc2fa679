//===- MatchRegions.cpp - Loops and branches against a reference ----------===//

#include "ProgramMatcher.h"

using namespace mlir;
using namespace mlir::tp;

/// By induction over the times that a region runs: what enters it is a block of
/// what enters the reference's, and if so, what it passes on is, placed alike
/// on all ways.
std::optional<Mismatch>
ProgramMatcher::matchRegions(RegionBranchOpInterface op) {
  RegionBranchOpInterface similar;
  for (Operation *other : reference.getRegionOps())
    if (!usedRegionOps.contains(other) && isSimilar(op, other)) {
      similar = cast<RegionBranchOpInterface>(other);
      break;
    }
  if (!similar || programs.size() > 1)
    return std::nullopt; // what uses the results isn't explained
  usedRegionOps.insert(similar);

  // Passes values on, from both sides' points, to where they arrive.
  auto pass = [&](Operation *at, ValueRange own, ValueRange theirs,
                  ValueRange ownInputs,
                  ValueRange theirInputs) -> std::optional<Mismatch> {
    for (auto [value, their, input, theirInput] :
         llvm::zip_equal(own, theirs, ownInputs, theirInputs)) {
      const Replica *from = nullptr;
      ShardingAttr wanted = arrivedAs.lookup(input);
      for (const Replica *replica : byNumber.lookup(firstNumbers[value]))
        if (replica->value == reference.getId(their) &&
            (!wanted || replica->sharding == wanted))
          from = replica;
      if (!from) {
        if (auto culprit = findCulprit(value))
          return culprit;
        return Mismatch{at, 0,
                        "it passes on another value than the reference, or the "
                        "same placed otherwise than what else arrives there",
                        theirInput.getDefiningOp()};
      }
      if (wanted)
        continue;
      arrivedAs[input] = from->sharding;
      introduce(input, theirInput, from->sharding);
    }
    return std::nullopt;
  };
  auto passAll = [&](Operation *at, Operation *theirAt, RegionBranchPoint point,
                     RegionBranchPoint theirPoint,
                     bool isEntry) -> std::optional<Mismatch> {
    SmallVector<RegionSuccessor> successors, theirs;
    op.getSuccessorRegions(point, successors);
    similar.getSuccessorRegions(theirPoint, theirs);
    if (successors.size() != theirs.size())
      return Mismatch{at, 0, "it goes on elsewhere than the reference",
                      theirAt};
    for (auto [mine, their] : llvm::zip_equal(successors, theirs)) {
      // What isn't passed on runs no times: its results are those of the
      // terminators, which come later.
      auto operands = [&](auto branch, Operation *terminator,
                          RegionSuccessor to) -> ValueRange {
        if (isEntry)
          return branch.getEntrySuccessorOperands(to);
        return cast<RegionBranchTerminatorOpInterface>(terminator)
            .getSuccessorOperands(to);
      };
      if (auto mismatch = pass(
              at, operands(op, at, mine), operands(similar, theirAt, their),
              mine.getSuccessorInputs(), their.getSuccessorInputs()))
        return mismatch;
    }
    return std::nullopt;
  };
  if (auto mismatch = passAll(op, similar, RegionBranchPoint::parent(),
                              RegionBranchPoint::parent(), true))
    return mismatch;
  for (auto [region, their] :
       llvm::zip_equal(op->getRegions(), similar->getRegions())) {
    if (region.empty())
      continue;
    // Scalars that the op makes, such as a loop's index.
    for (auto [argument, theirs] :
         llvm::zip_equal(region.getArguments(), their.getArguments()))
      if (!arrivedAs.contains(argument) &&
          !isa<RankedTensorType>(argument.getType()))
        introduce(argument, theirs, getWhole(0));
    drain();
    for (Operation &inner : region.front().without_terminator())
      if (auto mismatch = matchOp(&inner))
        return mismatch;
    Operation *end = region.front().getTerminator();
    Operation *theirEnd = their.front().getTerminator();
    auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(end);
    auto theirTerminator =
        dyn_cast<RegionBranchTerminatorOpInterface>(theirEnd);
    if (!terminator || !theirTerminator || !matchesScalars(end, theirEnd))
      return Mismatch{end, 0, "it goes on otherwise than the reference",
                      theirEnd};
    if (auto mismatch = passAll(end, theirEnd, RegionBranchPoint(terminator),
                                RegionBranchPoint(theirTerminator), false))
      return mismatch;
  }
  return std::nullopt;
}

ShardingAttr ProgramMatcher::getWhole(int64_t rank) {
  return ShardingAttr::getReplicated(
      FlatSymbolRefAttr::get(mesh.getSymNameAttr()), rank);
}

/// A value that regions make: a block of the reference's, by assumption.
void ProgramMatcher::introduce(Value value, Value theirs,
                               ShardingAttr sharding) {
  if (!isa<OpResult>(value))
    firstNumbers[value] = numbering.getSource(
        StringAttr::get(mesh.getContext(),
                        "region value " + Twine(arrivedAs.size()) + " of " +
                            Twine(firstNumbers.size())),
        value.getType());
  Number number = firstNumbers[value];
  computed.insert(number);
  add({reference.getId(theirs), sharding, {number}});
}

/// Whether scalar operands are the same; tensors are passed on.
bool ProgramMatcher::matchesScalars(Operation *op, Operation *theirs) {
  if (op->getNumOperands() != theirs->getNumOperands())
    return false;
  for (auto [own, their] :
       llvm::zip_equal(op->getOperands(), theirs->getOperands()))
    if (!isa<RankedTensorType>(own.getType()) &&
        llvm::none_of(byNumber.lookup(firstNumbers[own]),
                      [&](const Replica *replica) {
                        return replica->value == reference.getId(their);
                      }))
      return false;
  return true;
}

bool ProgramMatcher::isSimilar(Operation *op, Operation *theirs) {
  return op->getName() == theirs->getName() &&
         getMeaning(op) == getMeaning(theirs) &&
         op->getNumResults() == theirs->getNumResults() &&
         op->getNumRegions() == theirs->getNumRegions() &&
         llvm::equal(op->getRegions(), theirs->getRegions(),
                     [](Region &a, Region &b) {
                       return a.getNumArguments() == b.getNumArguments() &&
                              a.empty() == b.empty();
                     }) &&
         op->getNumOperands() == theirs->getNumOperands() &&
         llvm::all_of(llvm::zip(op->getOperands(), theirs->getOperands()),
                      [&](auto pair) {
                        auto [own, their] = pair;
                        ReferenceGraph::Id wanted = reference.getId(their);
                        return llvm::any_of(byNumber.lookup(firstNumbers[own]),
                                            [&](const Replica *replica) {
                                              return replica->value == wanted;
                                            });
                      });
}
