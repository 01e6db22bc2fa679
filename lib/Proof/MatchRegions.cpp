//===- MatchRegions.cpp - Loops and branches against a reference ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramMatcher.h"

using namespace mlir;
using namespace mlir::tp;

/// Operands that aren't tensors, such as bounds and conditions.
SmallVector<Value> ProgramMatcher::getScalars(Operation *op) {
  return llvm::filter_to_vector(op->getOperands(), [](Value operand) {
    return !isa<RankedTensorType>(operand.getType());
  });
}

/// The values that `from`, an op with regions or the terminator of one, passes
/// on to `to`.
ValueRange ProgramMatcher::getPassed(Operation *from, RegionSuccessor to) {
  if (auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(from))
    return terminator.getSuccessorOperands(to);
  return cast<RegionBranchOpInterface>(from).getEntrySuccessorOperands(to);
}

/// The values that programs may have as counterparts of the first one's
/// `value`, a block of `theirs`.
ProgramMatcher::Alternatives
ProgramMatcher::getAlternatives(Value value, Value theirs,
                                ShardingAttr sharding) {
  Alternatives alternatives;
  for (const Replica *replica : byNumber.lookup(firstNumbers[value]))
    if (replica->value == reference.getId(theirs) &&
        (!sharding || replica->sharding == sharding))
      alternatives.push_back(replica->numbers);
  return alternatives;
}

/// Matches by induction over the runs of a region: assuming that the values
/// that enter it are blocks of those that enter the reference's region, the
/// values that it passes on must be blocks, too, with the same placement on
/// each edge.
std::optional<Mismatch>
ProgramMatcher::matchRegions(RegionBranchOpInterface op) {
  RegionBranchOpInterface similar;
  for (Operation *other : reference.getRegionOps())
    if (!usedRegionOps.contains(other) && isSimilar(op, other)) {
      similar = cast<RegionBranchOpInterface>(other);
      break;
    }
  if (!similar)
    return std::nullopt; // users of the results won't match
  usedRegionOps.insert(similar);
  matchedRegionOps.insert(op);
  size_t position = matchedRegions.size();
  matchedRegions.push_back({op, {issued.size()}});

  // Matches the values that both sides pass on, and introduces their targets.
  auto pass = [&](Operation *at, ValueRange own, ValueRange theirs,
                  ValueRange ownInputs,
                  ValueRange theirInputs) -> std::optional<Mismatch> {
    passed.emplace_back();
    size_t list = passed.size() - 1;
    for (auto [value, their, input, theirInput] :
         llvm::zip_equal(own, theirs, ownInputs, theirInputs)) {
      const Replica *from = nullptr;
      ShardingAttr wanted = arrivedAs.lookup(input);
      do {
        for (const Replica *replica : byNumber.lookup(firstNumbers[value]))
          if (replica->value == reference.getId(their) &&
              (!wanted || replica->sharding == wanted))
            from = replica;
      } while (!from && regroup());
      if (!from) {
        if (auto culprit = findCulprit(value))
          return culprit;
        return Mismatch{
            at, 0,
            "it passes on another value than the reference does, or "
            "the same value in another placement than the other "
            "values that arrive there",
            theirInput.getDefiningOp()};
      }
      passed[list].push_back(getAlternatives(value, their, from->sharding));
      if (wanted)
        continue;
      arrivedAs[input] = from->sharding;
      introduce(input, theirInput, from->sharding);
    }
    return std::nullopt;
  };
  auto passAll = [&](Operation *at, Operation *theirAt, RegionBranchPoint point,
                     RegionBranchPoint theirPoint) -> std::optional<Mismatch> {
    passed.emplace_back();
    for (auto [own, their] :
         llvm::zip_equal(getScalars(at), getScalars(theirAt)))
      passed.back().push_back(getAlternatives(own, their, {}));
    SmallVector<RegionSuccessor> successors, theirs;
    op.getSuccessorRegions(point, successors);
    similar.getSuccessorRegions(theirPoint, theirs);
    if (successors.size() != theirs.size())
      return Mismatch{at, 0, "it goes on elsewhere than the reference",
                      theirAt};
    for (auto [mine, their] : llvm::zip_equal(successors, theirs))
      if (auto mismatch =
              pass(at, getPassed(at, mine), getPassed(theirAt, their),
                   mine.getSuccessorInputs(), their.getSuccessorInputs()))
        return mismatch;
    return std::nullopt;
  };
  if (auto mismatch = passAll(op, similar, RegionBranchPoint::parent(),
                              RegionBranchPoint::parent()))
    return mismatch;
  for (auto [region, their] :
       llvm::zip_equal(op->getRegions(), similar->getRegions())) {
    if (region.empty()) {
      matchedRegions[position].numIssued.push_back(issued.size());
      continue;
    }
    // Introduce scalars that the op defines, such as a loop's index.
    for (auto [argument, theirs] :
         llvm::zip_equal(region.getArguments(), their.getArguments()))
      if (!arrivedAs.contains(argument) &&
          !isa<RankedTensorType>(argument.getType()))
        introduce(argument, theirs, getWhole(0));
    for (BlockArgument argument : region.getArguments())
      if (!firstNumbers.contains(argument))
        return Mismatch{op, 0, "it isn't known what enters this region",
                        similar};
    drain();
    for (Operation &inner : region.front().without_terminator())
      if (auto mismatch = matchOp(&inner))
        return mismatch;
    Operation *end = region.front().getTerminator();
    Operation *theirEnd = their.front().getTerminator();
    matchedRegions[position].numIssued.push_back(issued.size());
    auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(end);
    auto theirTerminator =
        dyn_cast<RegionBranchTerminatorOpInterface>(theirEnd);
    if (!terminator || !theirTerminator || !matchesScalars(end, theirEnd))
      return Mismatch{end, 0, "it goes on otherwise than the reference",
                      theirEnd};
    if (auto mismatch = passAll(end, theirEnd, RegionBranchPoint(terminator),
                                RegionBranchPoint(theirTerminator)))
      return mismatch;
  }
  return std::nullopt;
}

