//===- Accumulate.cpp - gradient accumulation -----------------------------===//

#include "Accumulate.h"
#include "mlir/IR/IRMapping.h"
#include "tp/Dialect/NN/Expressions.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

namespace {

class Batches {
public:
  Batches(func::FuncOp function, int64_t count)
      : function(function), block(function.getBody().front()), count(count) {}

  LogicalResult run(Value loss,
                    llvm::function_ref<LogicalResult(Value)> visit) {
    Block copy; // of what each batch computes
    IRMapping toCopy;
    OpBuilder builder(function.getContext());
    builder.setInsertionPointToEnd(&copy);
    for (Operation &op : block.without_terminator())
      if (!isa<nn::ParameterOp>(op))
        builder.clone(op, toCopy);
    Value lossCopy = toCopy.lookupOrDefault(loss);
    LogicalResult result = takeFirst();
    if (succeeded(result))
      result = visit(loss);
    for (int64_t batch = 1; succeeded(result) && batch < count; ++batch) {
      IRMapping toBatch;
      ImplicitLocOpBuilder b(function.getLoc(),
                             OpBuilder(block.getTerminator()));
      for (BlockArgument argument : block.getArguments())
        toBatch.map(argument, getBatch(b, argument, batch));
      for (Operation &op : copy)
        b.clone(op, toBatch);
      result = visit(toBatch.lookupOrDefault(lossCopy));
    }
    copy.dropAllReferences();
    return result;
  }

private:
  LogicalResult takeFirst() {
    auto begin = ImplicitLocOpBuilder::atBlockBegin(function.getLoc(), &block);
    for (BlockArgument argument : block.getArguments()) {
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : argument.getUses())
        if (block.findAncestorOpInBlock(*use.getOwner()))
          uses.push_back(&use);
      if (failed(enlarge(argument)))
        return failure();
      Value first = getBatch(begin, argument, 0);
      for (OpOperand *use : uses)
        use->set(first);
    }
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
    shape[0] *= count;
    argument.setType(type.clone(shape));
    function.setType(FunctionType::get(function.getContext(),
                                       block.getArgumentTypes(),
                                       function.getResultTypes()));
    return success();
  }

  /// The examples of one batch.
  Value getBatch(ImplicitLocOpBuilder &b, BlockArgument argument,
                 int64_t batch) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getRank() == 0)
      return argument;
    int64_t splits = getNumSplits(argument);
    int64_t size = type.getDimSize(0) / count;
    SmallVector<int64_t> shape{splits, count, size / splits};
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

  func::FuncOp function;
  Block &block;
  int64_t count;
};

} // namespace

LogicalResult tp::forEachBatch(func::FuncOp function, Value loss,
                               int64_t numBatches,
                               llvm::function_ref<LogicalResult(Value)> visit) {
  if (numBatches == 1)
    return visit(loss);
  return Batches(function, numBatches).run(loss, visit);
}
