//===- FuseRows.cpp - Chains of ops, row by row ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In program order, ops join a group as long as all of them can share some
// number of leading parallel loops. Sharing d loops is legal if the ops agree
// on the loops' sizes and if every buffer that one op of the group writes and
// another one touches is indexed by these d loops in the same positions
// everywhere. Iteration (i0, …, id-1) of all ops then touches one row of the
// buffer, and no other iteration touches that row. A buffer that a body loads
// from at computed indices isn't written by any op of the group. Sharing pays
// if the inner loops run along memory.
//
//===----------------------------------------------------------------------===//

#include "CodeGen/Loops/Buffers.h"
#include "CodeGen/Loops/Loops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Dialect/TP/Elements.h"

namespace mlir::tp {
#define GEN_PASS_DEF_FUSEROWS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

unsigned getNumLeadingParallel(linalg::GenericOp op) {
  unsigned count = 0;
  for (utils::IteratorType iterator : op.getIteratorTypesArray()) {
    if (iterator != utils::IteratorType::parallel)
      break;
    ++count;
  }
  return count;
}

/// For each of the first `depth` loops the dimension of the buffer that it
/// indexes, or -1. Fails if a loop is part of a larger expression.
std::optional<SmallVector<int64_t>> getRowDims(AffineMap map, unsigned depth) {
  SmallVector<int64_t> dims(depth, -1);
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      if (dim.getPosition() >= depth)
        continue;
      if (dims[dim.getPosition()] >= 0)
        return std::nullopt;
      dims[dim.getPosition()] = i;
      continue;
    }
    for (unsigned d = 0; d < depth; ++d)
      if (expr.isFunctionOfDim(d))
        return std::nullopt;
  }
  return dims;
}

/// An operand of an op of a group.
struct Access {
  OpOperand *operand;
  Value root;
  bool isWrite;
  SmallVector<int64_t> rowDims;
};

using Ops = ArrayRef<linalg::GenericOp>;

/// Whether the body of an op loads what an op writes.
bool loadWhatIsWritten(Ops ops) {
  DenseSet<Value> written;
  for (linalg::GenericOp op : ops)
    for (Value init : op.getDpsInits())
      written.insert(getRootBuffer(init));
  return llvm::any_of(ops, [&](linalg::GenericOp op) {
    return llvm::any_of(getCapturedBuffers(op), [&](Value loaded) {
      return written.contains(getRootBuffer(loaded));
    });
  });
}

/// Whether the loops of `op` behind the first `depth` would go through memory
/// in strides, as in a sum over rows whose columns are the first loops.
bool isLeftStrided(linalg::GenericOp op, unsigned depth) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  bool isLeft = llvm::any_of(ArrayRef(sizes).drop_front(depth),
                             [](int64_t size) { return size != 1; });
  return isLeft && getContiguousLoop(op) < depth;
}

bool canShare(Ops ops, unsigned depth) {
  linalg::GenericOp first = ops.front();
  SmallVector<int64_t> sizes = first.getStaticLoopRanges();
  SmallVector<Access> accesses;
  for (linalg::GenericOp op : ops) {
    if (getNumLeadingParallel(op) < depth ||
        ArrayRef(op.getStaticLoopRanges()).take_front(depth) !=
            ArrayRef(sizes).take_front(depth) ||
        isLeftStrided(op, depth))
      return false;
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<MemRefType>(operand.get().getType()))
        continue;
      auto dims = getRowDims(op.getMatchingIndexingMap(&operand), depth);
      if (!dims)
        return false;
      accesses.push_back({&operand, getRootBuffer(operand.get()),
                          op.isDpsInit(&operand), *dims});
    }
  }
  for (const Access &x : accesses)
    for (const Access &y : accesses) {
      if (!x.isWrite || x.root != y.root ||
          (x.operand->getOwner() == y.operand->getOwner() &&
           areDisjoint(x.operand->get(), y.operand->get())))
        continue;
      if (x.operand->get() != y.operand->get() || x.rowDims != y.rowDims)
        return false;
      for (unsigned d = 0; d < depth; ++d)
        if (x.rowDims[d] < 0 && sizes[d] != 1)
          return false;
    }
  return true;
}

