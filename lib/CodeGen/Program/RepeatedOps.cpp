//===- RepeatedOps.cpp - Sequences of ops that a block repeats ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that look like the next ones at the same distance are a stretch, whose
// period is the distance. A stretch can be cut into sequences at any offset.
//
// The best cut is where no op behind it could be fused with one before it. Two
// ops can't be fused if there is a path from one to the other through an op
// that isn't fused, such as a call of the runtime: the longer path to the
// second op shows that.
//
//===----------------------------------------------------------------------===//

#include "RepeatedOps.h"
#include "tp/Dialect/TPRT/TPRT.h"
#include "tp/Interfaces/ShapeOpInterfaces.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "llvm/ADT/Hashing.h"

using namespace mlir;
using namespace mlir::tp;

unsigned tp::countContractions(Operation *op) {
  auto ruled = dyn_cast_or_null<ShardingRuleOpInterface>(op);
  if (!ruled)
    return 0;
  ShardingRule rule = ruled.getShardingRule();
  if (rule.flops)
    return 2;
  // The operands that have a factor, by factor; none if a result has it.
  SmallVector<uint64_t> operandsOf(rule.factors.size(), 0);
  for (auto [i, operand] : llvm::enumerate(rule.operands))
    for (const DimFactors &dim : operand)
      for (unsigned factor : dim)
        operandsOf[factor] |= uint64_t(1) << (i % 64);
  for (const TensorFactors &result : rule.results)
    for (const DimFactors &dim : result)
      for (unsigned factor : dim)
        operandsOf[factor] = 0;
  llvm::SmallDenseSet<uint64_t> contracted;
  for (uint64_t operands : operandsOf)
    if (llvm::popcount(operands) > 1)
      contracted.insert(operands);
  return contracted.size();
}

namespace {

/// If kWindow consecutive ops look alike, their distance is tried as a period;
/// at most kMaxTrials distances are, the most frequent ones.
constexpr size_t kWindow = 8;
constexpr size_t kMaxTrials = 8;

/// How code generation may join an op with its neighbors.
enum class Fusing {
  Loops,      ///< with other loops, and as the end of a library call
  Movement,   ///< also with the reading of a library call
  Library,    ///< a call that may end with loops
  Collective, ///< a call that ends nothing
};

bool isLibraryCall(Operation *op) {
  return isa_and_present<tprt::TPRTDialect>(op->getDialect()) ||
         countContractions(op) > 0;
}

Fusing getFusing(Operation *op) {
  if (isa<tprt::CollectiveCallOpInterface>(op))
    return Fusing::Collective;
  if (isa<ReshapeOpInterface, TransposeOpInterface, SliceOpInterface,
          ConcatOpInterface>(op))
    return Fusing::Movement;
  return isLibraryCall(op) ? Fusing::Library : Fusing::Loops;
}

bool isCall(Fusing fusing) {
  return fusing == Fusing::Library || fusing == Fusing::Collective;
}

/// Whether a producer and a reader of its result, which no other call
/// separates, may become one loop nest or one call, or share a buffer.
bool canFuse(Fusing producer, Fusing reader) {
  switch (reader) {
  case Fusing::Loops:
  case Fusing::Movement:
    return producer != Fusing::Collective;
  case Fusing::Library:
    return producer == Fusing::Movement;
  case Fusing::Collective: // in place
    return producer != Fusing::Collective;
  }
  llvm_unreachable("unknown kind");
}

class Finder {
public:
  Finder(ArrayRef<Operation *> ops, ArrayRef<unsigned> classes, size_t minSaved)
      : ops(ops), classes(classes), minSaved(minSaved) {}

  /// Appends the sequences among the ops from `begin` to `end`.
  void find(size_t begin, size_t end, SmallVectorImpl<RepeatedOps> &found) {
    std::optional<Stretch> stretch = findStretch(begin, end);
    if (!stretch)
      return;
    find(begin, stretch->begin, found);
    size_t first = cut(*stretch);
    if (size_t count = (stretch->end - first) / stretch->period; count > 1)
      found.push_back({first, stretch->period, count});
    find(stretch->end, end, found);
  }

private:
  /// The op at i, in [begin, end - period), looks like the one at i + period.
  struct Stretch {
    size_t begin, end, period;
    /// The ops that aren't compiled if one sequence is.
    size_t getNumSaved() const { return ((end - begin) / period - 1) * period; }
  };

  std::optional<Stretch> findStretch(size_t begin, size_t end) const;
  SmallVector<size_t> getDistances(size_t begin, size_t end) const;
  size_t cut(const Stretch &stretch) const;

  ArrayRef<Operation *> ops;
  ArrayRef<unsigned> classes;
  size_t minSaved;
};

} // namespace

