//===- JoinChunks.cpp - Contractions of chunks, joined --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program may compute a contraction in chunks of rows, so that one chunk's
// collective overlaps another chunk's arithmetic. The reference has no chunks
// as values, so they are joined before the matcher starts. Nothing is assumed
// about how the chunks were made: joined in order, their rows must be all the
// rows of the contraction, and the op's rule must say that its rows are
// independent.
//
//===----------------------------------------------------------------------===//

#include "ProgramForms.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OperationSupport.h"
#include "tp/Interfaces/ShapeOpInterfaces.h"
#include "tp/Interfaces/TensorBuilder.h"
#include "tp/Sharding/SplitInference.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tp;

static RankedTensorType getType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Whether `to` is `from` with dimension `dim` split into two, the major one of
/// size `major`.
static bool isUnfolded(RankedTensorType from, RankedTensorType to, int64_t dim,
                       int64_t major) {
  SmallVector<int64_t> shape(from.getShape());
  if (shape[dim] % major != 0)
    return false;
  shape[dim] /= major;
  shape.insert(shape.begin() + dim, major);
  return to.getShape() == ArrayRef<int64_t>(shape);
}

/// Whether the ops are the same up to their operands.
static bool isAlike(Operation *a, Operation *b) {
  return a->getName() == b->getName() &&
         a->getNumOperands() == b->getNumOperands() &&
         a->getResultTypes() == b->getResultTypes() &&
         a->getPropertiesAsAttribute() == b->getPropertiesAsAttribute() &&
         llvm::all_of(llvm::zip_equal(a->getRegions(), b->getRegions()),
                      [](auto regions) {
                        return OperationEquivalence::isRegionEquivalentTo(
                            &std::get<0>(regions), &std::get<1>(regions),
                            OperationEquivalence::IgnoreLocations);
                      });
}

namespace {

/// Chunk number `index` of `count`, each of which has `size` rows per rank.
struct Chunk {
  unsigned index, count;
  int64_t ranks, size;
};

class ChunkJoiner {
public:
  ChunkJoiner(func::FuncOp program, MeshOp mesh) : mesh(mesh) {
    program.walk([&](CollectiveOpInterface op) {
      order[op] = chunks.size();
      chunks.push_back({chunks.size(), 0});
    });
  }

  void join(ConcatOpInterface all) {
    if (all.getInputs().size() < 2)
      return;
    if (all.getInputs().front().getDefiningOp<ReduceScatterOp>())
      joinScattered(all);
    else if (all->hasOneUse())
      if (auto fold = dyn_cast<ReshapeOpInterface>(*all->user_begin()))
        joinGathered(all, fold);
  }

  SmallVector<std::pair<unsigned, unsigned>> chunks;

private:
  /// concat(unfold(op(all_gather(slice(x, j)), …))) is op(all_gather(x), …).
  void joinGathered(ConcatOpInterface all, ReshapeOpInterface fold) {
    int64_t dim = all.getDim() - 1;
    SmallVector<Operation *> ops, gathers, dead = {fold, all};
    for (Value piece : all.getInputs()) {
      auto unfold = piece.getDefiningOp<ReshapeOpInterface>();
      Operation *op = unfold ? unfold.getInput().getDefiningOp() : nullptr;
      if (!op || dim < 0 || !unfold->hasOneUse())
        return;
      dead.push_back(unfold);
      ops.push_back(op);
    }
    auto first = dyn_cast<ShardingRuleOpInterface>(ops.front());
    std::optional<unsigned> index = getDifferentOperand(ops);
    if (!first || !index || !areSingleUse(ops))
      return;
    SmallVector<Value> operands(first->getOperands());
    auto leading = operands[*index].getDefiningOp<AllGatherOp>();
    if (!leading)
      return;
    int64_t gathered = leading.getDim();
    int64_t ranks = mesh.getAxesSize(leading.getAxes().getAxes());
    Value whole;
    for (auto [j, op] : llvm::enumerate(ops)) {
      auto gather = op->getOperand(*index).getDefiningOp<AllGatherOp>();
      auto slice = gather ? gather.getInput().getDefiningOp<SliceOpInterface>()
                          : nullptr;
      if (!slice || !gather->hasOneUse() ||
          !isInSameGroups(CollectiveOpInterface(leading),
                          CollectiveOpInterface(gather)) ||
          static_cast<int64_t>(gather.getDim()) != gathered ||
          (whole && slice.getInput() != whole))
        return;
      whole = slice.getInput();
      int64_t size = slice.getType().getDimSize(gathered);
      Chunk chunk{static_cast<unsigned>(j), static_cast<unsigned>(ops.size()),
                  ranks, size};
      if (!isChunk(slice, gathered, chunk) ||
          getType(whole).getDimSize(gathered) != size * chunk.count ||
          gather.getType().getDimSize(gathered) != size * ranks ||
          !isUnfolded(getType(op->getResult(0)), getType(all.getInputs()[j]),
                      dim, ranks))
        return;
      gathers.push_back(gather);
    }
    int64_t rows = ranks * getType(whole).getDimSize(gathered);
    RankedTensorType type = resize(getType(first->getResult(0)), dim, rows);
    if (fold.getType() != type)
      return;
    SmallVector<int64_t> rowDims(operands.size(), -1);
    rowDims[*index] = gathered;

    Operation *earliest = getEarliest(gathers);
    OpBuilder builder(earliest);
    operands[*index] = AllGatherOp::create(
        builder, leading.getLoc(), resize(getType(whole), gathered, rows),
        whole, leading.getDimAttr(), leading.getMeshAttr(), leading.getAxes(),
        StringAttr(), StringAttr(), IntegerAttr());
    builder.setInsertionPoint(fold);
    Operation *joined =
        build(builder, first, operands, type, rowDims, dim, leading.getAxes());
    if (!joined) {
      operands[*index].getDefiningOp()->erase();
      return;
    }
    fold.getResult().replaceAllUsesWith(joined->getResult(0));
    note(gathers);
    llvm::append_range(dead, ops);
    llvm::append_range(dead, gathers);
    erase(dead);
  }

