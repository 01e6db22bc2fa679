//===- Repetition.cpp - Layers that a block repeats -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Repetition.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Sharding/Propagation/OpClasses.h"
#include "llvm/ADT/Hashing.h"
#include <map>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::propagation;

/// If kWindow consecutive ops look alike, they are assumed to be at the same
/// offset in two layers, until all ops are compared in full. At most kMaxTrials
/// distances are tried.
constexpr size_t kWindow = 16;
constexpr unsigned kMaxTrials = 16;

namespace {

/// The source of an operand, relative to its op.
struct Source {
  /// The value from before all layers, or null.
  Value outside;
  /// How many ops earlier it is computed, and as which result.
  size_t distance = 0;
  unsigned result = 0;
};

class Finder {
public:
  Finder(Block &block, size_t margin, function_ref<bool(Operation *)> isPlain)
      : block(block), isPlain(isPlain) {
    found.margin = margin;
    for (Operation &op : block.without_terminator())
      found.ops.push_back(&op);
  }

  std::optional<Repetition> find(size_t minCount);

private:
  bool describe(size_t middle, size_t period);
  bool isRepeated(size_t offset, Operation *op, Operation *other,
                  size_t index) const;
  bool cut(size_t middle, size_t first, size_t end, size_t minCount);
  bool isClosed() const;

  Block &block;
  function_ref<bool(Operation *)> isPlain;
  Repetition found;
  /// The sources of the operands of a layer's ops, by offset.
  std::vector<SmallVector<Source, 3>> sources;
};

} // namespace

/// A hash of the properties in which most ops differ that aren't alike.
static size_t getLook(Operation *op) {
  return llvm::hash_combine(
      op->getName().getAsOpaquePointer(), op->getNumOperands(),
      op->getNumResults() ? op->getResult(0).getType().getAsOpaquePointer()
                          : nullptr);
}

static bool isPlacedAlike(Operation *a, Operation *b) {
  DictionaryAttr attrs = a->getRawDictionaryAttrs(),
                 others = b->getRawDictionaryAttrs();
  return attrs == others ||
         (attrs.get(kShardingAttr) == others.get(kShardingAttr) &&
          attrs.get(kShardingsAttr) == others.get(kShardingsAttr));
}

/// Finds the sources of the `period` ops from `middle` on. Returns whether they
/// can be a layer.
bool Finder::describe(size_t middle, size_t period) {
  // Values from further back must come from before all layers.
  size_t from = middle - std::min(middle, period);
  DenseMap<Operation *, size_t> indices;
  for (size_t i = from; i < middle + period; ++i)
    indices[found.ops[i]] = i;
  sources.clear();
  for (size_t i = middle; i < middle + period; ++i) {
    Operation *op = found.ops[i];
    if (op->getNumRegions() || !isPlain(op))
      return false;
    auto &of = sources.emplace_back();
    for (Value operand : op->getOperands()) {
      auto it = indices.find(operand.getDefiningOp());
      if (it == indices.end())
        of.push_back({operand});
      else
        of.push_back(
            {{}, i - it->second, cast<OpResult>(operand).getResultNumber()});
    }
  }
  return true;
}

/// Whether `op`, at `index`, is like `other` and has the sources of an op at
/// `offset`.
bool Finder::isRepeated(size_t offset, Operation *op, Operation *other,
                        size_t index) const {
  if (!OpClasses::areAlike(op, other) || !isPlacedAlike(op, other))
    return false;
  for (auto [operand, source] :
       llvm::zip_equal(op->getOperands(), sources[offset])) {
    if (source.outside) {
      if (operand != source.outside)
        return false;
      continue;
    }
    if (source.distance > index)
      return false;
    Operation *from = found.ops[index - source.distance];
    if (source.result >= from->getNumResults() ||
        operand != from->getResult(source.result))
      return false;
  }
  return true;
}

