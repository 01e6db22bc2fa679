//===- MultithreadKernels.cpp - Kernels that run in parts -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel's outermost parallel loops become one loop, and each part of a
// kernel runs a range of it. An iteration is compiled once, for any range that
// it is in. So a contiguous loop, which is vectorized, is first cut into blocks
// of constant size; a range never cuts it.
//
//===----------------------------------------------------------------------===//

#include "CodeGen/Loops/Buffers.h"
#include "CodeGen/Loops/Loops.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {
#define GEN_PASS_DEF_MULTITHREADKERNELS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// Roughly what a core does in a nanosecond in loops that aren't GEMMs.
constexpr int64_t kBytesPerNanosecond = 16;
constexpr int64_t kFlopsPerNanosecond = 8;

/// Enough iterations for many cores to have about equal parts.
constexpr int64_t kManyIterations = 64;

/// The sizes of blocks of a contiguous loop, in elements. Blocks are whole
/// cache lines, so no two parts write to the same line; the upper bound keeps a
/// column of blocks from being slow.
constexpr int64_t kMinBlock = 64;
constexpr int64_t kMaxBlock = 4096;

class MultithreadKernels
    : public tp::impl::MultithreadKernelsBase<MultithreadKernels> {
public:
  using MultithreadKernelsBase::MultithreadKernelsBase;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::MapVector<SymbolRefAttr, SmallVector<Call>> calls = collect(module);
    // None if an unregistered op may have symbol uses.
    auto uses = SymbolTable::getSymbolUses(&module.getBodyRegion());
    if (calls.empty() || !uses)
      return;
    DenseMap<SymbolRefAttr, size_t> numUses;
    for (SymbolTable::SymbolUse use : *uses)
      ++numUses[use.getSymbolRef()];
    SymbolTable symbols(module);
    IRRewriter rewriter(&getContext());
    for (auto &[callee, all] : calls) {
      if (all.front().nanoseconds < minNanoseconds ||
          all.size() != numUses.lookup(callee))
        continue;
      int64_t count = share(
          rewriter, symbols.lookup<func::FuncOp>(callee.getLeafReference()));
      if (count == 0)
        continue;
      for (auto [call, nanoseconds] : all) {
        rewriter.setInsertionPoint(call);
        rewriter.replaceOpWithNewOp<tprt::ParallelOp>(
            call, TypeRange(), call.getCallee(), call.getOperands(), count,
            nanoseconds);
      }
    }
  }

  /// A call that can be replaced, and its estimated time.
  struct Call {
    func::CallOp op;
    int64_t nanoseconds;
  };

  /// The calls behind marks in the programs, by kernel.
  static llvm::MapVector<SymbolRefAttr, SmallVector<Call>>
  collect(ModuleOp module) {
    llvm::MapVector<SymbolRefAttr, SmallVector<Call>> calls;
    auto entries = getManifest(module).getAs<ArrayAttr>("ops");
    if (!entries)
      return calls;
    // The entries of the marks in a repeated function differ only in FQNs.
    DenseMap<Attribute, ArrayRef<int64_t>> marks;
    for (func::FuncOp program : getEntryPrograms(module))
      for (auto call : program.getOps<tprt::CallOp>())
        marks.try_emplace(call.getCalleeAttr(),
                          call.getMarks().value_or(ArrayRef<int64_t>()));
    for (func::FuncOp function : getProgramFunctions(module))
      for (auto call : function.getOps<func::CallOp>()) {
        auto mark = dyn_cast_or_null<tprt::MarkOp>(call->getPrevNode());
        if (!mark)
          continue;
        uint64_t index = mark.getIndex();
        if (function->hasAttr(tprt::kRepeatedAttr)) {
          ArrayRef<int64_t> list =
              marks.lookup(FlatSymbolRefAttr::get(function));
          if (index >= list.size())
            continue;
          index = list[index];
        }
        if (std::optional<int64_t> nanoseconds = estimate(entries, index))
          calls[call.getCalleeAttr()].push_back({call, *nanoseconds});
      }
    return calls;
  }

  /// The time of the op of an entry; none if the manifest doesn't say what the
  /// op does.
  static std::optional<int64_t> estimate(ArrayAttr entries, uint64_t index) {
    auto entry = index < entries.size()
                     ? dyn_cast<DictionaryAttr>(entries[index])
                     : DictionaryAttr();
    if (!entry)
      return std::nullopt;
    auto bytes = entry.getAs<IntegerAttr>("bytes"),
         flops = entry.getAs<IntegerAttr>("flops");
    if (!bytes || !flops)
      return std::nullopt;
    return bytes.getInt() / kBytesPerNanosecond +
           flops.getInt() / kFlopsPerNanosecond;
  }

  /// Makes `kernel` a function of a range and returns the number of iterations;
  /// 0 if it stays unchanged.
  int64_t share(IRRewriter &rewriter, func::FuncOp kernel) {
    if (!kernel.isPrivate() || kernel.isExternal() ||
        kernel.getNumResults() != 0)
      return 0;
    SmallVector<Operation *> loops; // ops that aren't repeated in each part
    for (Operation &op : kernel.getBody().front().without_terminator())
      if (!isMemoryEffectFree(&op) && !isa<memref::AllocaOp>(op))
        loops.push_back(&op);
    if (loops.size() != 1)
      return 0;
    SmallVector<scf::ForOp> nest;
    if (auto loop = dyn_cast<scf::ForOp>(loops.front())) {
      nest = getNest(loop);
      if (!hasIndependentIterations(nest))
        return 0;
    } else if (auto generic = dyn_cast<linalg::GenericOp>(loops.front())) {
      nest = tile(rewriter, generic);
    }
    if (nest.empty())
      return 0;
    ++numShared;
    return joinLoops(rewriter, kernel, nest);
  }

  /// Whether iterations of the parallel loop `d` write different elements, and
  /// read none that others write.
  static bool isIndependent(linalg::GenericOp op, unsigned d) {
    for (OpOperand &init : op.getDpsInitsMutable()) {
      AffineMap map = op.getMatchingIndexingMap(&init);
      if (!map.isProjectedPermutation() || !map.isFunctionOfDim(d))
        return false;
      for (OpOperand &other : op->getOpOperands())
        if (isa<MemRefType>(other.get().getType()) &&
            getRootBuffer(other.get()) == getRootBuffer(init.get()) &&
            (other.get() != init.get() ||
             op.getMatchingIndexingMap(&other) != map))
          return false;
    }
    bool isPlain = true; // no other use of what is written
    op.getRegion().walk([&](Operation *inner) {
      isPlain &= isMemoryEffectFree(inner) || isa<memref::LoadOp>(inner);
      if (auto load = dyn_cast<memref::LoadOp>(inner))
        isPlain &= llvm::none_of(op.getDpsInits(), [&](Value init) {
          return getRootBuffer(init) == getRootBuffer(load.getMemRef());
        });
    });
    return isPlain;
  }

  /// Moves loops of `op` out of it, except its contiguous loop or a block of
  /// that; returns these loops, outermost first. Empty if nothing can be
  /// shared.
  static SmallVector<scf::ForOp> tile(IRRewriter &rewriter,
                                      linalg::GenericOp op) {
    SmallVector<int64_t> sizes = op.getStaticLoopRanges();
    SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
    SmallVector<unsigned> order = getLoopOrder(op);
    if (order.empty() || llvm::any_of(sizes, ShapedType::isDynamic))
      return {};
    SmallVector<int64_t> tiles(sizes.size(), 0);
    SmallVector<unsigned> interchange;
    int64_t count = 1;
    for (unsigned d : order) {
      bool isParallel = kinds[d] == utils::IteratorType::parallel;
      if (!isParallel || sizes[d] == 1 || count >= kManyIterations)
        continue;
      if (!isIndependent(op, d))
        return {};
      bool isContiguous = d == order.back();
      int64_t block = 1;
      if (isContiguous)
        block = std::clamp<int64_t>(
            llvm::alignTo(sizes[d] * count / kManyIterations, kMinBlock),
            kMinBlock, kMaxBlock);
      if (block >= sizes[d])
        continue;
      tiles[d] = block;
      count *= llvm::divideCeil(sizes[d], block);
    }
    if (count == 1)
      return {};
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::TiledLinalgOp> tiled = linalg::tileLinalgOp(
        rewriter, op, linalg::LinalgTilingOptions().setTileSizes(tiles));
    if (failed(tiled))
      return {};
    rewriter.eraseOp(op);
    SmallVector<scf::ForOp> nest;
    for (Operation *loop : tiled->loops)
      nest.push_back(cast<scf::ForOp>(loop));
    return nest;
  }

  /// Replaces `nest`, loops from 0 to constants, by one loop over all its
  /// iterations and returns their number. The kernel takes the begin and end of
  /// its range.
  static int64_t joinLoops(IRRewriter &rewriter, func::FuncOp kernel,
                           ArrayRef<scf::ForOp> nest) {
    Location loc = kernel.getLoc();
    Block &body = kernel.getBody().front();
    SmallVector<Value> range;
    for (int i = 0; i < 2; ++i) {
      (void)kernel.insertArgument(kernel.getNumArguments(),
                                  rewriter.getIndexType(), {}, loc);
      range.push_back(body.getArguments().back());
    }
    scf::ForOp outermost = nest.front(), innermost = nest.back();
    rewriter.setInsertionPoint(outermost);
    auto constant = [&](int64_t value) {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    Value one = constant(1);
    auto joined = scf::ForOp::create(rewriter, loc, range[0], range[1], one);
    rewriter.setInsertionPointToStart(joined.getBody());
    // The innermost one runs fastest.
    SmallVector<Value> indices;
    Value rest = joined.getInductionVar();
    int64_t total = 1;
    for (auto [i, each] : llvm::enumerate(llvm::reverse(nest))) {
      scf::ForOp loop = each;
      int64_t step = *getConstantIntValue(loop.getStep());
      int64_t count =
          llvm::divideCeil(*getConstantIntValue(loop.getUpperBound()), step);
      total *= count;
      Value index = rest;
      if (i + 1 < nest.size()) {
        index = arith::RemUIOp::create(rewriter, loc, rest, constant(count));
        rest = arith::DivUIOp::create(rewriter, loc, rest, constant(count));
      }
      if (step != 1)
        index = arith::MulIOp::create(rewriter, loc, index, constant(step));
      indices.push_back(index);
    }
    for (auto [loop, index] : llvm::zip_equal(llvm::reverse(nest), indices))
      rewriter.replaceAllUsesWith(scf::ForOp(loop).getInductionVar(), index);
    rewriter.eraseOp(innermost.getBody()->getTerminator());
    rewriter.inlineBlockBefore(innermost.getBody(),
                               joined.getBody()->getTerminator(),
                               indices.front());
    rewriter.eraseOp(outermost);
    return total;
  }
};

} // namespace