  /// concat(reduce_scatter(op(rows j of each rank's, …))) is
  /// reduce_scatter(op(…)).
  void joinScattered(ConcatOpInterface all) {
    int64_t dim = all.getDim();
    SmallVector<Operation *> ops, scatters, dead = {all};
    auto leading = all.getInputs().front().getDefiningOp<ReduceScatterOp>();
    for (Value piece : all.getInputs()) {
      auto scatter = piece.getDefiningOp<ReduceScatterOp>();
      if (!scatter || !scatter->hasOneUse() ||
          !isInSameGroups(CollectiveOpInterface(leading),
                          CollectiveOpInterface(scatter)) ||
          scatter.getKind() != leading.getKind() ||
          static_cast<int64_t>(scatter.getDim()) != dim ||
          scatter.getType() != leading.getType() ||
          !scatter.getInput().getDefiningOp())
        return;
      scatters.push_back(scatter);
      ops.push_back(scatter.getInput().getDefiningOp());
    }
    auto first = dyn_cast<ShardingRuleOpInterface>(ops.front());
    if (!first || !areSingleUse(ops) || !areAlike(ops))
      return;
    int64_t ranks = mesh.getAxesSize(leading.getAxes().getAxes());
    int64_t size = leading.getType().getDimSize(dim);
    if (leading.getInput().getType().getDimSize(dim) != size * ranks)
      return;
    SmallVector<Value> operands;
    SmallVector<int64_t> rowDims;
    for (unsigned i = 0; i < first->getNumOperands(); ++i) {
      Value same = first->getOperand(i);
      rowDims.push_back(-1);
      if (llvm::all_of(
              ops, [&](Operation *op) { return op->getOperand(i) == same; })) {
        operands.push_back(same);
        continue;
      }
      Value whole;
      for (auto [j, op] : llvm::enumerate(ops)) {
        auto [from, own] =
            findPieces(op->getOperand(i),
                       {static_cast<unsigned>(j),
                        static_cast<unsigned>(ops.size()), ranks, size});
        if (!from || (whole && (from != whole || own != rowDims.back())))
          return;
        whole = from;
        rowDims.back() = own;
      }
      operands.push_back(whole);
    }
    int64_t block = size * ops.size();
    OpBuilder builder(getEarliest(scatters));
    Operation *joined =
        build(builder, first, operands,
              resize(getType(first->getResult(0)), dim, ranks * block), rowDims,
              dim, leading.getAxes());
    if (!joined)
      return;
    all.getResult().replaceAllUsesWith(ReduceScatterOp::create(
        builder, leading.getLoc(), resize(leading.getType(), dim, block),
        joined->getResult(0), leading.getKind(), leading.getDimAttr(),
        leading.getMeshAttr(), leading.getAxes(), StringAttr(), StringAttr(),
        IntegerAttr()));
    note(scatters);
    llvm::append_range(dead, scatters);
    llvm::append_range(dead, ops);
    erase(dead);
  }

  /// Whether both are original collectives over the same groups.
  bool isInSameGroups(CollectiveOpInterface a, CollectiveOpInterface b) const {
    return order.contains(a) && order.contains(b) &&
           a.getAxes() == b.getAxes() && a->getBlock() == b->getBlock() &&
           b.getAxes().getSegments().empty();
  }

  static bool isChunk(SliceOpInterface slice, int64_t dim, const Chunk &chunk) {
    std::optional<DimRange> range = slice.getRange();
    return range && range->dim == dim &&
           range->start == chunk.index * chunk.size &&
           slice.getType().getDimSize(dim) == chunk.size;
  }