/// The distances of windows that look alike, the most frequent first.
SmallVector<size_t> Finder::getDistances(size_t begin, size_t end) const {
  DenseMap<size_t, size_t> last; // by hash
  DenseMap<size_t, size_t> frequencies;
  for (size_t i = begin; i + kWindow <= end; ++i) {
    ArrayRef<unsigned> window = classes.slice(i, kWindow);
    // DenseMap reserves the two largest keys.
    size_t hash =
        size_t(llvm::hash_combine_range(window.begin(), window.end())) >> 1;
    auto [it, isNew] = last.try_emplace(hash, i);
    if (!isNew)
      ++frequencies[i - it->second];
    it->second = i;
  }
  SmallVector<size_t> distances = llvm::to_vector(
      llvm::make_first_range(SmallVector<std::pair<size_t, size_t>>(
          frequencies.begin(), frequencies.end())));
  llvm::sort(distances, [&](size_t x, size_t y) {
    return std::pair(frequencies[x], y) > std::pair(frequencies[y], x);
  });
  if (distances.size() > kMaxTrials)
    distances.truncate(kMaxTrials);
  return distances;
}

/// The stretch that saves most.
std::optional<Finder::Stretch> Finder::findStretch(size_t begin,
                                                   size_t end) const {
  std::optional<Stretch> best;
  if (end - begin < minSaved)
    return best;
  for (size_t period : getDistances(begin, end)) {
    size_t first = begin;
    for (size_t i = begin; i + period <= end; ++i) {
      if (i + period < end && classes[i] == classes[i + period])
        continue;
      Stretch stretch{first, i + period, period};
      first = i + 1;
      if (stretch.end - stretch.begin >= 2 * period &&
          stretch.getNumSaved() >= std::max<size_t>(minSaved, 1) &&
          (!best || stretch.getNumSaved() > best->getNumSaved()))
        best = stretch;
    }
  }
  return best;
}

/// The first op of the first sequence.
size_t Finder::cut(const Stretch &stretch) const {
  // Looks at three sequences in the middle, or at two if there are only two.
  size_t period = stretch.period;
  size_t middle =
      stretch.begin +
      std::max<size_t>((stretch.end - stretch.begin) / period / 2, 1) * period;
  size_t begin = middle - period,
         end = std::min(middle + 2 * period, stretch.end);
  DenseMap<Operation *, size_t> indices;
  SmallVector<Fusing> fusing;
  for (size_t i = begin; i < end; ++i) {
    indices[ops[i]] = i;
    fusing.push_back(getFusing(ops[i]));
  }
  // By the place of a cut in the period: pairs of ops that would be fused, and
  // values that are needed behind it.
  struct Cost {
    size_t fusions = 0, values = 0;
  };
  SmallVector<Cost> costs(period);
  auto forEachCut = [&](size_t from, size_t to, auto visit) {
    for (size_t i = std::max(from + 1, middle);
         i <= std::min(to, middle + period - 1); ++i)
      visit(costs[i - middle]);
  };
  // The most calls on a path to the op.
  SmallVector<size_t> calls(end - begin, 0);
  DenseMap<Value, size_t> lastUses;
  for (size_t i = begin; i < end; ++i) {
    SmallVector<size_t> producers;
    for (Value operand : ops[i]->getOperands())
      if (auto it = indices.find(operand.getDefiningOp());
          it != indices.end()) {
        producers.push_back(it->second);
        lastUses[operand] = i;
      }
    auto getCalls = [&](size_t producer) {
      return calls[producer - begin] + isCall(fusing[producer - begin]);
    };
    for (size_t producer : producers)
      calls[i - begin] = std::max(calls[i - begin], getCalls(producer));
    for (size_t producer : producers) {
      if (calls[i - begin] == getCalls(producer) &&
          canFuse(fusing[producer - begin], fusing[i - begin]))
        forEachCut(producer, i, [](Cost &cost) { ++cost.fusions; });
      // The start of a collective and its wait belong to one function.
      if (isa<tprt::CollectiveStartOp>(ops[producer]))
        forEachCut(producer, i,
                   [&](Cost &cost) { cost.fusions += ops.size(); });
    }
  }
  for (auto [value, last] : lastUses)
    forEachCut(indices[value.getDefiningOp()], last,
               [](Cost &cost) { ++cost.values; });
  size_t first = stretch.begin;
  std::optional<std::pair<size_t, size_t>> least;
  for (size_t place = 0; place < period; ++place) {
    // The first such place of the stretch.
    size_t begin = stretch.begin + (middle - stretch.begin + place) % period;
    std::pair cost(costs[place].fusions, costs[place].values);
    if (Stretch{begin, stretch.end, period}.getNumSaved() < minSaved ||
        (least && cost >= *least))
      continue;
    least = cost;
    first = begin;
  }
  return first;
}

SmallVector<RepeatedOps> tp::findRepeatedOps(ArrayRef<Operation *> ops,
                                             ArrayRef<unsigned> classes,
                                             size_t minSaved) {
  SmallVector<RepeatedOps> found;
  Finder(ops, classes, minSaved).find(0, ops.size(), found);
  return found;
}
