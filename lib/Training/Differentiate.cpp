//===- Differentiate.cpp - Reverse mode on straight-line code -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A branch (scf.if) becomes a branch on the same condition in the backward
// pass. It computes the values that it needs from the forward pass again,
// because values of a branch that wasn't taken can't be kept.
//
//===----------------------------------------------------------------------===//

#include "tp/Training/Differentiate.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Interfaces/GradientOpInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

bool isFloat(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// A part of a tensor along one dimension; the rest is zero.
struct Part {
  Value value;
  int64_t start, size;
};

/// A value and its initial gradient; null stands for ones.
struct Seed {
  Value value, gradient;
};

/// The values that `op` reads, including those read in its regions.
SetVector<Value> getReads(Operation *op) {
  SetVector<Value> values;
  values.insert(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

class Differentiator {
public:
  Differentiator(Block &block, ArrayRef<Seed> seeds,
                 const DifferentiateOptions &options)
      : block(block), seeds(seeds), options(options),
        forward(getOpsOfPass(block, options.previous, block.getTerminator())) {}

  FailureOr<Gradients> run(ArrayRef<Value> values) {
    for (Value value : values)
      active.insert(value);
    findActive();
    findRelevant();
    if (failed(checkOps()))
      return failure();
    buildForward();
    Operation *last = block.getTerminator()->getPrevNode();
    if (failed(buildBackward()))
      return failure();
    Gradients gradients;
    for (Value value : values)
      gradients.of[value] = getSum(value);
    gradients.loss = seeds.front().value;
    gradients.begin = last ? last->getNextNode() : &block.front();
    eraseReplaced();
    return gradients;
  }

private:
  /// An op that the gradient passes through.
  struct Step {
    Operation *op;
    /// The values that stand for its results in the forward pass.
    SmallVector<Value> results;
    SmallVector<Value> saved = {};
    bool isReplaced = false;
  };

  /// Finds the values that depend on the requested ones.
  void findActive() {
    for (Operation *op : forward) {
      auto differentiable = dyn_cast<GradientOpInterface>(op);
      if (differentiable && !differentiable.passesGradient())
        continue;
      if (llvm::any_of(getReads(op),
                       [&](Value value) { return active.contains(value); }))
        for (Value result : op->getResults())
          if (isFloat(result))
            active.insert(result);
    }
  }

  /// Finds the active ops that the loss depends on, last first.
  void findRelevant() {
    DenseSet<Value> needed;
    for (const Seed &seed : seeds)
      needed.insert(seed.value);
    for (Operation *op : llvm::reverse(forward)) {
      if (llvm::none_of(op->getResults(), [&](Value result) {
            return needed.contains(result) && active.contains(result);
          }))
        continue;
      bool passes = false;
      for (Value value : getReads(op))
        if (active.contains(value)) {
          needed.insert(value);
          passes = true;
        }
      if (passes)
        steps.push_back({op, llvm::to_vector_of<Value>(op->getResults())});
    }
  }

  LogicalResult checkOps() {
    bool isMissing = false;
    for (Step &step : llvm::reverse(steps)) {
      if (isa<GradientOpInterface, scf::IfOp>(step.op))
        continue;
      isMissing = true;
      if (isa<LoopLikeOpInterface>(step.op)) {
        step.op->emitError("'")
            << step.op->getName()
            << "' has no gradient, and the loss depends on a parameter through "
               "it; only an 'scf.for' of constant bounds and at most "
            << kMaxIterations << " iterations is differentiated";
        continue;
      }
      step.op->emitError("'")
          << step.op->getName()
          << "' has no gradient, and the loss depends on a parameter through "
             "it; freeze the parameters before it, or implement "
             "GradientOpInterface";
    }
    return failure(isMissing);
  }

  /// Gives random numbers to ops inside `op`, a branch, so that its gradient
  /// computes them again with the same ones.
  void buildForwardInside(Operation &op) {
    op.walk([&](GradientOpInterface inner) {
      OpBuilder builder(inner);
      SmallVector<Value> saved;
      ForwardBuilder forward(inner.getLoc(), builder, options.getStep,
                             options.seed, *options.stream, saved);
      Operation *previous = inner->getPrevNode();
      SmallVector<Value> results = inner.buildForward(forward);
      nameOps(previous ? previous->getNextNode() : &inner->getBlock()->front(),
              inner, inner);
      if (results.empty())
        return;
      inner->replaceAllUsesWith(results);
      inner->erase();
    });
  }

  /// Also builds it for ops that no gradient passes through, such as the
  /// dropout of an input.
  void buildForward() {
    DenseMap<Operation *, Step *> stepOf;
    for (Step &step : steps)
      stepOf[step.op] = &step;
    for (Operation *op : forward) {
      auto differentiable = dyn_cast<GradientOpInterface>(op);
      if (!differentiable) {
        buildForwardInside(*op);
        continue;
      }
      Step *step = stepOf.lookup(op);
      SmallVector<Value> saved;
      OpBuilder builder(op);
      Operation *previous = op->getPrevNode();
      ForwardBuilder forward(op->getLoc(), builder, options.getStep,
                             options.seed, *options.stream,
                             step ? step->saved : saved);
      SmallVector<Value> results = differentiable.buildForward(forward);
      nameOps(previous ? previous->getNextNode() : &block.front(), op, op);
      if (results.empty())
        continue;
      for (auto [old, now] : llvm::zip_equal(op->getResults(), results)) {
        old.replaceAllUsesWith(now);
        if (active.contains(old))
          active.insert(now);
        for (Seed &seed : seeds)
          if (old == seed.value)
            seed.value = now;
      }
      if (step) { // its operands are still needed
        step->results = results;
        step->isReplaced = true;
      } else {
        op->erase();
      }
    }
  }

  LogicalResult buildBackward() {
    OpBuilder builder(block.getTerminator());
    for (const Seed &seed : seeds) {
      ImplicitLocOpBuilder b(seed.value.getLoc(), builder);
      add(seed.value,
          seed.gradient ? seed.gradient
                        : nn::expr::filled(b, nn::expr::typeOf(seed.value), 1));
    }
    for (Step &step : steps) {
      SmallVector<Value> gradients;
      for (Value result : step.results)
        gradients.push_back(getSum(result));
      if (llvm::none_of(gradients, [](Value value) { return !!value; }))
        continue;
      if (auto branch = dyn_cast<scf::IfOp>(step.op)) {
        if (failed(differentiateBranch(branch, gradients)))
          return failure();
        continue;
      }
      llvm::BitVector wanted(step.op->getNumOperands());
      for (auto [i, operand] : llvm::enumerate(step.op->getOperands()))
        if (active.contains(operand))
          wanted.set(i);
      Operation *previous = block.getTerminator()->getPrevNode();
      auto set = [&](unsigned operand, Value gradient) {
        if (wanted.test(operand))
          add(step.op->getOperand(operand), gradient,
              step.op->getAttr(kStageAttr));
      };
      GradientBuilder backward(step.op->getLoc(), builder, step.results,
                               gradients, step.saved, wanted, set);
      cast<GradientOpInterface>(step.op).buildGradient(backward);
      nameOps(previous->getNextNode(), block.getTerminator(), step.op);
    }
    return success();
  }

  /// Builds the gradients of the values that the sides of `branch` read, as a
  /// branch of its own.
  LogicalResult differentiateBranch(scf::IfOp branch,
                                    ArrayRef<Value> gradients) {
    SmallVector<Value> values;
    for (Value value : getReads(branch))
      if (active.contains(value))
        values.push_back(value);
    OpBuilder builder(block.getTerminator());
    auto backward = scf::IfOp::create(
        builder, branch.getLoc(), ValueRange(values).getTypes(),
        branch.getCondition(), /*addThenBlock=*/true,
        /*addElseBlock=*/true);
    for (auto [from, to] :
         {std::pair(branch.thenBlock(), backward.thenBlock()),
          std::pair(branch.elseBlock(), backward.elseBlock())}) {
      to->clear();
      OpBuilder inside = OpBuilder::atBlockEnd(to);
      IRMapping again;
      for (Operation &op : *from)
        inside.clone(op, again);
      Operation *yield = to->getTerminator();
      SmallVector<Seed> yielded;
      for (auto [value, gradient] : llvm::zip(yield->getOperands(), gradients))
        if (gradient)
          yielded.push_back({value, gradient});
      FailureOr<Gradients> result =
          Differentiator(*to, yielded, options).run(values);
      if (failed(result))
        return failure();
      SmallVector<Value> results;
      ImplicitLocOpBuilder b(branch.getLoc(), OpBuilder(yield));
      for (Value value : values) {
        Value gradient = result->of.lookup(value);
        results.push_back(
            gradient ? gradient
                     : nn::expr::filled(b, nn::expr::typeOf(value), 0));
      }
      yield->setOperands(results);
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*to)))
        if (isOpTriviallyDead(&op))
          op.erase();
    }
    for (auto [value, gradient] : llvm::zip(values, backward.getResults()))
      add(value, gradient);
    return success();
  }

  /// Ops that are built for `from` belong to its module, and to its stage of a
  /// pipeline.
  static void nameOps(Operation *begin, Operation *end, Operation *from) {
    inherit(kFqnAttr, begin, end, from);
    inherit(kStageAttr, begin, end, from);
  }

  /// Gives the ops that lack the attribute `name` that of `from`.
  static void inherit(StringRef name, Operation *begin, Operation *end,
                      Operation *from) {
    Attribute attr = from->getAttr(name);
    for (Operation *op = begin; attr && op != end; op = op->getNextNode())
      if (!op->hasAttr(name))
        op->setAttr(name, attr);
  }

  /// `stage` is that of the use that the gradient comes from.
  void add(Value value, Value gradient, Attribute stage = {}) {
    auto [it, isNew] = stageOfUses.try_emplace(value, stage);
    if (it->second != stage)
      it->second = {};
    contributions[value].push_back(gradient);
  }

  /// The sum of the gradients added for `value`; null if there are none.
  Value getSum(Value value) {
    auto found = contributions.find(value);
    if (found == contributions.end())
      return {};
    SmallVector<Value> &parts = found->second;
    if (parts.size() > 1) {
      ImplicitLocOpBuilder b(value.getLoc(), OpBuilder(block.getTerminator()));
      Operation *previous = block.getTerminator()->getPrevNode();
      joinParts(b, parts);
      // Add them in the order of the forward pass's uses, as autograd does.
      Value sum = parts.front();
      for (Value part : ArrayRef(parts).drop_front())
        sum = nn::expr::add(b, sum, part);
      parts.assign({sum});
      // A value that several ops of a stage use is added up there, before the
      // sum leaves the stage.
      Operation *begin = previous->getNextNode(), *end = block.getTerminator();
      if (Attribute stage = stageOfUses.lookup(value))
        for (Operation *op = begin; op != end; op = op->getNextNode())
          op->setAttr(kStageAttr, stage);
      if (Operation *from = value.getDefiningOp())
        nameOps(begin, end, from);
    }
    return parts.front();
  }

  /// The dimension and the part of a concatenation of one part with zeros.
  static std::optional<std::pair<int64_t, Part>> getPart(Value value) {
    auto concat = value.getDefiningOp<nn::ConcatOp>();
    if (!concat)
      return std::nullopt;
    std::optional<Part> part;
    int64_t dim = concat.getDim(), start = 0;
    for (Value operand : concat.getInputs()) {
      int64_t size = nn::expr::typeOf(operand).getDimSize(dim);
      if (!matchPattern(operand, m_AnyZeroFloat())) {
        if (part)
          return std::nullopt;
        part = Part{operand, start, size};
      }
      start += size;
    }
    if (!part)
      return std::nullopt;
    return std::pair(dim, *part);
  }

  /// Concatenates the gradients of slices that don't overlap instead of adding
  /// them, so that the parts of a fused weight keep their placements.
  static void joinParts(ImplicitLocOpBuilder &b, SmallVector<Value> &values) {
    SmallVector<Value> others;
    llvm::MapVector<int64_t, SmallVector<Part>> byDim;
    for (Value value : values) {
      if (auto part = getPart(value))
        byDim[part->first].push_back(part->second);
      else
        others.push_back(value);
    }
    auto type = nn::expr::typeOf(values.front());
    for (auto &[dim, parts] : byDim) {
      llvm::sort(parts, [](const Part &a, const Part &b) {
        return a.start < b.start;
      });
      while (!parts.empty()) {
        SmallVector<Part> row, rest;
        int64_t end = 0;
        for (const Part &part : parts) {
          if (part.start < end) {
            rest.push_back(part);
            continue;
          }
          row.push_back(part);
          end = part.start + part.size;
        }
        others.push_back(concatenate(b, row, dim, type));
        parts = rest;
      }
    }
    values = others;
  }

  static Value concatenate(ImplicitLocOpBuilder &b, ArrayRef<Part> row,
                           int64_t dim, RankedTensorType type) {
    SmallVector<Value> pieces;
    int64_t end = 0;
    auto fill = [&](int64_t to) {
      if (to == end)
        return;
      SmallVector<int64_t> shape(type.getShape());
      shape[dim] = to - end;
      pieces.push_back(nn::expr::filled(b, type.clone(shape), 0));
    };
    for (const Part &part : row) {
      fill(part.start);
      pieces.push_back(part.value);
      end = part.start + part.size;
    }
    fill(type.getDimSize(dim));
    return nn::ConcatOp::create(b, pieces, dim);
  }

  void eraseReplaced() {
    for (Step &step : steps)
      if (step.isReplaced)
        step.op->erase();
  }

  Block &block;
  SmallVector<Seed> seeds;
  const DifferentiateOptions &options;
  SmallVector<Operation *> forward;
  DenseSet<Value> active;
  /// Last op first.
  SmallVector<Step> steps;
  DenseMap<Value, SmallVector<Value>> contributions;
  /// The stage of a pipeline that all ops that use the value belong to; null if
  /// they belong to several, or to none.
  DenseMap<Value, Attribute> stageOfUses;
};

} // namespace

