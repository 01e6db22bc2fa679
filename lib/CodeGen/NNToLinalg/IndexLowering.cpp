//===- IndexLowering.cpp - nn.sort, nn.cumsum, nn.scatter -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On the host, sums and scatters are loops that update the result in place, in
// the order of the elements. On devices, each element of the result gathers
// what belongs to it, so many threads need no order between them. A sort
// counts, for each element, how many come before it; on the host, a call of the
// runtime replaces it (RoutingToTPRT.cpp).
//
//===----------------------------------------------------------------------===//

#include "LinalgBuilders.h"
#include "LookupLowering.h"
#include "LoweringPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

using nn::ScatterKind;
using utils::IteratorType;

/// Reads a tensor of `rank` dimensions in loops over `numLoops`, loop
/// `along` instead of loop `dim`.
static AffineMap readAlong(ImplicitLocOpBuilder &b, int64_t rank,
                           unsigned numLoops, int64_t dim, unsigned along) {
  SmallVector<AffineExpr> exprs;
  for (int64_t d = 0; d < rank; ++d)
    exprs.push_back(b.getAffineDimExpr(d == dim ? along : d));
  return AffineMap::get(numLoops, 0, exprs, b.getContext());
}

static SmallVector<int64_t> append(ArrayRef<int64_t> shape, int64_t size) {
  SmallVector<int64_t> loops(shape);
  loops.push_back(size);
  return loops;
}

/// The number of loop `loop` as `type`.
static Value buildLoopNumber(ImplicitLocOpBuilder &b, int64_t loop, Type type) {
  return arith::IndexCastOp::create(b, type, linalg::IndexOp::create(b, loop));
}

/// Loops over `shape` that update `init`. `body` gets and returns it.
static Value buildLoops(
    ImplicitLocOpBuilder &b, ArrayRef<int64_t> shape, Value init,
    function_ref<Value(ImplicitLocOpBuilder &, ValueRange ivs, Value)> body) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  SmallVector<Value> begins(shape.size(), constant(0)),
      steps(shape.size(), constant(1)),
      ends = llvm::map_to_vector(shape, constant);
  return scf::buildLoopNest(b, b.getLoc(), begins, ends, steps, init,
                            [&](OpBuilder &builder, Location loc,
                                ValueRange ivs,
                                ValueRange state) -> scf::ValueVector {
                              ImplicitLocOpBuilder inner(loc, builder);
                              return {body(inner, ivs, state[0])};
                            })
      .results[0];
}

//===----------------------------------------------------------------------===//
// nn.sort
//===----------------------------------------------------------------------===//

/// x < y, where NaN is larger than all else.
static Value buildLess(ImplicitLocOpBuilder &b, Value x, Value y) {
  if (!isa<FloatType>(x.getType()))
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  Value isLess = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y);
  Value isNumber = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, x, x);
  Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, y, y);
  return arith::OrIOp::create(b, isLess,
                              arith::AndIOp::create(b, isNumber, isNaN));
}

namespace {
struct SortPattern : OpRewritePattern<nn::SortOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::SortOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getValues());
    if (type.getNumElements() == 0) {
      auto fill = [&](Type element) {
        return buildFilled(b, type.getShape(), getScalar(b, element, 0));
      };
      rewriter.replaceOp(op,
                         {fill(type.getElementType()), fill(b.getI64Type())});
      return success();
    }
    int64_t dim = op.getDim(), rank = type.getRank();
    Value indices = buildIndices(b, op, buildPlaces(b, op));
    Value values =
        buildLookup(b, type, op.getInput(), dim, asRows(indices, rank, {}),
                    llvm::to_vector(llvm::seq<int64_t>(rank)));
    rewriter.replaceOp(op, {values, indices});
    return success();
  }

