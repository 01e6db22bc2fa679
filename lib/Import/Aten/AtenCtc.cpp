//===- AtenCtc.cpp - Connectionist temporal classification ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loss is the negative logarithm of the probability of all paths of labels
// and blanks that become the target when repetitions and blanks are removed.
// With blanks around its labels, a target has L = 2 S + 1 states:
//
//   "to" → -, t, -, o, -
//
// From one frame to the next, a path stays in its state, goes on to the next
// one, or goes on by two from a label to another label. So the logarithms of
// the probabilities of all beginnings that end in the states, (N, L), follow
// frame by frame. The gradient is that of these steps.
// Source: Graves et al., "Connectionist Temporal Classification", 2006.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ComparePredicate;
using nn::ReduceKind;

/// The logarithm of a probability of 0, whose sums and differences are numbers.
static constexpr double kNever = -1e30;

namespace {
/// The operands, with a dimension for the batch.
class CtcLoss {
public:
  CtcLoss(AtenCall &call, ImportBuilder &b) : call(call), b(b) {}

  LogicalResult run();

private:
  /// The lengths of inputs or targets, (N, 1): a list or a tensor.
  Value readLengths(StringRef name);
  /// The labels of each target, (N, S), and blanks behind them.
  Value readTargets();
  /// The states of each target, (N, L).
  Value addBlanks(Value targets);
  /// By which logarithm a state is entered from the one before the last, (N,
  /// L): 0 or never.
  Value makeJumps(Value states);
  /// The states `distance` places before.
  Value shift(Value values, int64_t distance, Value fill);
  Value isLess(Value x, Value y) {
    return compare(b, ComparePredicate::LT, x, y);
  }
  Value never(int64_t size) {
    return b.splat({batch, size}, type, Scalar::of(kNever));
  }

  AtenCall &call;
  ImportBuilder &b;
  Type i64 = b.getI64Type(), type;
  int64_t frames, batch, blank;
  Value inputLengths, targetLengths;
};
} // namespace

Value CtcLoss::readLengths(StringRef name) {
  Value lengths;
  if (call.isTensor(name)) {
    lengths = castTo(b, call.tensor(name), i64);
  } else {
    llvm::SmallVector<int64_t> values = call.integers(name);
    auto listType =
        RankedTensorType::get({static_cast<int64_t>(values.size())}, i64);
    lengths = nn::ConstantOp::create(
        b, DenseElementsAttr::get(listType, ArrayRef(values)));
  }
  return b.reshape(lengths, {batch, 1});
}

Value CtcLoss::readTargets() {
  Value targets = castTo(b, call.tensor("targets"), i64);
  if (rankOf(targets) == 1) {
    // One after the other; each may have all of them.
    int64_t total = shapeOf(targets).front();
    Value first =
        sub(b, nn::CumSumOp::create(b, targetLengths, 0), targetLengths);
    Value index = add(b, first, iota(b, {1, total}, 1, i64));
    Value last = integer(b, i64, total - 1);
    index = b.reshape(binary<nn::MinimumOp>(b, index, last), {batch * total});
    targets = nn::IndexSelectOp::create(b, targets, index, 0);
    targets = b.reshape(targets, {batch, total});
  }
  Value isLabel =
      isLess(iota(b, {1, shapeOf(targets).back()}, 1, i64), targetLengths);
  return select(b, isLabel, targets, integer(b, i64, blank));
}

Value CtcLoss::addBlanks(Value targets) {
  int64_t size = shapeOf(targets).back();
  auto blanks = [&](ArrayRef<int64_t> shape) {
    return b.splat(shape, i64, Scalar::of(blank));
  };
  Value pairs =
      b.concat({blanks({batch, size, 1}), unsqueeze(b, targets, 2)}, 2);
  return b.concat({b.reshape(pairs, {batch, 2 * size}), blanks({batch, 1})}, 1);
}

Value CtcLoss::shift(Value values, int64_t distance, Value fill) {
  int64_t size = shapeOf(values).back();
  if (distance >= size)
    return fill;
  return b.concat(
      {b.slice(fill, 1, 0, distance), b.slice(values, 1, 0, size - distance)},
      1);
}

Value CtcLoss::makeJumps(Value states) {
  int64_t size = shapeOf(states).back();
  Value before =
      shift(states, 2, b.splat({batch, size}, i64, Scalar::of(blank)));
  Value isOther = compare(b, ComparePredicate::NE, states, before);
  Value isLabel =
      compare(b, ComparePredicate::NE, states, integer(b, i64, blank));
  Value isAllowed = binary<nn::LogicalAndOp>(b, isOther, isLabel);
  return select(b, isAllowed, constant(b, type, 0), constant(b, type, kNever));
}