  /// If `piece` is `chunk` of each rank's rows of some value, that
  /// value and the dimension of its rows; otherwise null.
  static std::pair<Value, int64_t> findPieces(Value piece, const Chunk &chunk) {
    auto fold = piece.getDefiningOp<ReshapeOpInterface>();
    auto slice =
        fold ? fold.getInput().getDefiningOp<SliceOpInterface>() : nullptr;
    auto unfold =
        slice ? slice.getInput().getDefiningOp<ReshapeOpInterface>() : nullptr;
    if (!unfold || !slice.getRange())
      return {};
    int64_t dim = slice.getRange()->dim - 1;
    if (dim < 0 || dim >= getType(unfold.getInput()).getRank() ||
        dim >= fold.getType().getRank() || !isChunk(slice, dim + 1, chunk) ||
        getType(slice.getInput()).getDimSize(dim + 1) !=
            chunk.size * chunk.count ||
        !isUnfolded(getType(unfold.getInput()), unfold.getType(), dim,
                    chunk.ranks) ||
        !isUnfolded(fold.getType(), slice.getType(), dim, chunk.ranks))
      return {};
    return {unfold.getInput(), dim};
  }

  static bool areAlike(ArrayRef<Operation *> ops) {
    return llvm::all_of(ops, [&](Operation *op) {
      return op->getNumResults() == 1 && isMemoryEffectFree(op) &&
             isAlike(op, ops.front());
    });
  }
  static bool areSingleUse(ArrayRef<Operation *> ops) {
    return llvm::all_of(ops, [](Operation *op) { return op->hasOneUse(); });
  }

  /// The index of the only operand that differs between `ops`; nullopt if there
  /// isn't exactly one, or if the ops aren't alike otherwise.
  static std::optional<unsigned>
  getDifferentOperand(ArrayRef<Operation *> ops) {
    std::optional<unsigned> found;
    if (!areAlike(ops))
      return found;
    for (unsigned i = 0; i < ops.front()->getNumOperands(); ++i)
      if (llvm::any_of(ops, [&](Operation *op) {
            return op->getOperand(i) != ops.front()->getOperand(i);
          })) {
        if (found)
          return std::nullopt;
        found = i;
      }
    return found;
  }

  /// Builds the op of `chunk` on the joined operands. Returns null unless the
  /// rule says that the rows, dimension `resultDim` of the result and `rowDims`
  /// of the operands (-1: none), are computed independently.
  Operation *build(OpBuilder &builder, ShardingRuleOpInterface chunk,
                   ArrayRef<Value> operands, RankedTensorType type,
                   ArrayRef<int64_t> rowDims, int64_t resultDim,
                   AxisListAttr axes) {
    FailureOr<SmallVector<Value>> built =
        clonePartitioned(chunk, builder, operands, type);
    if (failed(built))
      return nullptr;
    Operation *op = built->front().getDefiningOp();
    auto whole = cast<ShardingRuleOpInterface>(op);
    ShardingRule rule = whole.getShardingRule();
    ArrayRef<unsigned> rows = rule.results.front()[resultDim];
    auto areRows = [&](const TensorFactors &tensor, int64_t rowDim) {
      for (auto [dim, factors] : llvm::enumerate(tensor))
        if (static_cast<int64_t>(dim) == rowDim
                ? ArrayRef<unsigned>(factors) != rows
                : llvm::is_contained(factors, rows.front()))
          return false;
      return true;
    };
    if (rows.size() == 1 && rule.windows.empty() &&
        rule.factors[rows.front()].kind == FactorKind::Parallel &&
        areRows(rule.results.front(), resultDim) &&
        llvm::all_of(llvm::zip_equal(rule.operands, rowDims),
                     [&](auto pair) {
                       return areRows(std::get<0>(pair), std::get<1>(pair));
                     }) &&
        isAlikeAlong(whole, rows.front(), axes.getAxes(), mesh))
      return op;
    op->erase();
    return nullptr;
  }

  Operation *getEarliest(ArrayRef<Operation *> ops) {
    return *llvm::min_element(
        ops, [&](Operation *a, Operation *b) { return order[a] < order[b]; });
  }

  void note(ArrayRef<Operation *> collectives) {
    unsigned first = order[getEarliest(collectives)];
    for (auto [j, op] : llvm::enumerate(collectives))
      chunks[order[op]] = {first, j};
  }

  /// Erases `ops`, in which users come before the ops that they use.
  void erase(ArrayRef<Operation *> ops) {
    for (Operation *op : ops) {
      order.erase(op);
      op->erase();
    }
  }

  MeshOp mesh;
  /// The position of each original collective in the program.
  DenseMap<Operation *, unsigned> order;
};

} // namespace

SmallVector<std::pair<unsigned, unsigned>> tp::joinChunks(func::FuncOp program,
                                                          MeshOp mesh) {
  ChunkJoiner joiner(program, mesh);
  SmallVector<ConcatOpInterface> concats;
  program.walk([&](ConcatOpInterface op) { concats.push_back(op); });
  for (ConcatOpInterface all : concats)
    joiner.join(all);
  return joiner.chunks;
}