SmallVector<Operation *> tp::getOpsOfPass(Block &block, Operation *previous,
                                          Operation *end) {
  auto begin = previous ? std::next(previous->getIterator()) : block.begin();
  llvm::SetVector<Operation *> ops; // of this pass alone
  for (Operation &op : llvm::make_range(begin, end->getIterator()))
    ops.insert(&op);
  llvm::SetVector<Operation *> shared;
  if (previous) {
    SmallVector<std::pair<Operation *, bool>> stack;
    auto visitReads = [&](Operation *op) {
      SetVector<Value> reads = getReads(op);
      for (Value value : llvm::reverse(reads))
        if (Operation *producer = value.getDefiningOp();
            producer && producer->getBlock() == &block &&
            !ops.contains(producer))
          stack.push_back({producer, false});
    };
    for (Operation *op : llvm::reverse(ops))
      visitReads(op);
    while (!stack.empty()) {
      auto [op, areReadsVisited] = stack.pop_back_val();
      if (shared.contains(op))
        continue;
      if (areReadsVisited) {
        shared.insert(op);
        continue;
      }
      stack.push_back({op, true});
      visitReads(op);
    }
  }
  SmallVector<Operation *> result = shared.takeVector();
  llvm::append_range(result, ops);
  return result;
}

FailureOr<Gradients> tp::differentiate(Block &block, Value loss,
                                       ArrayRef<Value> values,
                                       const DifferentiateOptions &options) {
  return Differentiator(block, Seed{loss, {}}, options).run(values);
}