LogicalResult CtcLoss::run() {
  constexpr int64_t kMaxFrames = 1024;
  Value logarithms = b.widen(call.tensor("log_probs"));
  if (rankOf(logarithms) == 2)
    logarithms = unsqueeze(b, logarithms, 1);
  type = elementOf(logarithms);
  frames = shapeOf(logarithms)[0], batch = shapeOf(logarithms)[1];
  blank = call.integer("blank");
  if (frames > kMaxFrames)
    return call.unsupported("of " + llvm::Twine(frames) +
                            " frames, expected at most " +
                            llvm::Twine(kMaxFrames));
  if (typeOf(call.tensor("targets")).getNumElements() == 0)
    return call.unsupported("without targets");
  inputLengths = readLengths("input_lengths");
  targetLengths = readLengths("target_lengths");
  Value states = addBlanks(readTargets()), jumps = makeJumps(states);
  int64_t size = shapeOf(states).back();

  Value clamped =
      binary<nn::MaximumOp>(b, logarithms, constant(b, type, kNever));
  Value indices = broadcast(b, unsqueeze(b, states, 0), {frames, batch, size});
  Value emitted = nn::GatherOp::create(b, clamped, indices, 2);
  // Before the first frame, a path is in the first blank.
  Value isFirst = compare(b, ComparePredicate::EQ,
                          iota(b, {batch, size}, 1, i64), integer(b, i64, 0));
  Value alpha = select(b, isFirst, constant(b, type, 0), never(size));
  for (int64_t frame = 0; frame < frames; ++frame) {
    Value next = shift(alpha, 1, never(size));
    Value jump = add(b, shift(alpha, 2, never(size)), jumps);
    Value largest = b.stopGradient(
        binary<nn::MaximumOp>(b, alpha, binary<nn::MaximumOp>(b, next, jump)));
    auto scaled = [&](Value x) { return exp(b, sub(b, x, largest)); };
    Value sum = add(b, add(b, scaled(alpha), scaled(next)), scaled(jump));
    Value reached =
        add(b, add(b, unary<nn::LogOp>(b, sum), largest),
            b.reshape(b.slice(emitted, 0, frame, 1), {batch, size}));
    Value isInside = isLess(integer(b, i64, frame), inputLengths);
    alpha = select(b, isInside, reached, alpha);
  }

  // A path ends in the last label or in the blank after it.
  Value last = mul(b, targetLengths, integer(b, i64, 2));
  Value state = iota(b, {1, size}, 1, i64);
  Value isEnd =
      binary<nn::LogicalAndOp>(b, compare(b, ComparePredicate::LE, state, last),
                               compare(b, ComparePredicate::GE, state,
                                       sub(b, last, integer(b, i64, 1))));
  Value ends = select(b, isEnd, alpha, constant(b, type, kNever));
  Value largest = b.stopGradient(b.reduce(ReduceKind::Max, ends, {1}, true));
  Value sum =
      b.reduce(ReduceKind::Sum, exp(b, sub(b, ends, largest)), {1}, true);
  Value loss = neg(b, add(b, unary<nn::LogOp>(b, sum), largest));

  // PyTorch's gradient is that for logarithms of a softmax: it has the
  // probabilities of the frames besides.
  Value isInside = isLess(iota(b, {frames, 1, 1}, 0, i64),
                          b.reshape(inputLengths, {1, batch, 1}));
  Value odds = b.reduce(ReduceKind::Sum, keep(b, isInside, exp(b, clamped)),
                        {0, 2}, false);
  odds = b.reshape(odds, {batch, 1});
  loss = add(b, loss, sub(b, odds, b.stopGradient(odds)));

  Value isImpossible = compare(b, ComparePredicate::GT, loss, -kNever / 2);
  loss = select(b, isImpossible,
                constant(b, type, call.flag("zero_infinity") ? 0 : HUGE_VAL),
                loss);
  loss = b.reshape(loss, {batch});
  // 1 is the mean of the losses by the lengths of their targets, 2 the sum.
  int64_t reduction = call.integer("reduction");
  if (reduction == 1) {
    Value length = binary<nn::MaximumOp>(b, targetLengths, integer(b, i64, 1));
    loss = div(b, loss, castTo(b, b.reshape(length, {batch}), type));
  }
  if (reduction != 0)
    loss = b.reduce(reduction == 1 ? ReduceKind::Mean : ReduceKind::Sum, loss,
                    {0}, false);
  loss = castTo(b, loss, call.resultElement());
  return call.result(b.reshape(loss, call.resultShape()));
}

static LogicalResult ctcLoss(AtenCall &call, ImportBuilder &b) {
  return CtcLoss(call, b).run();
}

void mlir::tp::addCtcOps(AtenTable &table) {
  table["ctc_loss"] = {ctcLoss, "log_probs targets input_lengths "
                                "target_lengths blank reduction zero_infinity"};
}