/// Divides the ops from `first` to `end` into layers where the fewest values
/// pass from one layer to the next.
bool Finder::cut(size_t middle, size_t first, size_t end, size_t minCount) {
  size_t period = found.period;
  // How far each value of a layer goes, in ops.
  std::map<std::pair<size_t, unsigned>, size_t> reach;
  for (size_t offset = 0; offset < period; ++offset)
    for (const Source &source : sources[offset]) {
      if (source.outside)
        continue;
      // At most one cut may lie between an op and its source.
      if (source.distance > period)
        return false;
      size_t at = (offset + period - source.distance % period) % period;
      size_t &distance = reach[{at, source.result}];
      distance = std::max(distance, source.distance);
    }
  std::vector<unsigned> passing(period, 0);
  for (auto [value, distance] : reach)
    for (size_t i = 1; i <= distance; ++i)
      ++passing[(value.first + i) % period];
  size_t cutOffset = llvm::min_element(passing) - passing.begin();
  // The first cut from `first` on.
  size_t phase = (middle + cutOffset) % period;
  found.begin = first + (phase + period - first % period) % period;
  found.count = found.begin < end ? (end - found.begin) / period : 0;
  return found.count >= minCount;
}

/// Whether only layers use the values of the layers in the middle, and no other
/// op reads their parameters.
bool Finder::isClosed() const {
  size_t elidedBegin = found.getFirst(found.margin),
         elidedEnd = found.getFirst(found.count - found.margin),
         end = found.getFirst(found.count);
  Operation *firstElided = found.ops[elidedBegin],
            *firstKept = found.ops[elidedEnd];
  DenseSet<Attribute> parameters;
  for (size_t i = elidedBegin; i < elidedEnd; ++i)
    if (auto parameter = getParameter(found.ops[i]))
      if (!parameters.insert(parameter.getFqnAttr()).second)
        return false;
  auto visit = [&](Operation *op) {
    // These affect more than their operands.
    if (isa<AssignOpInterface, ToLocalOp, CallOpInterface>(op))
      return WalkResult::interrupt();
    if (auto parameter = getParameter(op))
      if (parameters.contains(parameter.getFqnAttr()))
        return WalkResult::interrupt();
    for (Value operand : op->getOperands()) {
      Operation *from = operand.getDefiningOp();
      if (from && from->getBlock() == &block &&
          !from->isBeforeInBlock(firstElided) &&
          from->isBeforeInBlock(firstKept))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  };
  for (size_t i = 0; i < elidedBegin; ++i)
    if (found.ops[i]->walk(visit).wasInterrupted())
      return false;
  // Operands of the kept layers aren't checked: the first of them takes values
  // of the last elided layer.
  for (size_t i = end; i < found.ops.size(); ++i)
    if (found.ops[i]->walk(visit).wasInterrupted())
      return false;
  for (size_t i = elidedEnd; i < end; ++i)
    if (auto parameter = getParameter(found.ops[i]))
      if (parameters.contains(parameter.getFqnAttr()))
        return false;
  return !visit(block.getTerminator()).wasInterrupted();
}

std::optional<Repetition> Finder::find(size_t minCount) {
  ArrayRef<Operation *> ops = found.ops;
  size_t middle = ops.size() / 2;
  if (ops.size() < 2 * kWindow)
    return std::nullopt;
  std::vector<size_t> looks;
  for (Operation *op : ops.drop_front(middle))
    looks.push_back(getLook(op));
  ArrayRef<size_t> window = ArrayRef(looks).take_front(kWindow);
  unsigned numTrials = 0;
  for (size_t period = 1;
       period <= ops.size() / minCount && period + kWindow <= looks.size() &&
       numTrials < kMaxTrials;
       ++period) {
    if (looks[period] != looks[0] ||
        ArrayRef(looks).slice(period, kWindow) != window)
      continue;
    ++numTrials;
    found.period = period;
    if (!describe(middle, period))
      continue;
    size_t end = middle + period, first = middle;
    for (; end < ops.size(); ++end)
      if (!isRepeated((end - middle) % period, ops[end], ops[end - period],
                      end))
        break;
    for (; first > 0; --first) {
      size_t offset = (period - (middle - (first - 1)) % period) % period;
      if (!isRepeated(offset, ops[first - 1], ops[first - 1 + period],
                      first - 1))
        break;
    }
    if ((end - first) / period >= minCount &&
        cut(middle, first, end, minCount) && isClosed())
      return std::move(found);
  }
  return std::nullopt;
}

std::optional<Repetition>
propagation::findRepetition(Block &block, size_t minCount, size_t margin,
                            function_ref<bool(Operation *)> isPlain) {
  return Finder(block, margin, isPlain).find(minCount);
}
