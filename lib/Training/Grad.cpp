//===- Grad.cpp - a model's training step ---------------------------------===//

#include "ComputeType.h"
#include "Optimizer.h"
#include "Recompute.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/TP/Batch.h"
#include "tp/Plan/Pattern.h"
#include "tp/Training/Differentiate.h"
#include "tp/Training/Passes.h"
#include "tp/Training/TrainingFile.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp {
#define GEN_PASS_DEF_GRAD
#include "tp/Training/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

namespace {

class Grad : public tp::impl::GradBase<Grad> {
public:
  using GradBase::GradBase;

private:
  void runOnOperation() override {
    config = {};
    parameters.clear();
    trained.clear();
    sums.clear();
    totalLoss = stepParameter = {};
    stream = 0;
    if (!train.empty()) {
      FailureOr<TrainingConfig> read = readTrainingFile(train, &getContext());
      if (failed(read))
        return signalPassFailure();
      config = *read;
    }
    if (failed(findFunction()))
      return signalPassFailure();
    collectModules();
    inlineModules(function);
    if (failed(checkBlock()) || failed(collectParameters()) ||
        failed(checkPatterns()))
      return signalPassFailure();
    if (config.computeType)
      setComputeType(getBlock(), config.computeType);
    FailureOr<Value> loss = buildLoss();
    if (failed(loss) || failed(buildStep(*loss)))
      return signalPassFailure();
  }

  Block &getBlock() { return function.getBody().front(); }
  Operation *getReturn() { return getBlock().getTerminator(); }

  //===--------------------------------------------------------------------===//
  // What there is
  //===--------------------------------------------------------------------===//

  LogicalResult findFunction() {
    FailureOr<SmallVector<func::FuncOp>> roots = getRoots(getOperation());
    if (failed(roots))
      return failure();
    for (func::FuncOp root : *roots)
      if (roots->size() == 1 || root.getName() == "main") {
        function = root;
        return success();
      }
    return getOperation().emitError(
        roots->empty() ? "there is no function to differentiate"
                       : "there are several entry points, and none of them is "
                         "'@main', to differentiate");
  }

  LogicalResult checkBlock() {
    if (!function.getBody().hasOneBlock())
      return function.emitError("'@")
             << function.getName()
             << "' has several blocks; straight-line code is differentiated";
    return success();
  }

  void collectModules() {
    modules.clear();
    function.walk(
        [&](nn::ModuleOp module) { modules.push_back(module.getFqn().str()); });
  }

  LogicalResult collectParameters() {
    for (auto op : getBlock().getOps<nn::ParameterOp>())
      parameters[op.getFqnAttr()].push_back(op);
    return success();
  }

  /// Whether `pattern` means `fqn` or something that contains it.
  static bool matches(StringRef pattern, StringRef fqn) {
    for (size_t dot = fqn.find('.');; dot = fqn.find('.', dot + 1)) {
      if (plan::matchFqn(pattern, fqn.take_front(dot)))
        return true;
      if (dot == StringRef::npos)
        return false;
    }
  }

  static bool matchesAny(ArrayRef<std::string> patterns, StringRef fqn) {
    return llvm::any_of(
        patterns, [&](StringRef pattern) { return matches(pattern, fqn); });
  }

  /// Every pattern means something.
  LogicalResult checkPatterns() {
    plan::ModuleTree tree;
    for (const std::string &module : modules)
      tree.addModule(module);
    for (auto &[fqn, ops] : parameters)
      tree.addParameter(fqn);
    bool isWrong = false;
    auto checkParameters = [&](ArrayRef<std::string> patterns,
                               ArrayRef<FileLineColLoc> locs, StringRef what) {
      for (auto [pattern, loc] : llvm::zip(patterns, locs)) {
        if (llvm::any_of(parameters, [&](auto &entry) {
              return matches(pattern, entry.first);
            }))
          continue;
        isWrong = true;
        emitError(loc) << what << ": pattern '" << pattern
                       << "' matches no parameter: "
                       << tree.explainNoParameter(pattern,
                                                  plan::MatchMode::Fnmatch);
      }
    };
    checkParameters(config.frozen, config.frozenLocs, "frozen");
    if (config.optimizer)
      checkParameters(config.optimizer->noDecay, config.noDecayLocs,
                      "no_decay");
    for (auto [pattern, loc] :
         llvm::zip(config.checkpoint, config.checkpointLocs)) {
      if (llvm::any_of(modules, [&](StringRef module) {
            return plan::matchFqn(pattern, module);
          }))
        continue;
      isWrong = true;
      emitError(loc) << "checkpoint: pattern '" << pattern
                     << "' matches no module: "
                     << tree.explainMismatch(pattern, plan::MatchMode::Fnmatch);
    }
    return failure(isWrong);
  }

