//===- MatchOthers.cpp - The programs of other ranks ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first program is matched already. Every other program must compute the
// corresponding values, in any order. It must issue the same collectives in the
// same order. And each of its loops and branches must pass on the values that
// correspond to those of the first program's.
//
//===----------------------------------------------------------------------===//

#include "ProgramMatcher.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::tp;

class ProgramMatcher::OtherProgram {
public:
  OtherProgram(ProgramMatcher &matcher, unsigned index)
      : matcher(matcher), index(index),
        function(matcher.programs[index].function) {
    Builder builder(matcher.mesh.getContext());
    for (BlockArgument argument : function.getArguments())
      numbers[argument] = matcher.numbering.getSource(
          builder.getIndexAttr(argument.getArgNumber()), argument.getType());
    // The counterparts of the first program's values.
    for (const auto &replica : matcher.replicas)
      known.insert(replica->numbers[index]);
  }

  std::optional<Mismatch> match();

private:
  std::optional<Mismatch> matchOp(Operation *op);
  std::optional<Mismatch> matchRegions(RegionBranchOpInterface op);
  std::optional<Mismatch> matchPassed(Operation *at, ValueRange values);
  std::optional<Mismatch> matchEdges(RegionBranchOpInterface op, Operation *at,
                                     RegionBranchPoint from);
  void introduce(Value value, Value ofFirst);
  bool isOneOf(const Alternatives &alternatives, Value value);
  Mismatch fail(Operation *at, ValueRange values, const Twine &text);

  ProgramMatcher &matcher;
  unsigned index;
  func::FuncOp function;
  DenseMap<Value, Number> numbers;
  DenseMap<Number, unsigned> numDraws;
  DenseSet<Number> known;
  /// How many of the first program's collectives, of its loops and branches,
  /// and of the lists of values that these pass on, are matched so far.
  size_t numIssued = 0, numRegionOps = 0, numPassed = 0;
};

Mismatch ProgramMatcher::OtherProgram::fail(Operation *at, ValueRange values,
                                            const Twine &text) {
  Operation *unknown = findFirst(function, values, [&](Operation *op) {
    return llvm::none_of(op->getResults(), [&](Value result) {
      return known.contains(numbers.lookup(result)) ||
             matcher.helpers.contains(numbers.lookup(result));
    });
  });
  return Mismatch{unknown ? unknown : at, index, text.str(), nullptr};
}

bool ProgramMatcher::OtherProgram::isOneOf(const Alternatives &alternatives,
                                           Value value) {
  Number number = numbers.lookup(value);
  return llvm::any_of(alternatives, [&](const Numbers &numbers) {
    return numbers[index] == number;
  });
}

std::optional<Mismatch> ProgramMatcher::OtherProgram::match() {
  Block &block = function.getBody().front();
  for (Operation &op : block.without_terminator())
    if (auto mismatch = matchOp(&op))
      return mismatch;
  Operation *end = block.getTerminator();
  if (numIssued != matcher.issued.size())
    return fail(end, {},
                "the program issues " + Twine(numIssued) +
                    " collectives where others issue " +
                    Twine(matcher.issued.size()));
  for (auto [i, operand] : llvm::enumerate(end->getOperands()))
    if (!isOneOf(matcher.returned[i], operand))
      return fail(end, operand,
                  "result " + Twine(i) +
                      " isn't computed as the other ranks compute it from "
                      "their blocks");
  return std::nullopt;
}

std::optional<Mismatch> ProgramMatcher::OtherProgram::matchOp(Operation *op) {
  Number first = matcher.numberNext(op, numbers, numDraws);
  for (OpResult result : op->getResults())
    numbers[result] = first + result.getResultNumber();
  if (auto parameter = dyn_cast<nn::ParameterOp>(op))
    if (auto mismatch = matcher.checkParameter(parameter, index))
      return mismatch;
  if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
    // Ranks join one group only if all of them name it by the same axes.
    if (numIssued == matcher.issued.size() ||
        !isOneOf(matcher.issued[numIssued], op->getResult(0)) ||
        collective.getAxes() != matcher.firstCollectives[numIssued].getAxes())
      return fail(
          op, op->getResults(),
          "the other ranks issue another collective here, or of another "
          "value");
    ++numIssued;
    return std::nullopt;
  }
  if (hasFollowedRegions(op) && numRegionOps < matcher.matchedRegions.size()) {
    RegionBranchOpInterface next = matcher.matchedRegions[numRegionOps].op;
    if (haveSameForm(op, next))
      return matchRegions(cast<RegionBranchOpInterface>(op));
  }
  return matcher.checkEffects(op, index);
}

/// Values that are passed on must be the counterparts of those that the first
/// program passes on.
std::optional<Mismatch>
ProgramMatcher::OtherProgram::matchPassed(Operation *at, ValueRange values) {
  ArrayRef<Alternatives> passed = matcher.passed[numPassed++];
  if (passed.size() != values.size())
    return fail(at, {},
                "it doesn't pass on the values that the other ranks pass on");
  for (auto [alternatives, value] : llvm::zip_equal(passed, values))
    if (!isOneOf(alternatives, value))
      return fail(at, value,
                  "the other ranks compute what is passed on here differently "
                  "from their blocks");
  return std::nullopt;
}

std::optional<Mismatch> ProgramMatcher::OtherProgram::matchEdges(
    RegionBranchOpInterface op, Operation *at, RegionBranchPoint from) {
  if (auto mismatch = matchPassed(at, getScalars(at)))
    return mismatch;
  SmallVector<RegionSuccessor> successors;
  op.getSuccessorRegions(from, successors);
  for (RegionSuccessor to : successors)
    if (auto mismatch = matchPassed(at, getPassed(at, to)))
      return mismatch;
  return std::nullopt;
}

/// Makes a value that regions define the counterpart of the first program's.
void ProgramMatcher::OtherProgram::introduce(Value value, Value ofFirst) {
  numbers[value] = matcher.numbering.getSource(
      matcher.regionValues.lookup(ofFirst), value.getType());
}

std::optional<Mismatch>
ProgramMatcher::OtherProgram::matchRegions(RegionBranchOpInterface op) {
  const MatchedRegions &first = matcher.matchedRegions[numRegionOps++];
  RegionBranchOpInterface similar = first.op;
  auto issuesAsMany = [&](size_t count) { return numIssued == count; };
  if (!issuesAsMany(first.numIssued.front()))
    return fail(op, {},
                "the other ranks issue different collectives before this op");
  if (auto mismatch = matchEdges(op, op, RegionBranchPoint::parent()))
    return mismatch;
  for (auto [i, region] : llvm::enumerate(op->getRegions())) {
    if (region.empty())
      continue;
    for (auto [own, theirs] : llvm::zip_equal(
             region.getArguments(), similar->getRegion(i).getArguments()))
      introduce(own, theirs);
    for (Operation &inner : region.front().without_terminator())
      if (auto mismatch = matchOp(&inner))
        return mismatch;
    Operation *end = region.front().getTerminator();
    if (!issuesAsMany(first.numIssued[i + 1]))
      return fail(end, {},
                  "the other ranks issue different collectives in this region");
    auto point =
        RegionBranchPoint(cast<RegionBranchTerminatorOpInterface>(end));
    if (auto mismatch = matchEdges(op, end, point))
      return mismatch;
  }
  for (auto [own, theirs] :
       llvm::zip_equal(op->getResults(), similar->getResults()))
    introduce(own, theirs);
  return std::nullopt;
}

std::optional<Mismatch> ProgramMatcher::matchOther(unsigned index) {
  return OtherProgram(*this, index).match();
}