private:
  /// For each element, how many come before it.
  static Value buildPlaces(ImplicitLocOpBuilder &b, nn::SortOp op) {
    RankedTensorType type = getTensorType(op.getInput());
    int64_t dim = op.getDim(), rank = type.getRank();
    Operand own{op.getInput(), readAlong(b, rank, rank + 1, dim, dim)},
        other{op.getInput(), readAlong(b, rank, rank + 1, dim, rank)};
    return buildReduction(
        b, {own, other}, append(type.getShape(), type.getDimSize(dim)), rank,
        getScalar(b, b.getI64Type(), 0),
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value sum) -> Value {
          Value low = args[0], high = args[1];
          if (!op.getDescending())
            std::swap(low, high);
          // Now the other element comes first if low < high.
          Value isEarlier = arith::CmpIOp::create(
              b, arith::CmpIPredicate::ult, linalg::IndexOp::create(b, rank),
              linalg::IndexOp::create(b, dim));
          Value isAfter = buildLess(b, high, low);
          Value isEqualOrBefore = arith::SelectOp::create(
              b, isAfter, getScalar(b, b.getI1Type(), 0), isEarlier);
          Value isBefore =
              arith::OrIOp::create(b, buildLess(b, low, high), isEqualOrBefore);
          return addToSum(b, sum,
                          arith::ExtUIOp::create(b, sum.getType(), isBefore));
        });
  }

  /// The element at each place of the result.
  static Value buildIndices(ImplicitLocOpBuilder &b, nn::SortOp op,
                            Value places) {
    RankedTensorType type = getTensorType(op.getIndices());
    int64_t dim = op.getDim(), rank = type.getRank();
    Operand read{places, readAlong(b, rank, rank + 1, dim, rank)};
    int64_t size = getTensorType(places).getDimSize(dim);
    Value zero = getScalar(b, b.getI64Type(), 0);
    return buildReduction(
        b, read, append(type.getShape(), size), rank, zero,
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value sum) -> Value {
          Value isHere =
              arith::CmpIOp::create(b, arith::CmpIPredicate::eq, args[0],
                                    buildLoopNumber(b, dim, b.getI64Type()));
          Value number = buildLoopNumber(b, rank, b.getI64Type());
          return addToSum(
              b, sum,
              arith::SelectOp::create(b, isHere, number,
                                      getScalar(b, b.getI64Type(), 0)));
        });
  }
};

//===----------------------------------------------------------------------===//
// nn.cumsum
//===----------------------------------------------------------------------===//

struct CumSumPattern : OpRewritePattern<nn::CumSumOp> {
  CumSumPattern(MLIRContext *context, bool onDevice)
      : OpRewritePattern(context), onDevice(onDevice) {}

  LogicalResult matchAndRewrite(nn::CumSumOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type element = getTensorType(op.getResult()).getElementType();
    Value sums = onDevice ? buildSums(b, op) : buildRunningSums(b, op);
    rewriter.replaceOp(op, buildCast(b, sums, element));
    return success();
  }

private:
  /// Each sum by itself.
  static Value buildSums(ImplicitLocOpBuilder &b, nn::CumSumOp op) {
    RankedTensorType type = getTensorType(op.getInput());
    int64_t dim = op.getDim(), rank = type.getRank();
    auto isAdded =
        op.getReverse() ? arith::CmpIPredicate::uge : arith::CmpIPredicate::ule;
    Type element = getComputeType(type.getElementType());
    return buildReduction(
        b, Operand{op.getInput(), readAlong(b, rank, rank + 1, dim, rank)},
        append(type.getShape(), type.getDimSize(dim)), rank,
        getScalar(b, element, 0),
        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args, Value sum) -> Value {
          Value isTerm = arith::CmpIOp::create(b, isAdded,
                                               linalg::IndexOp::create(b, rank),
                                               linalg::IndexOp::create(b, dim));
          return addToSum(b, sum,
                          arith::SelectOp::create(b, isTerm, args[0],
                                                  getScalar(b, element, 0)));
        });
  }

  /// One sum, which is stored at each element.
  static Value buildRunningSums(ImplicitLocOpBuilder &b, nn::CumSumOp op) {
    RankedTensorType type = getTensorType(op.getInput());
    int64_t dim = op.getDim(), size = type.getDimSize(dim);
    Type element = getComputeType(type.getElementType());
    SmallVector<int64_t> others(type.getShape());
    others.erase(others.begin() + dim);
    Value init = buildEmpty(b, type.clone(element));
    return buildLoops(
        b, others, init,
        [&](ImplicitLocOpBuilder &b, ValueRange ivs, Value sums) -> Value {
          auto constant = [&](int64_t value) -> Value {
            return arith::ConstantIndexOp::create(b, value);
          };
          auto loop = scf::ForOp::create(
              b, constant(0), constant(size), constant(1),
              ValueRange{sums, getScalar(b, element, 0)},
              [&](OpBuilder &builder, Location loc, Value step,
                  ValueRange state) {
                ImplicitLocOpBuilder b(loc, builder);
                Value place = step;
                if (op.getReverse())
                  place = arith::SubIOp::create(
                      b, arith::ConstantIndexOp::create(b, size - 1), step);
                SmallVector<Value> at(ivs);
                at.insert(at.begin() + dim, place);
                Value term = convertScalar(
                    b, tensor::ExtractOp::create(b, op.getInput(), at),
                    element);
                Value sum =
                    isa<FloatType>(element)
                        ? arith::AddFOp::create(b, state[1], term).getResult()
                        : arith::AddIOp::create(b, state[1], term);
                Value stored = tensor::InsertOp::create(b, sum, state[0], at);
                scf::YieldOp::create(b, ValueRange{stored, sum});
              });
          return loop.getResult(0);
        });
  }

  bool onDevice;
};

