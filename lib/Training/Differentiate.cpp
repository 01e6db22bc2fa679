//===- Differentiate.cpp - reverse mode on straight-line code -------------===//

#include "tp/Training/Differentiate.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/NN/NN.h"
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

/// A part of a tensor along one dimension, the rest of which is zero.
struct Part {
  Value value;
  int64_t start, size;
};

class Differentiator {
public:
  Differentiator(Block &block, Value loss, const DifferentiateOptions &options)
      : block(block), loss(loss), options(options) {}

  FailureOr<Gradients> run(ArrayRef<Value> values) {
    for (Value value : values)
      active.insert(value);
    findActive();
    findRelevant();
    if (failed(checkOps()))
      return failure();
    buildForward();
    Operation *last = block.getTerminator()->getPrevNode();
    buildBackward();
    Gradients gradients;
    for (Value value : values)
      gradients.of[value] = getSum(value);
    gradients.loss = loss;
    gradients.begin = last ? last->getNextNode() : &block.front();
    eraseReplaced();
    return gradients;
  }

private:
  /// An op that the gradient passes through.
  struct Step {
    Operation *op;
    /// What stands for its results in the forward pass.
    SmallVector<Value> results;
    SmallVector<Value> saved;
    bool isReplaced = false;
  };

  /// What depends on the values asked for.
  void findActive() {
    for (Operation &op : block.without_terminator()) {
      bool depends = llvm::any_of(op.getOperands(), [&](Value operand) {
        return active.contains(operand);
      });
      op.walk([&](Operation *inner) {
        depends |= llvm::any_of(inner->getOperands(), [&](Value operand) {
          return active.contains(operand);
        });
      });
      if (depends)
        for (Value result : op.getResults())
          if (isFloat(result))
            active.insert(result);
    }
  }

  /// The active ops that the loss depends on, last first.
  void findRelevant() {
    DenseSet<Value> needed{loss};
    for (Operation &op : llvm::reverse(block.without_terminator())) {
      if (llvm::none_of(op.getResults(), [&](Value result) {
            return needed.contains(result) && active.contains(result);
          }))
        continue;
      bool passes = op.getNumRegions() != 0;
      for (Value operand : op.getOperands())
        if (active.contains(operand)) {
          needed.insert(operand);
          passes = true;
        }
      if (passes)
        steps.push_back({&op, llvm::to_vector_of<Value>(op.getResults())});
    }
  }

  LogicalResult checkOps() {
    bool isMissing = false;
    for (Step &step : llvm::reverse(steps)) {
      if (isa<GradientOpInterface>(step.op))
        continue;
      isMissing = true;
      step.op->emitError("'")
          << step.op->getName()
          << "' has no gradient, and the loss depends on a parameter through "
             "it; freeze the parameters before it, or implement "
             "GradientOpInterface";
    }
    return failure(isMissing);
  }

  /// Also of ops that no gradient passes through: the dropout of an input.
  void buildForward() {
    DenseMap<Operation *, Step *> stepOf;
    for (Step &step : steps)
      stepOf[step.op] = &step;
    for (Operation &op :
         llvm::make_early_inc_range(block.without_terminator())) {
      auto differentiable = dyn_cast<GradientOpInterface>(op);
      if (!differentiable)
        continue;
      Step *step = stepOf.lookup(&op);
      SmallVector<Value> saved;
      OpBuilder builder(&op);
      Operation *previous = op.getPrevNode();
      ForwardBuilder forward(op.getLoc(), builder, options.getStep,
                             options.seed, *options.stream,
                             step ? step->saved : saved);
      SmallVector<Value> results = differentiable.buildForward(forward);
      nameOps(previous ? previous->getNextNode() : &block.front(), &op, &op);
      if (results.empty())
        continue;
      for (auto [old, now] : llvm::zip_equal(op.getResults(), results)) {
        old.replaceAllUsesWith(now);
        if (active.contains(old))
          active.insert(now);
        if (old == loss)
          loss = now;
      }
      if (step) { // its operands are still to be asked for
        step->results = results;
        step->isReplaced = true;
      } else {
        op.erase();
      }
    }
  }

  void buildBackward() {
    OpBuilder builder(block.getTerminator());
    {
      ImplicitLocOpBuilder b(loss.getLoc(), builder);
      add(loss, nn::expr::filled(b, nn::expr::typeOf(loss), 1));
    }
    for (Step &step : steps) {
      SmallVector<Value> gradients;
      for (Value result : step.results)
        gradients.push_back(getSum(result));
      if (llvm::none_of(gradients, [](Value value) { return !!value; }))
        continue;
      llvm::BitVector wanted(step.op->getNumOperands());
      for (auto [i, operand] : llvm::enumerate(step.op->getOperands()))
        if (active.contains(operand))
          wanted.set(i);
      Operation *previous = block.getTerminator()->getPrevNode();
      auto set = [&](unsigned operand, Value gradient) {
        if (wanted.test(operand))
          add(step.op->getOperand(operand), gradient);
      };
      GradientBuilder backward(step.op->getLoc(), builder, step.results,
                               gradients, step.saved, wanted, set);
      cast<GradientOpInterface>(step.op).buildGradient(backward);
      nameOps(previous->getNextNode(), block.getTerminator(), step.op);
    }
  }

  /// What is made for an op belongs to its module.
  static void nameOps(Operation *begin, Operation *end, Operation *from) {
    Attribute fqn = from->getAttr(kFqnAttr);
    for (Operation *op = begin; fqn && op != end; op = op->getNextNode())
      if (!op->hasAttr(kFqnAttr))
        op->setAttr(kFqnAttr, fqn);
  }

  void add(Value value, Value gradient) {
    contributions[value].push_back(gradient);
  }

  /// The sum of what has been added for `value`; null where nothing was.
  Value getSum(Value value) {
    auto found = contributions.find(value);
    if (found == contributions.end())
      return {};
    SmallVector<Value> &parts = found->second;
    if (parts.size() > 1) {
      ImplicitLocOpBuilder b(value.getLoc(), OpBuilder(block.getTerminator()));
      Operation *previous = block.getTerminator()->getPrevNode();
      joinParts(b, parts);
      // In the order of the forward pass's uses, as autograd adds them.
      Value sum = parts.front();
      for (Value part : ArrayRef(parts).drop_front())
        sum = nn::expr::add(b, sum, part);
      parts.assign({sum});
      if (Operation *from = value.getDefiningOp())
        nameOps(previous->getNextNode(), block.getTerminator(), from);
    }
    return parts.front();
  }

  /// The part that a concatenation of it with zeros holds.
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

  /// Gradients of slices that don't overlap are put side by side, not added: a
  /// fused weight's parts keep their placements.
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
    return nn::ConcatOp::create(b, type, pieces, b.getI64IntegerAttr(dim));
  }

  void eraseReplaced() {
    for (Step &step : steps)
      if (step.isReplaced)
        step.op->erase();
  }

  Block &block;
  Value loss;
  const DifferentiateOptions &options;
  DenseSet<Value> active;
  /// Last op first.
  SmallVector<Step> steps;
  DenseMap<Value, SmallVector<Value>> contributions;
};

} // namespace

FailureOr<Gradients> tp::differentiate(Block &block, Value loss,
                                       ArrayRef<Value> values,
                                       const DifferentiateOptions &options) {
  return Differentiator(block, loss, options).run(values);
}
