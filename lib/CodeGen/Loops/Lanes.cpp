//===- Lanes.cpp - Order of reductions ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sum along memory consists of kNumLanes partial sums. Lane l adds the
// elements l, l + kNumLanes, …, in this order; at the end the lanes are added
// in pairs. So LLVM may vectorize the lanes, but can't choose an order that
// depends on what else the loop computes. An op has the same bits whatever it
// is fused with.
//
//===----------------------------------------------------------------------===//

#include "Loops.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::tp;

/// Two vectors of AVX2, one of AVX-512.
static constexpr int64_t kNumLanes = 16;

namespace {

/// One result of a reduction.
struct Sum {
  memref::LoadOp load;
  memref::StoreOp store;
  Operation *combiner;
  TypedAttr neutral;
  Value lanes;
};

/// Rewrites one loop.
class LaneSplitter {
public:
  LaneSplitter(RewriterBase &rewriter, scf::ForOp loop)
      : rewriter(rewriter), loop(loop), loc(loop.getLoc()) {}

  /// Finds the op that reduces each of the buffers `results`; false unless
  /// there is exactly one for each.
  bool match(ValueRange results) {
    Block *body = loop.getBody();
    foldIndices();
    for (Value result : results) {
      Sum sum{};
      for (Operation *user : result.getUsers()) {
        if (user->getBlock() != body)
          continue;
        if (auto load = dyn_cast<memref::LoadOp>(user); load && !sum.load)
          sum.load = load;
        else if (auto store = dyn_cast<memref::StoreOp>(user);
                 store && !sum.store && store.getMemRef() == result)
          sum.store = store;
        else
          return false;
      }
      if (!sum.load || !sum.store ||
          !llvm::equal(sum.load.getIndices(), sum.store.getIndices()) ||
          !sum.load.getResult().hasOneUse() ||
          !llvm::all_of(sum.load.getIndices(), [&](Value index) {
            return loop.isDefinedOutsideOfLoop(index);
          }))
        return false;
      sum.combiner = sum.store.getValueToStore().getDefiningOp();
      if (!sum.combiner || sum.combiner->getNumOperands() != 2 ||
          *sum.load.getResult().user_begin() != sum.combiner ||
          !sum.combiner->getResult(0).hasOneUse())
        return false;
      std::optional<TypedAttr> neutral = arith::getNeutralElement(sum.combiner);
      if (!neutral)
        return false;
      sum.neutral = *neutral;
      sums.push_back(sum);
    }
    return !sums.empty();
  }

  void split() {
    int64_t size = *getConstantIntValue(loop.getUpperBound());
    int64_t whole = size - size % kNumLanes;
    makeLanes();
    rewriter.setInsertionPoint(loop);
    Value zero = constant(0), lanes = constant(kNumLanes);
    auto blocks =
        scf::ForOp::create(rewriter, loc, zero, constant(whole), lanes);
    rewriter.setInsertionPointToStart(blocks.getBody());
    addToLanes(blocks.getInductionVar(), kNumLanes);
    rewriter.setInsertionPoint(loop);
    if (whole < size)
      addToLanes(constant(whole), size - whole);
    for (Sum &sum : sums)
      addUp(sum);
    rewriter.eraseOp(loop);
  }

private:
  /// Folds the affine.apply that the loop of a linalg op has for each index.
  void foldIndices() {
    for (auto apply : llvm::make_early_inc_range(
             loop.getBody()->getOps<affine::AffineApplyOp>())) {
      SmallVector<OpFoldResult> folded;
      if (failed(apply->fold(folded)) || folded.empty())
        continue;
      rewriter.setInsertionPoint(loop);
      rewriter.replaceOp(apply, getValueOrCreateConstantIndexOp(
                                    rewriter, loc, folded.front()));
    }
  }

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  }

  void makeLanes() {
    auto function = loop->getParentOfType<FunctionOpInterface>();
    for (Sum &sum : sums) {
      Type element = sum.neutral.getType();
      rewriter.setInsertionPointToStart(&function.getFunctionBody().front());
      sum.lanes = memref::AllocaOp::create(
          rewriter, loc, MemRefType::get({kNumLanes}, element),
          rewriter.getI64IntegerAttr(64));
      rewriter.setInsertionPoint(loop);
      Value neutral = arith::ConstantOp::create(rewriter, loc, sum.neutral);
      for (int64_t lane = 0; lane < kNumLanes; ++lane)
        memref::StoreOp::create(rewriter, loc, neutral, sum.lanes,
                                constant(lane));
    }
  }

  /// Adds the `count` elements from `begin` on to the first lanes, one to each.
  void addToLanes(Value begin, int64_t count) {
    OpBuilder::InsertionGuard guard(rewriter);
    auto each = scf::ForOp::create(rewriter, loc, constant(0), constant(count),
                                   constant(1));
    rewriter.setInsertionPointToStart(each.getBody());
    Value lane = each.getInductionVar();
    IRMapping mapping;
    mapping.map(loop.getInductionVar(),
                arith::AddIOp::create(rewriter, loc, begin, lane).getResult());
    for (Operation &op : loop.getBody()->without_terminator()) {
      auto isLoad = [&](const Sum &sum) { return sum.load == &op; };
      auto isStore = [&](const Sum &sum) { return sum.store == &op; };
      if (auto *sum = llvm::find_if(sums, isLoad); sum != sums.end())
        mapping.map(sum->load.getResult(),
                    memref::LoadOp::create(rewriter, loc, sum->lanes, lane)
                        .getResult());
      else if (auto *sum = llvm::find_if(sums, isStore); sum != sums.end())
        memref::StoreOp::create(rewriter, loc,
                                mapping.lookup(sum->store.getValueToStore()),
                                sum->lanes, lane);
      else
        rewriter.clone(op, mapping);
    }
  }

  Value combine(Sum &sum, Value lhs, Value rhs) {
    Operation *made = rewriter.clone(*sum.combiner);
    made->setOperands({lhs, rhs});
    return made->getResult(0);
  }

  void addUp(Sum &sum) {
    SmallVector<Value> values;
    for (int64_t lane = 0; lane < kNumLanes; ++lane)
      values.push_back(
          memref::LoadOp::create(rewriter, loc, sum.lanes, constant(lane)));
    for (int64_t half = kNumLanes / 2; half > 0; half /= 2)
      for (int64_t lane = 0; lane < half; ++lane)
        values[lane] = combine(sum, values[lane], values[lane + half]);
    Value before = memref::LoadOp::create(rewriter, loc, sum.load.getMemRef(),
                                          sum.load.getIndices());
    memref::StoreOp::create(rewriter, loc, combine(sum, before, values[0]),
                            sum.store.getMemRef(), sum.store.getIndices());
  }

  RewriterBase &rewriter;
  scf::ForOp loop;
  Location loc;
  SmallVector<Sum> sums;
};

} // namespace

void tp::splitIntoLanes(RewriterBase &rewriter, scf::ForOp loop,
                        ValueRange results) {
  std::optional<int64_t> size = getConstantIntValue(loop.getUpperBound());
  if (!size || *size < 2 * kNumLanes)
    return;
  LaneSplitter splitter(rewriter, loop);
  if (splitter.match(results))
    splitter.split();
}
