//===- Accumulate.cpp - Gradient accumulation -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainingStep.h"
#include "mlir/IR/IRMapping.h"
#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/TP/Batch.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

namespace {

class Batches {
public:
  Batches(func::FuncOp function, int64_t count, Location loc)
      : function(function), block(function.getBody().front()), count(count),
        loc(loc) {
    findDims();
  }

  LogicalResult run(ArrayRef<Value> values, VisitBatch visit) {
    Block copy; // of what each batch computes
    IRMapping toCopy;
    OpBuilder builder(function.getContext());
    builder.setInsertionPointToEnd(&copy);
    // If batches assign a buffer, each of them casts and gathers it again.
    DenseSet<StringAttr> assigned;
    for (auto assign : block.getOps<nn::AssignOp>())
      assigned.insert(assign.getFqnAttr());
    llvm::SmallPtrSet<Operation *, 16> shared;
    for (Operation &op : block.without_terminator())
      if (isa<nn::ParameterOp>(op) || isSharedByBatches(op, shared)) {
        auto parameter = dyn_cast<nn::ParameterOp>(op);
        if (!parameter || !assigned.contains(parameter.getFqnAttr()))
          shared.insert(&op);
      } else
        builder.clone(op, toCopy);
    SmallVector<Value> copies = lookUp(toCopy, values);
    IRMapping toFirst;
    LogicalResult result = takeFirst(toFirst);
    if (succeeded(result))
      result = visit(lookUp(toFirst, values), /*previous=*/nullptr);
    for (int64_t batch = 1; succeeded(result) && batch < count; ++batch) {
      IRMapping toBatch;
      Operation *previous = block.getTerminator()->getPrevNode();
      ImplicitLocOpBuilder b(function.getLoc(),
                             OpBuilder(block.getTerminator()));
      for (BlockArgument argument : block.getArguments())
        toBatch.map(argument, getBatch(b, argument, batch));
      SmallVector<Operation *> gathers;
      for (Operation &op : copy) {
        Operation *made = b.clone(op, toBatch);
        if (made->hasAttr(kReshardAttr))
          gathers.push_back(made);
      }
      chainAssignments(previous);
      result = visit(lookUp(toBatch, copies), previous);
      for (Operation *gather : gathers)
        gatherAgain(gather, batch);
    }
    copy.dropAllReferences();
    return result;
  }

