//===- Grad.cpp - A model's training step ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainingStep.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/TP/Batch.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Plan/Pattern.h"
#include "tp/Training/Differentiate.h"
#include "tp/Training/Passes.h"
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
    sumOf.clear();
    totalLoss = stepParameter = {};
    stream = numBatches = 0;
    if (failed(run()))
      return signalPassFailure();
  }

  LogicalResult run() {
    if (!train.empty()) {
      FailureOr<TrainingConfig> read = readTrainingFile(train, &getContext());
      if (failed(read))
        return failure();
      config = *read;
    }
    FailureOr<func::FuncOp> entry = findEntryPoint(getOperation());
    if (failed(entry))
      return failure();
    function = *entry;
    if (!findLoss(function) && failed(addLoss(function, config.loss)))
      return failure();
    std::vector<std::string> modules;
    function.walk(
        [&](nn::ModuleOp module) { modules.push_back(module.getFqn().str()); });
    inlineModules(function);
    if (failed(prepareControlFlow(function, config.computeType &&
                                                !config.computeType.isF32())))
      return failure();
    // With one op per parameter, its gradients are added up in a fixed order.
    shareParameters(getBlock(), /*onlyFsdp=*/false);
    if (getPipeline(getOperation()))
      separateStages();
    for (auto op : getBlock().getOps<nn::ParameterOp>())
      parameters[op.getFqnAttr()].push_back(op);
    if (failed(checkPatterns(config, modules,
                             llvm::map_to_vector(parameters, [](auto &entry) {
                               return entry.first;
                             }))))
      return failure();
    placeTarget();
    if (config.computeType)
      setComputeType(getBlock(), config.computeType, findTarget(function));
    Value loss = getReturn()->getOperand(*findLoss(function));
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      function.removeArgAttr(i, kLossAttr);
    function.removeResultAttr(*findLoss(function),
                              StringAttr::get(&getContext(), kLossAttr));
    return buildStep(loss);
  }

  Block &getBlock() { return function.getBody().front(); }
  Operation *getReturn() { return getBlock().getTerminator(); }

  /// If the plan hasn't placed the target, splits it like the batch and the
  /// sequence of other arguments: the first one that names its batch dimension,
  /// or else the first one, and the first one that names its sequence dimension.
  void placeTarget() {
    BlockArgument target = findTarget(function);
    if (!target || getArgSharding(function, target.getArgNumber()))
      return;
    auto type = cast<RankedTensorType>(target.getType());
    unsigned index = target.getArgNumber();
    SmallVector<AxisListAttr> dims(type.getRank(),
                                   AxisListAttr::get(&getContext(), {}));
    FlatSymbolRefAttr mesh;
    auto splitLike = [&](unsigned like, int64_t dim) {
      ShardingAttr first = getArgSharding(function, like);
      if (!first || dim >= std::min<int64_t>(first.getRank(), type.getRank()))
        return false;
      dims[dim] = first.getDims()[dim];
      mesh = first.getMesh();
      return true;
    };
    auto follow = [&](auto getDim, StringRef attr) {
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (std::optional<int64_t> dim = getDim(function, i)) {
          if (splitLike(i, *dim))
            function.setArgAttr(index, attr, function.getArgAttr(i, attr));
          return true;
        }
      return false;
    };
    bool hasBatch = follow(getBatchDim, kBatchAttr);
    bool hasSequence = follow(getSequenceDim, kSequenceAttr);
    if (!hasBatch && !hasSequence)
      splitLike(0, 0);
    if (mesh)
      function.setArgAttr(index, kShardingAttr,
                          ShardingAttr::get(&getContext(), mesh, dims, {}));
  }

  /// Gives each stage of a pipeline that reads a parameter an op of its own, so
  /// that it adds up its gradients of all batches before stages exchange them.
  void separateStages() {
    for (auto op :
         llvm::make_early_inc_range(getBlock().getOps<nn::ParameterOp>())) {
      llvm::MapVector<Attribute, SmallVector<OpOperand *>> uses;
      for (OpOperand &use : op.getResult().getUses())
        uses[use.getOwner()->getAttr(kStageAttr)].push_back(&use);
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      for (auto &[stage, own] : llvm::drop_begin(uses)) {
        Operation *copy = builder.clone(*op);
        for (OpOperand *use : own)
          use->set(copy->getResult(0));
      }
    }
  }

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
    SmallVector<BlockArgument> arguments;
    if (inputs)
      for (BlockArgument argument : getBlock().getArguments())
        if (auto type = dyn_cast<RankedTensorType>(argument.getType());
            type && isa<FloatType>(type.getElementType()))
          arguments.push_back(argument);
    if (trained.empty() && arguments.empty())
      return function.emitError("there is nothing to differentiate with "
                                "respect to: every parameter is frozen");

    Gradients gradients;
    PipelineOp pipeline = getPipeline(getOperation());
    int64_t count = config.accumulate;
    if (pipeline)
      count *= pipeline.getMicrobatches();
    if (count > 1 && !arguments.empty())
      return pipeline.emitError("the gradients of inputs aren't supported with "
                                "several microbatches");
    if (failed(forEachBatch(
            function, loss, count,
            config.accumulateLoc ? Location(config.accumulateLoc)
                                 : function.getLoc(),
            [&](ArrayRef<Value> values, Operation *previous) -> LogicalResult {
              if (failed(differentiateBatch(values.front(), previous, arguments,
                                            gradients)))
                return failure();
              if (!pipeline)
                return success();
              markPass(getBlock(), previous, gradients.begin,
                       /*pass=*/2 * numBatches - 2);
              markPass(getBlock(), gradients.begin->getPrevNode(), getReturn(),
                       /*pass=*/2 * numBatches - 1);
              return success();
            })))
      return failure();
    ImplicitLocOpBuilder b(function.getLoc(), OpBuilder(getReturn()));
    for (auto &[fqn, ops] : trained)
      for (nn::ParameterOp op : ops)
        if (Value own = sumOf.lookup(op)) {
          Value &sum = sums[fqn];
          sum = sum ? add(b, sum, own) : own;
        }
    if (count > 1) {
      double share = 1.0 / static_cast<double>(count);
      totalLoss = mul(b, totalLoss, share);
      for (auto &[fqn, sum] : sums) {
        sum = mul(b, sum, share);
        sum.getDefiningOp()->setAttr(kFqnAttr, fqn);
      }
    }
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
    if (updates.empty() && arguments.empty())
      return function.emitError("there is nothing to train: the loss depends "
                                "on no parameter that has a gradient");
    if (config.optimizer)
      finishStep(b, totalLoss, updates);
    else
      returnGradients(b, updates, arguments, gradients);
    dropGradientForms(function);
    eraseDead();
    return success();
  }

  /// Appends the backward pass for `loss`, whose forward pass comes after
  /// `previous`, and adds its gradients to the sums.
  LogicalResult differentiateBatch(Value loss, Operation *previous,
                                   ArrayRef<BlockArgument> arguments,
                                   Gradients &gradients) {
    SmallVector<Value> wanted(arguments.begin(), arguments.end());
    for (auto &[fqn, ops] : trained)
      llvm::append_range(wanted, ops);
    DifferentiateOptions options;
    auto step = [&]() { return getStep(); };
    options.getStep = step;
    options.seed = config.seed;
    options.stream = &stream;
    options.previous = previous;
    FailureOr<Gradients> result =
        differentiate(getBlock(), loss, wanted, options);
    if (failed(result))
      return failure();
    gradients = *result;
    recomputeGroups(previous, gradients.begin, /*pass=*/2 * numBatches++ + 1);
    ImplicitLocOpBuilder b(function.getLoc(), OpBuilder(getReturn()));
    auto addTo = [&](Value &sum, Value value) {
      sum = sum ? add(b, sum, value) : value;
    };
    addTo(totalLoss, gradients.loss);
    for (auto &[fqn, ops] : trained)
      for (nn::ParameterOp op : ops)
        if (Value gradient = gradients.of.lookup(op))
          addTo(sumOf[op], gradient);
    return success();
  }

  /// Whether `op` gathers a parameter that FSDP has split.
  static bool isGather(Operation *op) {
    if (!isa<RedistributeOp>(op))
      return false;
    Operation *source = op->getOperand(0).getDefiningOp();
    if (isa_and_nonnull<nn::CastOp>(source))
      source = source->getOperand(0).getDefiningOp();
    return source && source->hasAttr(kFsdpGroupAttr);
  }

  void recomputeGroups(Operation *previous, Operation *begin, int64_t pass) {
    recompute(
        getBlock(), previous, begin, pass, [&](Operation *op) -> const void * {
          // A gathered parameter that is kept isn't gathered again, in any
          // module.
          if (isGather(op) && !op->hasAttr(kReshardAttr))
            return nullptr;
          StringRef fqn = getFqn(op);
          bool isKept = matchesAny(config.keep, fqn);
          for (size_t dot = fqn.find('.');; dot = fqn.find('.', dot + 1)) {
            StringRef module = fqn.take_front(dot);
            if (!isKept &&
                llvm::any_of(config.checkpoint, [&](StringRef pattern) {
                  return plan::matchFqn(pattern, module);
                }))
              return StringAttr::get(&getContext(), module)
                  .getAsOpaquePointer();
            if (dot == StringRef::npos)
              break;
          }
          // A parameter that the forward pass doesn't keep is gathered again.
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

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  static DictionaryAttr name(Builder &b, const Twine &name) {
    return b.getDictionaryAttr(
        b.getNamedAttr(kNameAttr, b.getStringAttr(name)));
  }

  void finishStep(ImplicitLocOpBuilder &b, Value loss,
                  ArrayRef<TrainedParameter> updates) {
    StepMetrics metrics = buildUpdate(b, config, updates, getStep());
    SmallVector<Value> results{castTo(b, loss, b.getF32Type()), metrics.lr};
    SmallVector<Attribute> attrs{name(b, "loss"), name(b, "lr")};
    if (metrics.gradNorm) {
      results.push_back(metrics.gradNorm);
      attrs.push_back(name(b, "grad_norm"));
    }
    setResults(function, results, attrs);
  }

  void returnGradients(ImplicitLocOpBuilder &b,
                       ArrayRef<TrainedParameter> updates,
                       ArrayRef<BlockArgument> arguments,
                       Gradients &gradients) {
    SmallVector<Value> results(getReturn()->getOperands());
    SmallVector<Attribute> attrs;
    for (unsigned i = 0; i < results.size(); ++i)
      attrs.push_back(function.getResultAttrDict(i)
                          ? function.getResultAttrDict(i)
                          : b.getDictionaryAttr({}));
    // A gradient is placed like what it belongs to.
    auto push = [&](Value gradient, const Twine &of, Attribute sharding) {
      NamedAttrList list(name(b, "grad." + of));
      if (sharding)
        list.set(kShardingAttr, sharding);
      results.push_back(gradient);
      attrs.push_back(list.getDictionary(b.getContext()));
    };
    for (const TrainedParameter &update : updates) {
      nn::ParameterOp op = update.op;
      push(update.gradient, op.getFqn(), op->getAttr(kShardingAttr));
    }
    for (BlockArgument argument : arguments) {
      unsigned index = argument.getArgNumber();
      Value gradient = gradients.of[argument];
      auto own = function.getArgAttrOfType<StringAttr>(index, kNameAttr);
      push(gradient ? gradient : filled(b, typeOf(argument), 0),
           own ? own.getValue().str() : "arg" + std::to_string(index),
           getArgSharding(function, index));
    }
    setResults(function, results, attrs);
  }

  /// Erases ops that only the model's own results needed.
  void eraseDead() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(getBlock())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  TrainingConfig config;
  func::FuncOp function;
  llvm::MapVector<StringAttr, SmallVector<nn::ParameterOp>> parameters;
  /// The parameters that aren't frozen.
  llvm::MapVector<StringAttr, SmallVector<nn::ParameterOp>> trained;
  /// The sum of the gradients so far, by the op that reads the parameter.
  DenseMap<Operation *, Value> sumOf;
  /// The sum of each parameter's gradients, and of the loss.
  llvm::MapVector<StringAttr, Value> sums;
  Value totalLoss;
  int64_t stream = 0, numBatches = 0;
  Value stepParameter;
};

} // namespace