//===----------------------------------------------------------------------===//
// nn.scatter
//===----------------------------------------------------------------------===//

struct ScatterPattern : OpRewritePattern<nn::ScatterOp> {
  ScatterPattern(MLIRContext *context, bool onDevice)
      : OpRewritePattern(context), onDevice(onDevice) {}

  LogicalResult matchAndRewrite(nn::ScatterOp op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    RankedTensorType type = getTensorType(op.getResult());
    buildIndexCheck(b, op, op.getIndex(), type.getDimSize(op.getDim()));
    if (type.getNumElements() == 0 ||
        getTensorType(op.getSource()).getNumElements() == 0) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    Value input = op.getInput();
    if (op.getKind() == ScatterKind::Add)
      input = buildCast(b, input, getComputeType(type.getElementType()));
    Value result = onDevice ? gather(b, op, input) : update(b, op, input);
    rewriter.replaceOp(op, buildCast(b, result, type.getElementType()));
    return success();
  }

private:
  static Value combine(ImplicitLocOpBuilder &b, ScatterKind kind, Value old,
                       Value value) {
    bool isFloat = isa<FloatType>(old.getType());
    switch (kind) {
    case ScatterKind::Copy:
      return value;
    case ScatterKind::Add:
      if (isFloat)
        return arith::AddFOp::create(b, old, value);
      return arith::AddIOp::create(b, old, value);
    case ScatterKind::Max:
      if (isFloat)
        return arith::MaximumFOp::create(b, old, value);
      return arith::MaxSIOp::create(b, old, value);
    case ScatterKind::Min:
      if (isFloat)
        return arith::MinimumFOp::create(b, old, value);
      return arith::MinSIOp::create(b, old, value);
    }
    llvm_unreachable("all kinds are handled");
  }

  /// Writes each element of the source, in their order.
  static Value update(ImplicitLocOpBuilder &b, nn::ScatterOp op, Value input) {
    int64_t dim = op.getDim();
    int64_t bound = getTensorType(input).getDimSize(dim);
    return buildLoops(
        b, getTensorType(op.getSource()).getShape(), input,
        [&](ImplicitLocOpBuilder &b, ValueRange ivs, Value state) -> Value {
          SmallVector<Value> at(ivs);
          Value index = tensor::ExtractOp::create(
              b, op.getIndex(), op.namesSlices() ? ValueRange(ivs[dim]) : ivs);
          at[dim] = buildSafeIndex(b, index, bound);
          Value value = tensor::ExtractOp::create(b, op.getSource(), ivs);
          if (op.getKind() != ScatterKind::Copy) {
            Type element = getComputeType(value.getType());
            Value old = convertScalar(
                b, tensor::ExtractOp::create(b, state, at), element);
            value =
                combine(b, op.getKind(), old, convertScalar(b, value, element));
            value =
                convertScalar(b, value, getTensorType(state).getElementType());
          }
          return tensor::InsertOp::create(b, value, state, at);
        });
  }