  /// One value of each batch, side by side, with the examples in the order in
  /// which the arguments have them. Null if dimension 0 of the value doesn't
  /// count the examples.
  Value join(ImplicitLocOpBuilder &b, ArrayRef<Value> parts) {
    auto *argument =
        llvm::find_if(block.getArguments(), [&](BlockArgument argument) {
          return dims[argument.getArgNumber()].has_value();
        });
    auto type = dyn_cast<RankedTensorType>(parts.front().getType());
    if (argument == block.getArguments().end() || !type || type.getRank() == 0)
      return {};
    int64_t dim = *dims[argument->getArgNumber()];
    int64_t splits = getNumSplits(*argument, dim);
    if (type.getDimSize(0) * count != shapeOf(*argument)[dim])
      return {};
    SmallVector<int64_t> shape(type.getShape());
    shape[0] /= splits;
    shape.insert(shape.begin(), {splits, 1});
    auto reshaped = llvm::map_to_vector(
        parts, [&](Value part) { return reshape(b, part, shape); });
    SmallVector<int64_t> all(type.getShape());
    all[0] *= count;
    return reshape(b, nn::ConcatOp::create(b, reshaped, /*dim=*/1), all);
  }

private:
  static SmallVector<Value> lookUp(const IRMapping &mapping,
                                   ArrayRef<Value> values) {
    return llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookupOrDefault(value); });
  }

  /// Whether all batches may share the result of `op`: a cast or gather of a
  /// parameter that is kept.
  static bool
  isSharedByBatches(Operation &op,
                    const llvm::SmallPtrSetImpl<Operation *> &shared) {
    return isa<nn::CastOp, RedistributeOp>(op) && !op.hasAttr(kReshardAttr) &&
           op.getOperand(0).getDefiningOp() &&
           shared.contains(op.getOperand(0).getDefiningOp());
  }

  /// A batch after the first begins with the values of buffers that the batch
  /// before it, which ends with `previous`, has assigned. One assignment is
  /// left.
  void chainAssignments(Operation *previous) {
    for (auto assign :
         llvm::make_early_inc_range(block.getOps<nn::AssignOp>())) {
      if (previous->isBeforeInBlock(assign))
        break;
      for (auto parameter : block.getOps<nn::ParameterOp>())
        if (parameter.getFqn() == assign.getFqn())
          parameter.getResult().replaceUsesWithIf(
              assign.getValue(), [&](OpOperand &use) {
                return previous->isBeforeInBlock(use.getOwner());
              });
      assign.erase();
    }
  }

  static void gatherAgain(Operation *gather, int64_t batch) {
    OpBuilder builder(gather);
    gather->setOperand(
        0, readAgain(builder, gather->getOperand(0), /*pass=*/2 * batch));
  }

  LogicalResult takeFirst(IRMapping &toFirst) {
    auto begin = ImplicitLocOpBuilder::atBlockBegin(function.getLoc(), &block);
    for (BlockArgument argument : block.getArguments()) {
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : argument.getUses())
        if (block.findAncestorOpInBlock(*use.getOwner()))
          uses.push_back(&use);
      if (failed(enlarge(argument)))
        return failure();
      Value first = getBatch(begin, argument, 0);
      toFirst.map(argument, first);
      for (OpOperand *use : uses)
        use->set(first);
    }
    return success();
  }

  /// The arguments with examples are those that the plan names. If it names
  /// none, they are those whose first dimension is as large as that of the
  /// first argument.
  void findDims() {
    std::optional<int64_t> size;
    SmallVector<std::optional<int64_t>> byPlan;
    for (BlockArgument argument : block.getArguments()) {
      byPlan.push_back(getBatchDim(function, argument.getArgNumber()));
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      bool hasDims = type && type.getRank() > 0;
      if (hasDims && !size)
        size = type.getDimSize(0);
      dims.push_back(hasDims && type.getDimSize(0) == *size
                         ? std::optional<int64_t>(0)
                         : std::nullopt);
    }
    if (llvm::any_of(byPlan, [](auto dim) { return dim.has_value(); }))
      dims = std::move(byPlan);
  }

  /// The number of ranks over which dimension `dim` of `argument`, its
  /// examples, is split.
  int64_t getNumSplits(BlockArgument argument, int64_t dim) {
    ShardingAttr sharding = getArgSharding(function, argument.getArgNumber());
    auto mesh = sharding ? SymbolTable::lookupNearestSymbolFrom<MeshOp>(
                               function, sharding.getMesh())
                         : MeshOp();
    return mesh ? mesh.getAxesSize(sharding.getDims()[dim].getAxes()) : 1;
  }

  /// Makes `argument` hold the examples of all batches.
  LogicalResult enlarge(BlockArgument argument) {
    std::optional<int64_t> dim = dims[argument.getArgNumber()];
    if (!dim)
      return success();
    auto type = cast<RankedTensorType>(argument.getType());
    int64_t splits = getNumSplits(argument, *dim), size = type.getDimSize(*dim);
    if (size % splits != 0) {
      InFlightDiagnostic error =
          emitError(loc) << "'accumulate' takes as many examples of each rank "
                            "for every batch: "
                         << size << " examples can't be split over " << splits
                         << " ranks";
      error.attachNote(function.getLoc()) << "the model is here";
      return error;
    }
    SmallVector<int64_t> shape(type.getShape());
    shape[*dim] *= count;
    argument.setType(type.clone(shape));
    function.removeArgAttr(argument.getArgNumber(), kSymbolicShapeAttr);
    function.setType(FunctionType::get(function.getContext(),
                                       block.getArgumentTypes(),
                                       function.getResultTypes()));
    return success();
  }

  /// The examples of one batch.
  Value getBatch(ImplicitLocOpBuilder &b, BlockArgument argument,
                 int64_t batch) {
    std::optional<int64_t> dim = dims[argument.getArgNumber()];
    if (!dim)
      return argument;
    auto type = cast<RankedTensorType>(argument.getType());
    int64_t splits = getNumSplits(argument, *dim);
    SmallVector<int64_t> own(type.getShape());
    own[*dim] /= count;
    SmallVector<int64_t> shape(own);
    shape[*dim] = splits;
    shape.insert(shape.begin() + *dim + 1, {count, own[*dim] / splits});
    Value all = reshape(b, argument, shape);
    shape[*dim + 1] = 1;
    Value part = nn::SliceOp::create(
        b, type.clone(shape), all, b.getI64IntegerAttr(*dim + 1),
        b.getI64IntegerAttr(batch), b.getI64IntegerAttr(1));
    return reshape(b, part, own);
  }

  func::FuncOp function;
  Block &block;
  int64_t count;
  Location loc;
  /// The dimension of each argument's examples.
  SmallVector<std::optional<int64_t>> dims;
};

} // namespace

LogicalResult tp::forEachBatch(func::FuncOp function, Value loss,
                               int64_t numBatches, Location loc,
                               VisitBatch visit) {
  if (numBatches == 1)
    return visit(loss, /*previous=*/nullptr);
  return Batches(function, numBatches, loc).run(loss, visit);
}

void tp::markPass(Block &block, Operation *previous, Operation *end,
                  int64_t pass) {
  auto begin = previous ? std::next(Block::iterator(previous)) : block.begin();
  for (Operation &op : llvm::make_range(begin, Block::iterator(end)))
    if (!op.hasAttr(kPassAttr))
      op.setAttr(kPassAttr,
                 IntegerAttr::get(IntegerType::get(op.getContext(), 64), pass));
}

LogicalResult tp::splitBatch(func::FuncOp function, int64_t numBatches) {
  Block &block = function.getBody().front();
  Operation *end = block.getTerminator();
  SmallVector<SmallVector<Value>> parts(end->getNumOperands());
  auto visit = [&](ArrayRef<Value> values, Operation *previous) {
    markPass(block, previous, end, /*pass=*/2 * parts.front().size());
    for (auto [part, value] : llvm::zip_equal(parts, values))
      part.push_back(value);
    return success();
  };
  if (parts.empty())
    return success();
  SmallVector<Value> results(end->getOperands());
  if (numBatches == 1)
    return visit(results, /*previous=*/nullptr);
  Batches batches(function, numBatches, function.getLoc());
  if (failed(batches.run(results, visit)))
    return failure();
  ImplicitLocOpBuilder b(function.getLoc(), OpBuilder(end));
  for (auto [i, part] : llvm::enumerate(parts)) {
    Value joined = batches.join(b, part);
    if (!joined)
      return function.emitError()
             << "result " << i
             << " can't be joined from the microbatches: its dimension 0 must "
                "count the examples, as the inputs' batch does, found "
             << part.front().getType();
    end->setOperand(i, joined);
    function.removeResultAttr(
        i, StringAttr::get(function.getContext(), kSymbolicShapeAttr));
  }
  function.setType(FunctionType::get(
      function.getContext(), block.getArgumentTypes(), end->getOperandTypes()));
  return success();
}