  //===--------------------------------------------------------------------===//
  // The loss
  //===--------------------------------------------------------------------===//

  FailureOr<Value> buildLoss() {
    Operation *terminator = getReturn();
    auto index = static_cast<unsigned>(config.loss.output);
    if (index >= terminator->getNumOperands())
      return function.emitError("the loss is of result ")
             << index << ", but '@" << function.getName() << "' has "
             << terminator->getNumOperands() << " results";
    Value output = terminator->getOperand(index);
    auto type = dyn_cast<RankedTensorType>(output.getType());
    if (!type || !isa<FloatType>(type.getElementType()))
      return function.emitError("the loss is of result ")
             << index << ", which should be a float tensor, found "
             << output.getType();
    ImplicitLocOpBuilder b(function.getLoc(), OpBuilder(terminator));
    switch (config.loss.kind) {
    case LossConfig::Output:
      if (type.getRank() != 0)
        return function.emitError("the loss, result ")
               << index << ", should be a scalar, found " << type
               << "; reduce it, or give a training file with another 'loss'";
      return output;
    case LossConfig::MSE: {
      Value target = addTarget(type);
      Value difference = sub(b, output, target);
      auto dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
      return reduce(b,
                    config.loss.reduction == nn::LossReduction::Sum
                        ? nn::ReduceKind::Sum
                        : nn::ReduceKind::Mean,
                    mul(b, difference, difference), dims, /*keepdim=*/false);
    }
    case LossConfig::CrossEntropy:
      return buildCrossEntropy(b, output);
    }
    llvm_unreachable("all losses are handled");
  }

  FailureOr<Value> buildCrossEntropy(ImplicitLocOpBuilder &b, Value logits) {
    auto type = typeOf(logits);
    int64_t rank = type.getRank(), dim = config.loss.classDim;
    if (dim < 0)
      dim += rank;
    if (rank == 0 || dim < 0 || dim >= rank)
      return function.emitError("class_dim ")
             << config.loss.classDim << " is no dimension of the logits, "
             << type;
    SmallVector<int64_t> shape(type.getShape());
    int64_t numClasses = shape[dim];
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
    Value weight;
    if (!config.loss.weights.empty()) {
      if (static_cast<int64_t>(config.loss.weights.size()) != numClasses)
        return function.emitError("the loss has ")
               << config.loss.weights.size() << " weights for " << numClasses
               << " classes";
      SmallVector<Attribute> numbers;
      for (double number : config.loss.weights)
        numbers.push_back(b.getFloatAttr(type.getElementType(), number));
      weight = nn::ConstantOp::create(
          b, DenseElementsAttr::get(
                 RankedTensorType::get({numClasses}, type.getElementType()),
                 numbers));
    }
    return Value(nn::CrossEntropyOp::create(
        b, RankedTensorType::get({}, type.getElementType()), logits, target,
        weight, config.loss.reduction,
        b.getI64IntegerAttr(config.loss.ignoreIndex),
        b.getF64FloatAttr(config.loss.labelSmoothing), UnitAttr()));
  }

