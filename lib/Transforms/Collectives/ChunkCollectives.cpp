//===- ChunkCollectives.cpp - Contractions and collectives in chunks ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A contraction waits for the gather of its rows, and a scatter waits for the
// contraction that computes its rows. If both are split into chunks of rows,
// one chunk's collective can run beside another chunk's contraction:
//
//   all_gather, contraction: piece j of each rank's block is gathered and
//   contracted separately. The result has the rows of all ranks' pieces j; the
//   rows are put in order at the end.
//
//   contraction, reduce_scatter: piece j of each rank's rows is taken out of
//   the operand, contracted and scattered separately; a rank's block is the
//   concatenation of its pieces.
//
// Rows are a parallel factor of the contraction, so each of its sums stays the
// same, in the same order.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Interfaces/TensorBuilder.h"
#include "tp/Sharding/SplitInference.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

/// A contraction whose rows are dimension `resultDim` of its result.
struct Rows {
  ShardingRuleOpInterface op;
  ShardingRule rule;
  /// The factor of the rows.
  unsigned factor;
  /// For each operand the dimension of the rows; -1 if it has none.
  SmallVector<int64_t> operandDims;
  int64_t resultDim;
};

/// The rows of `op` along the dimension that has `factors`; nullopt if `op`
/// isn't a contraction or contracts that dimension.
std::optional<Rows> getRows(Operation *op, ShardingRule rule,
                            const DimFactors &factors) {
  auto isReduction = [](const Factor &factor) {
    return factor.kind == FactorKind::Reduction;
  };
  if (op->getNumOperands() < 2 || llvm::none_of(rule.factors, isReduction) ||
      factors.size() != 1 || !rule.windows.empty() ||
      rule.factors[factors.front()].kind != FactorKind::Parallel)
    return std::nullopt;
  Rows rows{cast<ShardingRuleOpInterface>(op), rule, factors.front(), {}, -1};
  for (const TensorFactors &operand : rule.operands) {
    std::optional<int64_t> dim = getWholeDim(operand, factors.front());
    if (!dim)
      return std::nullopt;
    rows.operandDims.push_back(*dim);
  }
  std::optional<int64_t> dim =
      getWholeDim(rule.results.front(), factors.front());
  if (!dim || *dim < 0)
    return std::nullopt;
  rows.resultDim = *dim;
  return rows;
}

class CollectiveChunker {
public:
  CollectiveChunker(func::FuncOp program, int64_t chunks)
      : program(program), chunks(chunks), rank(getAnyRank(program)),
        tensors(TensorBuilder::get(program)) {}

  LogicalResult run() {
    for (CollectiveOpInterface op : getCollectives(program)) {
      if (isa<StartOp>(op->getParentOp()))
        continue;
      LogicalResult result = success();
      if (auto gather = dyn_cast<AllGatherOp>(op.getOperation()))
        result = chunk(gather);
      else if (auto scatter = dyn_cast<ReduceScatterOp>(op.getOperation()))
        result = chunk(scatter);
      if (failed(result))
        return failure();
    }
    return success();
  }

  unsigned numChunked = 0;

private:
  //===--------------------------------------------------------------------===//
  // all_gather, contraction
  //===--------------------------------------------------------------------===//

  LogicalResult chunk(AllGatherOp gather) {
    if (!gather->hasOneUse() ||
        !divides(gather.getType(), gather.getInput().getType(), gather.getDim(),
                 gather.getAxes()))
      return success();
    OpOperand &use = *gather->use_begin();
    Operation *user = use.getOwner();
    auto ruled = dyn_cast<ShardingRuleOpInterface>(user);
    if (!ruled || user->getNumResults() != 1 || !isMemoryEffectFree(user) ||
        user->getBlock() != gather->getBlock())
      return success();
    ShardingRule rule = ruled.getShardingRule();
    std::optional<Rows> rows = getRows(
        user, rule, rule.operands[use.getOperandNumber()][gather.getDim()]);
    if (!rows || !isAlike(*rows, gather.getAxes()))
      return success();
    // Give up if another operand has the rows: it would have to be cut as well.
    for (auto [i, dim] : llvm::enumerate(rows->operandDims))
      if (dim >= 0 && i != use.getOperandNumber())
        return success();

    note(gather, "all_gather and its contraction are done in chunks");
    OpBuilder b(user);
    Location loc = gather.getLoc();
    int64_t dim = gather.getDim();
    int64_t block = gather.getInput().getType().getDimSize(dim);
    int64_t ranks = gather.getType().getDimSize(dim) / block;
    // Cut all pieces before the first contraction, so that the next gather
    // doesn't wait for it.
    SmallVector<Value> blocks, pieces;
    for (int64_t j = 0; j < chunks; ++j)
      blocks.push_back(tensors.slice(b, loc, gather.getInput(), dim,
                                     j * (block / chunks), block / chunks));
    for (Value piece : blocks) {
      auto type = cast<RankedTensorType>(piece.getType());
      auto gathered = createFor<AllGatherOp>(
          {gather}, b, loc, resize(type, dim, ranks * (block / chunks)), piece,
          gather.getDimAttr(), gather.getMeshAttr(), gather.getAxes());
      SmallVector<Value> operands(user->getOperands());
      operands[use.getOperandNumber()] = gathered;
      FailureOr<Value> result =
          contract(b, *rows, operands, ranks * (block / chunks));
      if (failed(result))
        return failure();
      pieces.push_back(unfold(b, loc, *result, rows->resultDim, ranks));
    }
    // From (ranks, rows of a piece) of each piece to (ranks, rows of a block).
    Value all = tensors.concat(b, loc, pieces, rows->resultDim + 1);
    all = tensors.reshape(
        b, loc, all,
        cast<RankedTensorType>(user->getResult(0).getType()).getShape());
    user->getResult(0).replaceAllUsesWith(all);
    user->erase();
    gather.erase();
    return success();
  }