/// The most loops that `ops` can share; one loop at least stays inside, so that
/// there is something to vectorize.
unsigned getSharedDepth(Ops ops) {
  unsigned depth = std::numeric_limits<unsigned>::max(), most = 0;
  for (linalg::GenericOp op : ops) {
    depth = std::min(depth, getNumLeadingParallel(op));
    most = std::max<unsigned>(most, op.getNumLoops());
  }
  if (most == 0 || loadWhatIsWritten(ops))
    return 0;
  for (depth = std::min(depth, most - 1); depth > 0; --depth)
    if (canShare(ops, depth))
      return depth;
  return 0;
}

/// How many rows `ops` have when they share `depth` loops.
int64_t countRows(Ops ops, unsigned depth) {
  linalg::GenericOp first = ops.front();
  return llvm::product_of(
      ArrayRef(first.getStaticLoopRanges()).take_front(depth));
}

class FuseRows : public tp::impl::FuseRowsBase<FuseRows> {
public:
  using FuseRowsBase::FuseRowsBase;

private:
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    if (failed(normalize(rewriter)))
      return signalPassFailure();
    SmallVector<SmallVector<linalg::GenericOp>> groups;
    SmallVector<linalg::GenericOp> group;
    auto close = [&] {
      if (group.size() > 1)
        groups.push_back(group);
      group.clear();
    };
    for (Operation &op : getOperation().getBody().front()) {
      auto generic = dyn_cast<linalg::GenericOp>(op);
      if (!generic) {
        if (!isa<ViewLikeOpInterface, memref::AllocOp, memref::GetGlobalOp>(
                op) &&
            !op.hasTrait<OpTrait::ConstantLike>())
          close();
        continue;
      }
      bool joins = isRelated(group, generic);
      group.push_back(generic);
      if (joins && pays(group))
        continue;
      group.pop_back();
      close();
      group.push_back(generic);
    }
    close();
    for (const auto &ops : groups)
      fuse(rewriter, ops, getSharedDepth(ops));
  }

  /// Whether to run `ops` in one nest, the last of which would be alone
  /// otherwise.
  bool pays(Ops ops) const {
    unsigned depth = getSharedDepth(ops);
    if (depth == 0)
      return false;
    int64_t rows = countRows(ops, depth);
    auto areAtMost = [&](int64_t iterations) {
      return llvm::all_of(ops, [&](linalg::GenericOp op) {
        return llvm::product_of(op.getStaticLoopRanges()) <= iterations;
      });
    };
    if (rows < minRows && !areAtMost(smallOp) &&
        rows < std::max(countMostRows(ops.drop_back()),
                        countMostRows(ops.take_back())))
      return false;
    return rows > 1 || areAtMost(maxSingleRow);
  }

  static int64_t countMostRows(Ops ops) {
    return ops.empty() ? 1 : countRows(ops, getSharedDepth(ops));
  }

  /// Whether `op` shares a buffer with `group`: ops that share none aren't
  /// grouped, because fewer ops could reuse their kernel. An op that reads no
  /// buffer may join: it sets up what the next one adds to.
  static bool isRelated(Ops group, linalg::GenericOp op) {
    if (group.empty() || !llvm::any_of(op.getDpsInputs(), [](Value input) {
          return isa<MemRefType>(input.getType());
        }))
      return true;
    DenseSet<Value> roots;
    for (linalg::GenericOp member : group)
      for (Value operand : member->getOperands())
        roots.insert(getRootBuffer(operand));
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return roots.contains(getRootBuffer(operand));
    });
  }

  /// Turns all ops into linalg.generic, with loops in the order of the result's
  /// dimensions and reductions after them.
  LogicalResult normalize(IRRewriter &rewriter) {
    Block &body = getOperation().getBody().front();
    for (auto copy :
         llvm::make_early_inc_range(body.getOps<memref::CopyOp>())) {
      // Insertions whose value was computed in place leave these behind.
      if (copy.getSource() == copy.getTarget()) {
        rewriter.eraseOp(copy);
        continue;
      }
      rewriter.setInsertionPoint(copy);
      auto type = cast<MemRefType>(copy.getTarget().getType());
      auto identity = rewriter.getMultiDimIdentityMap(type.getRank());
      SmallVector<utils::IteratorType> parallel(type.getRank(),
                                                utils::IteratorType::parallel);
      linalg::GenericOp::create(
          rewriter, copy.getLoc(), copy.getSource(), copy.getTarget(),
          ArrayRef<AffineMap>{identity, identity}, parallel,
          [](OpBuilder &b, Location loc, ValueRange args) {
            linalg::YieldOp::create(b, loc, args[0]);
          });
      rewriter.eraseOp(copy);
    }
    for (auto op :
         llvm::make_early_inc_range(body.getOps<linalg::LinalgOp>())) {
      rewriter.setInsertionPoint(op);
      FailureOr<linalg::GenericOp> generic =
          isa<linalg::GenericOp>(op) ? cast<linalg::GenericOp>(*op)
                                     : linalg::generalizeNamedOp(rewriter, op);
      if (failed(generic))
        return failure();
      if (llvm::is_contained(generic->getStaticLoopRanges(), 0)) {
        // No iterations, nothing to write.
        if (generic->getNumResults() == 0)
          rewriter.eraseOp(*generic);
        else
          rewriter.replaceOp(*generic,
                             SmallVector<Value>(generic->getDpsInits()));
        continue;
      }
      SmallVector<unsigned> order;
      AffineMap map =
          generic->getMatchingIndexingMap(generic->getDpsInitOperand(0));
      for (AffineExpr expr : map.getResults())
        if (auto dim = dyn_cast<AffineDimExpr>(expr))
          order.push_back(dim.getPosition());
      for (unsigned d = 0; d < generic->getNumLoops(); ++d)
        if (!llvm::is_contained(order, d))
          order.push_back(d);
      if (llvm::is_sorted(order))
        continue;
      rewriter.setInsertionPoint(*generic);
      if (failed(linalg::interchangeGenericOp(rewriter, *generic, order)))
        return failure();
    }
    return success();
  }

  void fuse(IRRewriter &rewriter, Ops ops, unsigned depth) {
    linalg::GenericOp last = ops.back();
    rewriter.setInsertionPoint(last);
    Location loc = last.getLoc();
    DenseMap<Value, Value> rows = shrinkTemporaries(rewriter, ops, depth);

    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    SmallVector<Value> ends, ivs;
    SmallVector<int64_t> sizes = last.getStaticLoopRanges();
    for (int64_t size : ArrayRef(sizes).take_front(depth))
      ends.push_back(arith::ConstantIndexOp::create(rewriter, loc, size));
    for (Value end : ends) {
      auto loop = scf::ForOp::create(rewriter, loc, zero, end, one);
      rewriter.setInsertionPointToStart(loop.getBody());
      ivs.push_back(loop.getInductionVar());
    }
    for (linalg::GenericOp op : ops) {
      cloneForRow(rewriter, op, ivs, rows);
      ++numFused;
    }
    for (linalg::GenericOp op : ops)
      op.erase();
    for (auto [buffer, row] : rows)
      if (buffer.use_empty())
        buffer.getDefiningOp()->erase();
  }

  /// Maps buffers that only `ops` use to new buffers of one row.
  DenseMap<Value, Value> shrinkTemporaries(IRRewriter &rewriter, Ops ops,
                                           unsigned depth) {
    DenseMap<Value, Value> rows;
    int64_t bytes = 0;
    for (linalg::GenericOp op : ops)
      for (OpOperand &operand : op.getDpsInitsMutable()) {
        auto alloc = operand.get().getDefiningOp<memref::AllocOp>();
        if (!alloc || rows.contains(alloc) ||
            llvm::any_of(alloc->getUsers(), [&](Operation *user) {
              return !llvm::is_contained(ops, user);
            }))
          continue;
        auto dims = *getRowDims(op.getMatchingIndexingMap(&operand), depth);
        SmallVector<int64_t> shape;
        for (auto [i, size] : llvm::enumerate(alloc.getType().getShape()))
          if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
            shape.push_back(size);
        auto rowType = MemRefType::get(shape, alloc.getType().getElementType());
        if (rowType.getNumElements() > 1) {
          if (getTensorBytes(rowType) > maxRowBytes - bytes)
            continue;
          bytes += getTensorBytes(rowType);
        }
        rows[alloc] =
            memref::AllocOp::create(rewriter, alloc.getLoc(), rowType);
      }
    return rows;
  }

  /// Clones `op` for the iteration `ivs` of its first loops.
  static void cloneForRow(IRRewriter &rewriter, linalg::GenericOp op,
                          ArrayRef<Value> ivs,
                          const DenseMap<Value, Value> &rows) {
    Location loc = op.getLoc();
    unsigned depth = ivs.size(), numLoops = op.getNumLoops();
    // Loops 0 … depth-1 disappear, the others move to the front.
    SmallVector<AffineExpr> renumbered(numLoops,
                                       rewriter.getAffineConstantExpr(0));
    for (unsigned d = depth; d < numLoops; ++d)
      renumbered[d] = rewriter.getAffineDimExpr(d - depth);

    SmallVector<Value> operands;
    SmallVector<AffineMap> maps;
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      SmallVector<AffineExpr> exprs;
      auto type = dyn_cast<MemRefType>(operand.get().getType());
      if (!type) {
        operands.push_back(operand.get());
        maps.push_back(
            map.replaceDimsAndSymbols(renumbered, {}, numLoops - depth, 0));
        continue;
      }
      SmallVector<int64_t> dims = *getRowDims(map, depth);
      SmallVector<OpFoldResult> offsets(type.getRank(),
                                        rewriter.getIndexAttr(0));
      SmallVector<OpFoldResult> sizes =
          getAsIndexOpFoldResult(rewriter.getContext(), type.getShape());
      SmallVector<OpFoldResult> strides(type.getRank(),
                                        rewriter.getIndexAttr(1));
      llvm::SmallBitVector isDropped(type.getRank());
      for (auto [dim, iv] : llvm::zip_equal(dims, ivs))
        if (dim >= 0) {
          offsets[dim] = iv;
          sizes[dim] = rewriter.getIndexAttr(1);
          isDropped.set(dim);
        }
      SmallVector<int64_t> shape;
      for (auto [i, expr] : llvm::enumerate(map.getResults()))
        if (!isDropped[i]) {
          exprs.push_back(expr.replaceDims(renumbered));
          shape.push_back(type.getDimSize(i));
        }
      maps.push_back(
          AffineMap::get(numLoops - depth, 0, exprs, rewriter.getContext()));
      if (Value row = rows.lookup(operand.get())) {
        operands.push_back(row);
      } else if (isDropped.none()) {
        operands.push_back(operand.get());
      } else {
        auto rowType = memref::SubViewOp::inferRankReducedResultType(
            shape, type, offsets, sizes, strides);
        operands.push_back(memref::SubViewOp::create(
            rewriter, loc, rowType, operand.get(), offsets, sizes, strides));
      }
    }
    unsigned numInputs = op.getNumDpsInputs();
    auto row = linalg::GenericOp::create(
        rewriter, loc, TypeRange(), ArrayRef(operands).take_front(numInputs),
        ArrayRef(operands).drop_front(numInputs), maps,
        ArrayRef(op.getIteratorTypesArray()).drop_front(depth));
    rewriter.cloneRegionBefore(op.getRegion(), row.getRegion(),
                               row.getRegion().begin());
    OpBuilder::InsertionGuard guard(rewriter);
    for (auto index : llvm::make_early_inc_range(
             row.getRegion().front().getOps<linalg::IndexOp>())) {
      if (index.getDim() < depth) {
        rewriter.replaceOp(index, ivs[index.getDim()]);
      } else {
        index.setDim(index.getDim() - depth);
      }
    }
  }
};

} // namespace