  /// A further argument, split as the batch of the others is: as that of the
  /// first one, or of the first that says which dimension it is.
  Value addTarget(RankedTensorType type) {
    unsigned index = function.getNumArguments(), like = 0;
    std::optional<int64_t> batch;
    for (unsigned i = 0; i < index && !batch; ++i)
      if ((batch = getBatchDim(function, i)))
        like = i;
    int64_t dim = batch.value_or(0);
    Builder b(&getContext());
    NamedAttrList attrs;
    attrs.set(kNameAttr, b.getStringAttr("target"));
    ShardingAttr first =
        index ? getArgSharding(function, like) : ShardingAttr();
    if (first && dim < std::min<int64_t>(first.getRank(), type.getRank())) {
      SmallVector<AxisListAttr> dims(type.getRank(),
                                     AxisListAttr::get(&getContext(), {}));
      dims[dim] = first.getDims()[dim];
      attrs.set(kShardingAttr,
                ShardingAttr::get(&getContext(), first.getMesh(), dims, {}));
      if (batch)
        attrs.set(kBatchAttr, function.getArgAttr(like, kBatchAttr));
    }
    (void)function.insertArgument(
        index, type, attrs.getDictionary(&getContext()), function.getLoc());
    return function.getArgument(index);
  }

  //===--------------------------------------------------------------------===//
  // The step
  //===--------------------------------------------------------------------===//

  bool isTrained(StringAttr fqn, MutableArrayRef<nn::ParameterOp> ops) {
    return isa<FloatType>(ops.front().getType().getElementType()) &&
           !matchesAny(config.frozen, fqn) &&
           llvm::none_of(ops,
                         [](nn::ParameterOp op) { return op.getFrozen(); });
  }

  LogicalResult buildStep(Value loss) {
    for (auto &[fqn, ops] : parameters)
      if (isTrained(fqn, ops))
        trained[fqn] = ops;
    SmallVector<Value> arguments;
    if (inputs)
      for (BlockArgument argument : getBlock().getArguments())
        if (auto type = dyn_cast<RankedTensorType>(argument.getType());
            type && isa<FloatType>(type.getElementType()))
          arguments.push_back(argument);
    if (trained.empty() && arguments.empty())
      return function.emitError("there is nothing to differentiate with "
                                "respect to: every parameter is frozen");

    Gradients gradients;
    if (failed(config.accumulate == 1
                   ? differentiateBatch(loss, arguments, gradients)
                   : differentiateBatches(loss)))
      return failure();
    ImplicitLocOpBuilder b(function.getLoc(), OpBuilder(getReturn()));
    SmallVector<TrainedParameter> updates;
    for (auto &[fqn, ops] : trained) {
      if (Value sum = sums.lookup(fqn))
        updates.push_back(
            {ops.front(), sum,
             !config.optimizer || !matchesAny(config.optimizer->noDecay, fqn)});
      else
        emitWarning(ops.front().getLoc())
            << "parameter " << fqn
            << " has no gradient: the loss doesn't depend on it";
    }
    if (config.optimizer)
      finishStep(b, totalLoss, updates);
    else
      returnGradients(b, totalLoss, updates, arguments, gradients);
    eraseDead();
    return success();
  }

  /// Appends the backward pass for `loss`, and adds what it gives to the sums.
  LogicalResult differentiateBatch(Value loss, ArrayRef<Value> arguments,
                                   Gradients &gradients) {
    SmallVector<Value> wanted(arguments);
    for (auto &[fqn, ops] : trained)
      llvm::append_range(wanted, ops);
    DifferentiateOptions options;
    auto step = [&]() { return getStep(); };
    options.getStep = step;
    options.seed = config.seed;
    options.stream = &stream;
    FailureOr<Gradients> result =
        differentiate(getBlock(), loss, wanted, options);
    if (failed(result))
      return failure();
    gradients = *result;
    recomputeGroups(gradients.begin);
    ImplicitLocOpBuilder b(function.getLoc(), OpBuilder(getReturn()));
    auto addTo = [&](Value &sum, Value value) {
      sum = sum ? add(b, sum, value) : value;
    };
    addTo(totalLoss, gradients.loss);
    for (auto &[fqn, ops] : trained)
      for (nn::ParameterOp op : ops) // several where modules share it
        if (Value gradient = gradients.of.lookup(op))
          addTo(sums[fqn], gradient);
    return success();
  }