  //===--------------------------------------------------------------------===//
  // contraction, reduce_scatter
  //===--------------------------------------------------------------------===//

  LogicalResult chunk(ReduceScatterOp scatter) {
    Operation *producer = scatter.getInput().getDefiningOp();
    auto ruled = dyn_cast_or_null<ShardingRuleOpInterface>(producer);
    if (!ruled || !producer->hasOneUse() || producer->getNumResults() != 1 ||
        !isMemoryEffectFree(producer) ||
        producer->getBlock() != scatter->getBlock() ||
        !divides(scatter.getInput().getType(), scatter.getType(),
                 scatter.getDim(), scatter.getAxes()))
      return success();
    ShardingRule rule = ruled.getShardingRule();
    std::optional<Rows> rows =
        getRows(producer, rule, rule.results[0][scatter.getDim()]);
    if (!rows || !isAlike(*rows, scatter.getAxes()))
      return success();

    note(scatter, "reduce_scatter and its contraction are done in chunks");
    OpBuilder b(scatter);
    Location loc = scatter.getLoc();
    int64_t dim = scatter.getDim();
    int64_t block = scatter.getType().getDimSize(dim);
    int64_t ranks = scatter.getInput().getType().getDimSize(dim) / block;
    SmallVector<Value> pieces;
    for (int64_t j = 0; j < chunks; ++j) {
      SmallVector<Value> operands;
      for (auto [operand, own] :
           llvm::zip_equal(producer->getOperands(), rows->operandDims))
        operands.push_back(
            own < 0 ? operand : takePieces(b, loc, operand, own, ranks, j));
      FailureOr<Value> result =
          contract(b, *rows, operands, ranks * (block / chunks));
      if (failed(result))
        return failure();
      auto scattered = createFor<ReduceScatterOp>(
          {scatter}, b, loc, resize(scatter.getType(), dim, block / chunks),
          *result, scatter.getKind(), scatter.getDimAttr(),
          scatter.getMeshAttr(), scatter.getAxes());
      pieces.push_back(scattered);
    }
    scatter.getResult().replaceAllUsesWith(tensors.concat(b, loc, pieces, dim));
    scatter.erase();
    producer->erase();
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Pieces
  //===--------------------------------------------------------------------===//

  /// Whether `block` is an even part of `whole`, and can be cut into the
  /// chunks.
  bool divides(RankedTensorType whole, RankedTensorType block, int64_t dim,
               AxisListAttr axes) {
    int64_t size = block.getDimSize(dim);
    return size > 0 && whole.getDimSize(dim) % size == 0 &&
           whole.getDimSize(dim) / size > 1 && size % chunks == 0 &&
           axes.getSegments().empty();
  }

  /// Whether a row's result doesn't depend on the row's position, which a piece
  /// doesn't know.
  static bool isAlike(const Rows &rows, AxisListAttr axes) {
    return isAlikeAlong(rows.op, rows.factor, axes.getAxes(), getMesh(rows.op));
  }

  static MeshOp getMesh(Operation *op) {
    return *op->getParentOfType<ModuleOp>().getOps<MeshOp>().begin();
  }

  void note(CollectiveOpInterface op, StringRef what) {
    remarkRewrite(op, "Decompose", what);
    ++numChunked;
  }

  /// The contraction of `operands`, with `size` rows.
  FailureOr<Value> contract(OpBuilder &b, const Rows &rows,
                            ArrayRef<Value> operands, int64_t size) {
    ShardingRuleOpInterface op = rows.op;
    OpSplit split = getReplicatedSplit(rows.rule, getMesh(op));
    split.rank = rank;
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    FailureOr<SmallVector<Value>> results =
        op.partition(b, operands, resize(type, rows.resultDim, size), split);
    if (failed(results))
      return failure();
    return results->front();
  }

  /// Piece `j` of each rank's rows, rank by rank.
  Value takePieces(OpBuilder &b, Location loc, Value value, int64_t dim,
                   int64_t ranks, int64_t j) {
    Value apart = unfold(b, loc, value, dim, ranks);
    int64_t block = cast<RankedTensorType>(apart.getType()).getDimSize(dim + 1);
    Value pieces = tensors.slice(b, loc, apart, dim + 1, j * (block / chunks),
                                 block / chunks);
    auto type = cast<RankedTensorType>(value.getType());
    return tensors.reshape(
        b, loc, pieces, resize(type, dim, ranks * (block / chunks)).getShape());
  }

  /// Splits dimension `dim` into two; the major one has size `major`.
  Value unfold(OpBuilder &b, Location loc, Value value, int64_t dim,
               int64_t major) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] /= major;
    shape.insert(shape.begin() + dim, major);
    return tensors.reshape(b, loc, value, shape);
  }

  func::FuncOp program;
  int64_t chunks;
  int64_t rank;
  const TensorBuilder &tensors;
};

} // namespace

FailureOr<unsigned> collectives::chunkCollectives(func::FuncOp program,
                                                  int64_t chunks) {
  CollectiveChunker chunker(program, chunks);
  if (failed(chunker.run()))
    return failure();
  return chunker.numChunked;
}