ShardingAttr ProgramMatcher::getWhole(int64_t rank) {
  return ShardingAttr::getReplicated(
      FlatSymbolRefAttr::get(mesh.getSymNameAttr()), rank);
}

/// Adds a value that regions define, which is assumed to be a block of
/// `theirs`.
void ProgramMatcher::introduce(Value value, Value theirs,
                               ShardingAttr sharding) {
  StringAttr name = StringAttr::get(
      mesh.getContext(), "region value " + Twine(regionValues.size()));
  regionValues[value] = name;
  SmallVector<Type, 1> types(programs.size(), value.getType());
  if (auto global = dyn_cast<RankedTensorType>(theirs.getType())) {
    auto blocks = getLocalTypes(global, sharding);
    if (!blocks || blocks->front() != value.getType())
      return;
    types.assign(blocks->begin(), blocks->end());
  }
  Replica replica = {reference.getId(theirs), sharding, {}};
  for (Type type : types)
    replica.numbers.push_back(numbering.getSource(name, type));
  // With one program, a result keeps its own number, so that ops with equal
  // operands and regions have equal results.
  if (isa<OpResult>(value) && programs.size() == 1)
    replica.numbers.front() = firstNumbers[value];
  firstNumbers[value] = replica.numbers.front();
  computed.insert(replica.numbers.front());
  add(std::move(replica));
}

/// Whether scalar operands match and are the same on all ranks. Tensors are
/// checked as values that are passed on.
bool ProgramMatcher::matchesScalars(Operation *op, Operation *theirs) {
  if (op->getNumOperands() != theirs->getNumOperands())
    return false;
  for (auto [own, their] :
       llvm::zip_equal(op->getOperands(), theirs->getOperands()))
    if (!isa<RankedTensorType>(own.getType()) &&
        (reference.get(reference.getId(their)).isLocal ||
         llvm::none_of(byNumber.lookup(firstNumbers[own]),
                       [&](const Replica *replica) {
                         return replica->value == reference.getId(their);
                       })))
      return false;
  return true;
}

bool ProgramMatcher::haveSameForm(Operation *op, Operation *theirs) {
  return op->getName() == theirs->getName() &&
         getMeaning(op) == getMeaning(theirs) &&
         op->getNumResults() == theirs->getNumResults() &&
         op->getNumRegions() == theirs->getNumRegions() &&
         llvm::equal(op->getRegions(), theirs->getRegions(),
                     [](Region &a, Region &b) {
                       return a.getNumArguments() == b.getNumArguments() &&
                              a.empty() == b.empty();
                     }) &&
         op->getNumOperands() == theirs->getNumOperands();
}

bool ProgramMatcher::isSimilar(Operation *op, Operation *theirs) {
  return haveSameForm(op, theirs) && matchesScalars(op, theirs) &&
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