  /// Forward and backward pass of one batch after the other, and the gradients'
  /// mean.
  LogicalResult differentiateBatches(Value loss) {
    Block &block = getBlock();
    Block copy; // of what each batch computes
    IRMapping toCopy;
    OpBuilder builder(&getContext());
    builder.setInsertionPointToEnd(&copy);
    for (Operation &op : block.without_terminator())
      if (!isa<nn::ParameterOp>(op))
        builder.clone(op, toCopy);
    Value lossCopy = toCopy.lookup(loss);
    auto begin = ImplicitLocOpBuilder::atBlockBegin(function.getLoc(), &block);
    for (BlockArgument argument : block.getArguments()) {
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : argument.getUses())
        if (use.getOwner()->getBlock() == &block)
          uses.push_back(&use);
      if (failed(enlarge(argument)))
        return failure();
      Value first = getBatch(begin, argument, 0);
      for (OpOperand *use : uses)
        use->set(first);
    }
    Gradients gradients;
    if (failed(differentiateBatch(loss, {}, gradients)))
      return failure();
    for (int64_t batch = 1; batch < config.accumulate; ++batch) {
      IRMapping toBatch;
      ImplicitLocOpBuilder b(function.getLoc(), OpBuilder(getReturn()));
      for (BlockArgument argument : block.getArguments())
        toBatch.map(argument, getBatch(b, argument, batch));
      for (Operation &op : copy)
        b.clone(op, toBatch);
      if (failed(differentiateBatch(toBatch.lookup(lossCopy), {}, gradients)))
        return failure();
    }
    copy.dropAllReferences();
    ImplicitLocOpBuilder b(function.getLoc(), OpBuilder(getReturn()));
    double share = 1.0 / static_cast<double>(config.accumulate);
    totalLoss = mul(b, totalLoss, share);
    for (auto &[fqn, sum] : sums)
      sum = mul(b, sum, share);
    return success();
  }

  /// Over how many ranks the examples of `argument` are split.
  int64_t getNumSplits(BlockArgument argument) {
    ShardingAttr sharding = getArgSharding(function, argument.getArgNumber());
    auto mesh = sharding ? SymbolTable::lookupNearestSymbolFrom<MeshOp>(
                               function, sharding.getMesh())
                         : MeshOp();
    return mesh && !sharding.getDims().empty()
               ? mesh.getAxesSize(sharding.getDims()[0].getAxes())
               : 1;
  }

