//===- TrainingLoss.cpp - The loss of a training step ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainingStep.h"
#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/TP/TP.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

/// Emits an error at `loc` of the training file, or else at the loss there;
/// without a file, at the function.
static InFlightDiagnostic emitLossError(func::FuncOp function,
                                        const LossConfig &config,
                                        FileLineColLoc loc) {
  if (!config.loc)
    return function.emitError();
  InFlightDiagnostic error = emitError(loc ? loc : config.loc);
  error.attachNote(function.getLoc()) << "the model is here";
  return error;
}

namespace {

class LossBuilder {
public:
  LossBuilder(func::FuncOp function, const LossConfig &config)
      : function(function), config(config),
        b(config.loc ? Location(config.loc) : function.getLoc(),
          OpBuilder(function.getBody().front().getTerminator())) {}

  /// Builds the loss of `output`, result `index`.
  FailureOr<Value> build(Value output, unsigned index) {
    auto type = dyn_cast<RankedTensorType>(output.getType());
    if (!type || !isa<FloatType>(type.getElementType()))
      return emitLossError(function, config, config.outputLoc)
             << "the loss is of result " << index
             << ", which should be a float tensor, found " << output.getType();
    switch (config.kind) {
    case LossConfig::Output:
      if (type.getRank() != 0)
        return emitLossError(function, config, config.outputLoc)
               << "the loss, result " << index << ", should be a scalar, found "
               << type
               << "; reduce it, or give a training file with another 'loss'";
      return output;
    case LossConfig::MSE:
      return buildSquares(output);
    case LossConfig::CrossEntropy:
      return buildCrossEntropy(output);
    }
    llvm_unreachable("all losses are handled");
  }

private:
  Value buildSquares(Value output) {
    auto type = typeOf(output);
    // Small floats are squared and summed in f32, as PyTorch does.
    Type wide = getWideElement(type.getElementType());
    Value difference =
        sub(b, castTo(b, output, wide), castTo(b, addTarget(type), wide));
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    Value loss = reduce(b,
                        config.reduction == nn::LossReduction::Sum
                            ? nn::ReduceKind::Sum
                            : nn::ReduceKind::Mean,
                        mul(b, difference, difference), dims,
                        /*keepdim=*/false);
    return castTo(b, loss, type.getElementType());
  }

  FailureOr<Value> buildCrossEntropy(Value logits) {
    auto type = typeOf(logits);
    int64_t rank = type.getRank(), dim = config.classDim;
    if (dim < 0)
      dim += rank;
    if (rank == 0 || dim < 0 || dim >= rank)
      return emitLossError(function, config, config.classDimLoc)
             << "class_dim " << config.classDim
             << " isn't a dimension of the logits, " << type;
    SmallVector<int64_t> shape(type.getShape());
    int64_t numClasses = shape[dim];
    if (!config.weights.empty() &&
        static_cast<int64_t>(config.weights.size()) != numClasses)
      return emitLossError(function, config, config.weightLoc)
             << "the loss has " << config.weights.size() << " weights for "
             << numClasses << " classes";
    shape.erase(shape.begin() + dim);
    Value target = addTarget(RankedTensorType::get(shape, b.getI64Type()));
    // nn.cross_entropy has the classes second.
    if (rank > 2 && dim == rank - 1) {
      int64_t count = ShapedType::getNumElements(shape);
      logits = reshape(b, logits, {count, numClasses});
      target = reshape(b, target, {count});
    } else if (rank > 1 && dim != 1) {
      SmallVector<int64_t> permutation;
      for (int64_t d = 0; d < rank; ++d)
        if (d != dim)
          permutation.push_back(d);
      permutation.insert(permutation.begin() + 1, dim);
      logits = transpose(b, logits, permutation);
    }
    return Value(nn::CrossEntropyOp::create(
        b, logits, target, buildWeights(type.getElementType()),
        config.reduction, b.getI64IntegerAttr(config.ignoreIndex),
        b.getF64FloatAttr(config.labelSmoothing), UnitAttr()));
  }

  /// The classes' weights; null if all count alike.
  Value buildWeights(Type element) {
    if (config.weights.empty())
      return {};
    SmallVector<Attribute> numbers;
    for (double number : config.weights)
      numbers.push_back(b.getFloatAttr(element, number));
    auto count = static_cast<int64_t>(numbers.size());
    return nn::ConstantOp::create(
        b, DenseElementsAttr::get(RankedTensorType::get({count}, element),
                                  numbers));
  }

  Value addTarget(RankedTensorType type) {
    unsigned index = function.getNumArguments();
    NamedAttrList attrs;
    attrs.set(kNameAttr, b.getStringAttr("target"));
    attrs.set(kLossAttr, b.getUnitAttr());
    (void)function.insertArgument(
        index, type, attrs.getDictionary(b.getContext()), function.getLoc());
    return function.getArgument(index);
  }

  func::FuncOp function;
  const LossConfig &config;
  ImplicitLocOpBuilder b;
};

} // namespace

std::optional<unsigned> tp::findLoss(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (function.getResultAttr(i, kLossAttr))
      return i;
  return std::nullopt;
}

BlockArgument tp::findTarget(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (function.getArgAttr(i, kLossAttr))
      return function.getArgument(i);
  return {};
}

LogicalResult tp::addLoss(func::FuncOp function, const LossConfig &config) {
  Operation *terminator = function.getBody().front().getTerminator();
  auto index = static_cast<unsigned>(config.output);
  if (index >= terminator->getNumOperands())
    return emitLossError(function, config, config.outputLoc)
           << "the loss is of result " << index << ", but '@"
           << function.getName() << "' has " << terminator->getNumOperands()
           << " results";
  FailureOr<Value> loss =
      LossBuilder(function, config).build(terminator->getOperand(index), index);
  if (failed(loss))
    return failure();
  Builder b(function.getContext());
  if (config.kind == LossConfig::Output) {
    function.setResultAttr(index, kLossAttr, b.getUnitAttr());
    return success();
  }
  SmallVector<Value> results(terminator->getOperands());
  SmallVector<Attribute> attrs;
  for (unsigned i = 0; i < results.size(); ++i) {
    DictionaryAttr own = function.getResultAttrDict(i);
    attrs.push_back(own ? own : b.getDictionaryAttr({}));
  }
  results.push_back(*loss);
  attrs.push_back(
      b.getDictionaryAttr(b.getNamedAttr(kLossAttr, b.getUnitAttr())));
  setResults(function, results, attrs);
  return success();
}