  /// Collects, for each element of the input, what goes there. If the source is
  /// smaller than the input in another dimension, only a part of the input
  /// changes.
  static Value gather(ImplicitLocOpBuilder &b, nn::ScatterOp op, Value input) {
    RankedTensorType type = getTensorType(input);
    SmallVector<int64_t> shape(getTensorType(op.getSource()).getShape());
    shape[op.getDim()] = type.getDimSize(op.getDim());
    if (type.getShape() == ArrayRef(shape))
      return gatherAll(b, op, input);
    SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)),
        strides(type.getRank(), b.getIndexAttr(1)),
        sizes = llvm::map_to_vector(shape, [&](int64_t size) -> OpFoldResult {
          return b.getIndexAttr(size);
        });
    Value part = tensor::ExtractSliceOp::create(b, type.clone(shape), input,
                                                offsets, sizes, strides);
    return tensor::InsertSliceOp::create(b, gatherAll(b, op, part), input,
                                         offsets, sizes, strides);
  }

  static Value gatherAll(ImplicitLocOpBuilder &b, nn::ScatterOp op,
                         Value input) {
    RankedTensorType type = getTensorType(input);
    int64_t dim = op.getDim(), rank = type.getRank();
    int64_t count = getTensorType(op.getSource()).getDimSize(dim);
    AffineMap along = readAlong(b, rank, rank + 1, dim, rank);
    Operand index{op.getIndex(), along}, source{op.getSource(), along};
    if (op.namesSlices())
      index.map = AffineMap::get(rank + 1, 0, b.getAffineDimExpr(rank));
    auto isHere = [&](ImplicitLocOpBuilder &b, Value index) -> Value {
      return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, index,
                                   buildLoopNumber(b, dim, index.getType()));
    };
    if (op.getKind() == ScatterKind::Copy) {
      // The last element of the source that goes here, or -1.
      Value last = buildReduction(
          b, index, append(type.getShape(), count), rank,
          getScalar(b, b.getI64Type(), -1),
          [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args,
              Value acc) -> Value {
            Value number = arith::SelectOp::create(
                b, isHere(b, args[0]), buildLoopNumber(b, rank, acc.getType()),
                getScalar(b, acc.getType(), -1));
            return arith::MaxSIOp::create(b, acc, number);
          });
      Value found =
          buildLookup(b, type, op.getSource(), dim, asRows(last, rank, {}),
                      llvm::to_vector(llvm::seq<int64_t>(rank)));
      return buildElementwise(
          b, type, ValueRange{last, found, input},
          [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args) -> Value {
            Value isWritten =
                arith::CmpIOp::create(b, arith::CmpIPredicate::sge, args[0],
                                      getScalar(b, b.getI64Type(), 0));
            return arith::SelectOp::create(b, isWritten, args[1], args[2]);
          });
    }
    SmallVector<IteratorType> iterators(rank + 1, IteratorType::parallel);
    iterators.back() = IteratorType::reduction;
    return buildGeneric(b, {source, index},
                        Operand{input, readAlong(b, rank, rank + 1, dim, dim)},
                        iterators,
                        [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args,
                            ArrayRef<Value> accs) -> SmallVector<Value> {
                          Value acc =
                              convertScalar(b, accs[0], args[0].getType());
                          Value next = combine(b, op.getKind(), acc, args[0]);
                          return {arith::SelectOp::create(b, isHere(b, args[1]),
                                                          next, acc)};
                        })
        .front();
  }

  bool onDevice;
};
} // namespace

void mlir::tp::nnlinalg::populateIndexPatterns(RewritePatternSet &patterns,
                                               bool onDevice) {
  patterns.add<SortPattern>(patterns.getContext());
  patterns.add<CumSumPattern, ScatterPattern>(patterns.getContext(), onDevice);
}