  /// Makes `argument` hold the examples of all batches.
  LogicalResult enlarge(BlockArgument argument) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getRank() == 0)
      return success();
    int64_t splits = getNumSplits(argument), size = type.getDimSize(0);
    if (size % splits != 0)
      return function.emitError("'accumulate' takes as many examples of each "
                                "rank for every batch: ")
             << size << " examples can't be split over " << splits << " ranks";
    SmallVector<int64_t> shape(type.getShape());
    shape[0] *= config.accumulate;
    argument.setType(type.clone(shape));
    function.setType(FunctionType::get(&getContext(),
                                       getBlock().getArgumentTypes(),
                                       function.getResultTypes()));
    return success();
  }

  /// The examples of one batch. Each rank gives its next ones, so that none of
  /// them moves.
  Value getBatch(ImplicitLocOpBuilder &b, BlockArgument argument,
                 int64_t batch) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getRank() == 0)
      return argument;
    int64_t splits = getNumSplits(argument);
    int64_t size = type.getDimSize(0) / config.accumulate;
    SmallVector<int64_t> shape{splits, config.accumulate, size / splits};
    llvm::append_range(shape, type.getShape().drop_front());
    Value all = reshape(b, argument, shape);
    shape[1] = 1;
    Value part =
        nn::SliceOp::create(b, type.clone(shape), all, b.getI64IntegerAttr(1),
                            b.getI64IntegerAttr(batch), b.getI64IntegerAttr(1));
    SmallVector<int64_t> own(type.getShape());
    own[0] = size;
    return reshape(b, part, own);
  }

  void recomputeGroups(Operation *begin) {
    DenseMap<Attribute, const void *> groups;
    recompute(getBlock(), begin, [&](Operation *op) -> const void * {
      StringRef fqn = getFqn(op);
      for (size_t dot = fqn.find('.');; dot = fqn.find('.', dot + 1)) {
        StringRef module = fqn.take_front(dot);
        if (llvm::any_of(config.checkpoint, [&](StringRef pattern) {
              return plan::matchFqn(pattern, module);
            }))
          return StringAttr::get(&getContext(), module).getAsOpaquePointer();
        if (dot == StringRef::npos)
          break;
      }
      // What is gathered for forward is gathered again for backward.
      return op->hasAttr(kReshardAttr) ? op : nullptr;
    });
  }

  /// The number of the step, a parameter of the program.
  Value getStep() {
    if (!stepParameter) {
      auto b =
          ImplicitLocOpBuilder::atBlockBegin(function.getLoc(), &getBlock());
      stepParameter =
          nn::ParameterOp::create(b, RankedTensorType::get({}, b.getI64Type()),
                                  b.getStringAttr(kStepName), /*frozen=*/true);
    }
    return stepParameter;
  }

  void finishStep(ImplicitLocOpBuilder &b, Value loss,
                  ArrayRef<TrainedParameter> updates) {
    StepMetrics metrics = buildUpdate(b, config, updates, getStep());
    SmallVector<Value> results{castTo(b, loss, b.getF32Type()), metrics.lr};
    SmallVector<StringRef> names{"loss", "lr"};
    if (metrics.gradNorm) {
      results.push_back(metrics.gradNorm);
      names.push_back("grad_norm");
    }
    setResults(results, names);
  }

  void returnGradients(ImplicitLocOpBuilder &b, Value loss,
                       ArrayRef<TrainedParameter> updates,
                       ArrayRef<Value> arguments, Gradients &gradients) {
    SmallVector<Value> results(getReturn()->getOperands());
    SmallVector<Attribute> attrs;
    for (unsigned i = 0; i < results.size(); ++i)
      attrs.push_back(function.getResultAttrDict(i)
                          ? function.getResultAttrDict(i)
                          : b.getDictionaryAttr({}));
    auto addResult = [&](Value value, const Twine &name) {
      results.push_back(value);
      attrs.push_back(b.getDictionaryAttr(
          b.getNamedAttr(kNameAttr, b.getStringAttr("grad." + name))));
    };
    for (const TrainedParameter &update : updates) {
      nn::ParameterOp op = update.op;
      addResult(update.gradient, op.getFqn());
    }
    for (Value argument : arguments) {
      unsigned index = cast<BlockArgument>(argument).getArgNumber();
      auto name = function.getArgAttrOfType<StringAttr>(index, kNameAttr);
      Value gradient = gradients.of[argument];
      if (!gradient)
        gradient = filled(b, typeOf(argument), 0);
      addResult(gradient,
                name ? name.getValue().str() : "arg" + std::to_string(index));
    }
    getReturn()->setOperands(results);
    function.setType(b.getFunctionType(function.getArgumentTypes(),
                                       TypeRange(ValueRange(results))));
    function.setResAttrsAttr(b.getArrayAttr(attrs));
  }

  void setResults(ArrayRef<Value> results, ArrayRef<StringRef> names) {
    Builder b(&getContext());
    SmallVector<Attribute> attrs;
    for (StringRef name : names)
      attrs.push_back(b.getDictionaryAttr(
          b.getNamedAttr(kNameAttr, b.getStringAttr(name))));
    getReturn()->setOperands(results);
    function.setType(b.getFunctionType(function.getArgumentTypes(),
                                       TypeRange(ValueRange(results))));
    function.setResAttrsAttr(b.getArrayAttr(attrs));
  }

  /// What only the model's own results needed.
  void eraseDead() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(getBlock())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  TrainingConfig config;
  func::FuncOp function;
  std::vector<std::string> modules;
  llvm::MapVector<StringAttr, SmallVector<nn::ParameterOp>> parameters;
  /// Those that aren't frozen.
  llvm::MapVector<StringAttr, SmallVector<nn::ParameterOp>> trained;
  /// The gradient of each so far, and the loss.
  llvm::MapVector<StringAttr, Value> sums;
  Value totalLoss;
  int64_t stream = 0;
  Value stepParameter;
};

} // namespace
