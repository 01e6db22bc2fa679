//===- JoinInsertions.cpp - Long chains of insertions ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Insertions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "tp/CodeGen/Passes.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

namespace mlir::tp {
#define GEN_PASS_DEF_JOININSERTIONS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

/// Shorter chains stay: they bufferize in place, without copies.
static constexpr size_t maxLength = 16;

/// Lets `read` read what an insertion has written, or what is before insertions
/// of other elements.
static void forward(RewriterBase &rewriter, tensor::ExtractSliceOp read) {
  if (!isPlain(read, read.getResultType(), read.getSourceType()))
    return;
  constexpr int maxSteps = 1024;
  ArrayRef<int64_t> offsets = read.getStaticOffsets(),
                    sizes = read.getStaticSizes();
  Value source = read.getSource();
  for (int step = 0; step < maxSteps; ++step) {
    auto write = source.getDefiningOp<tensor::InsertSliceOp>();
    if (!write || !isPlain(write))
      break;
    bool isInside = true, isApart = false;
    SmallVector<int64_t> inside;
    for (auto [offset, size, first, count] :
         llvm::zip_equal(offsets, sizes, write.getStaticOffsets(),
                         write.getStaticSizes())) {
      isInside &= offset >= first && offset + size <= first + count;
      isApart |= offset + size <= first || offset >= first + count;
      inside.push_back(offset - first);
    }
    if (isInside) {
      rewriter.setInsertionPoint(read);
      auto get = [&](ArrayRef<int64_t> values) {
        return getAsIndexOpFoldResult(read.getContext(), values);
      };
      rewriter.replaceOpWithNewOp<tensor::ExtractSliceOp>(
          read, read.getResultType(), write.getSource(), get(inside),
          get(sizes), get(read.getStaticStrides()));
      return;
    }
    if (!isApart)
      break;
    source = write.getDest();
  }
  if (source != read.getSource())
    rewriter.modifyOpInPlace(read,
                             [&] { read.getSourceMutable().assign(source); });
}

/// Replaces the chain of insertions that ends with `last`.
static void join(RewriterBase &rewriter, tensor::InsertSliceOp last) {
  std::optional<int64_t> dim =
      isPlain(last) ? getInsertedDim(last) : std::nullopt;
  if (!dim)
    return;
  // The insertions by their offset along `dim`.
  std::map<int64_t, tensor::InsertSliceOp> pieces;
  auto add = [&](tensor::InsertSliceOp op) {
    int64_t begin = op.getStaticOffsets()[*dim],
            end = begin + op.getStaticSizes()[*dim];
    auto next = pieces.lower_bound(begin);
    if (begin == end || (next != pieces.end() && next->first < end))
      return false;
    if (next != pieces.begin()) {
      auto [offset, before] = *std::prev(next);
      if (offset + before.getStaticSizes()[*dim] > begin)
        return false;
    }
    pieces[begin] = op;
    return true;
  };
  Value base = last.getResult();
  while (auto op = base.getDefiningOp<tensor::InsertSliceOp>()) {
    if ((op != last && !op->hasOneUse()) || !isPlain(op) ||
        getInsertedDim(op) != dim || !add(op))
      break;
    base = op.getDest();
  }
  if (pieces.size() <= maxLength)
    return;

  rewriter.setInsertionPoint(last);
  Location loc = last.getLoc();
  RankedTensorType type = last.getDestType();
  SmallVector<Value> inputs;
  int64_t end = 0;
  auto fillUpTo = [&](int64_t begin) {
    if (begin == end)
      return;
    SmallVector<int64_t> offsets(type.getRank(), 0), sizes(type.getShape()),
        strides(type.getRank(), 1);
    offsets[*dim] = end;
    sizes[*dim] = begin - end;
    auto get = [&](ArrayRef<int64_t> values) {
      return getAsIndexOpFoldResult(last.getContext(), values);
    };
    inputs.push_back(tensor::ExtractSliceOp::create(
        rewriter, loc, base, get(offsets), get(sizes), get(strides)));
  };
  for (auto [begin, op] : pieces) {
    fillUpTo(begin);
    inputs.push_back(op.getSource());
    end = begin + op.getStaticSizes()[*dim];
  }
  fillUpTo(type.getDimSize(*dim));
  Value chain = last.getDest();
  rewriter.replaceOpWithNewOp<tensor::ConcatOp>(last, type, *dim, inputs);
  while (chain != base) {
    auto op = chain.getDefiningOp<tensor::InsertSliceOp>();
    chain = op.getDest();
    rewriter.eraseOp(op);
  }
}

namespace {

class JoinInsertions : public tp::impl::JoinInsertionsBase<JoinInsertions> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<tensor::ExtractSliceOp> reads;
    getOperation().walk(
        [&](tensor::ExtractSliceOp op) { reads.push_back(op); });
    for (tensor::ExtractSliceOp read : reads)
      forward(rewriter, read);
    // A chain ends where the next op isn't an insertion into it.
    SmallVector<tensor::InsertSliceOp> ends;
    getOperation().walk([&](tensor::InsertSliceOp op) {
      bool goesOn = op->hasOneUse() && [&] {
        OpOperand &use = *op->use_begin();
        auto next = dyn_cast<tensor::InsertSliceOp>(use.getOwner());
        return next && use == next.getDestMutable();
      }();
      if (!goesOn)
        ends.push_back(op);
    });
    for (tensor::InsertSliceOp end : ends)
      join(rewriter, end);
  }
};

} // namespace
