//===- LinalgBuilders.cpp - linalg ops from scalar bodies -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LinalgBuilders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "tp/Interfaces/TensorBuilder.h"

using namespace mlir;
using namespace mlir::tp::nnlinalg;

using utils::IteratorType;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Type mlir::tp::nnlinalg::getComputeType(Type elementType) {
  if (elementType.isF16() || elementType.isBF16())
    return Float32Type::get(elementType.getContext());
  return elementType;
}

static Type getSignless(Type type) {
  return IntegerType::get(type.getContext(), type.getIntOrFloatBitWidth());
}

/// `--make-integers-signless` drops the cast.
static Value castSignedness(ImplicitLocOpBuilder &b, Value value, Type type) {
  return UnrealizedConversionCastOp::create(b, type, value).getResult(0);
}

Value mlir::tp::nnlinalg::buildConstant(ImplicitLocOpBuilder &b,
                                        TypedAttr value) {
  Type type = value.getType(), element = getElementTypeOrSelf(type);
  if (!element.isUnsignedInteger())
    return arith::ConstantOp::create(b, value);
  Type signless = getSignless(element);
  if (auto elements = dyn_cast<DenseElementsAttr>(value))
    value = elements.bitcast(signless);
  else
    value = b.getIntegerAttr(signless, cast<IntegerAttr>(value).getValue());
  return castSignedness(b, arith::ConstantOp::create(b, value), type);
}

Value mlir::tp::nnlinalg::getScalar(ImplicitLocOpBuilder &b, Type type,
                                    double value) {
  TypedAttr attr;
  if (isa<FloatType>(type))
    attr = b.getFloatAttr(type, value);
  else
    attr = b.getIntegerAttr(type, static_cast<int64_t>(value));
  return buildConstant(b, attr);
}

Value mlir::tp::nnlinalg::getLowest(ImplicitLocOpBuilder &b, Type type) {
  if (isa<FloatType>(type))
    return getScalar(b, type, -std::numeric_limits<double>::infinity());
  auto lowest = APInt::getSignedMinValue(type.getIntOrFloatBitWidth());
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, lowest));
}

/// Converts between float types, but never from f64 to a 16-bit type directly,
/// because no machine has that conversion.
static Value convertFloat(ImplicitLocOpBuilder &b, Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (value.getType() == type)
    return value;
  if (from != 32 && to != 32)
    return convertFloat(b, convertFloat(b, value, b.getF32Type()), type);
  if (from < to)
    return b.createOrFold<arith::ExtFOp>(type, value);
  return b.createOrFold<arith::TruncFOp>(type, value);
}

Value mlir::tp::nnlinalg::convertScalar(ImplicitLocOpBuilder &b, Value value,
                                        Type type) {
  Type from = value.getType();
  if (from == type)
    return value;
  if (from.isUnsignedInteger()) {
    // Wide enough to be signed as well.
    value = castSignedness(b, value, getSignless(from));
    if (type.getIntOrFloatBitWidth() == from.getIntOrFloatBitWidth())
      return value;
    return convertScalar(b, arith::ExtUIOp::create(b, b.getI32Type(), value),
                         type);
  }
  if (type.isUnsignedInteger())
    return castSignedness(b, convertScalar(b, value, getSignless(type)), type);
  if (type.isInteger(1)) {
    Value zero = getScalar(b, from, 0);
    if (isa<FloatType>(from))
      return arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, value, zero);
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
  }
  if (isa<FloatType>(from)) {
    if (isa<FloatType>(type))
      return convertFloat(b, value, type);
    value = convertFloat(b, value, getComputeType(from));
    if (type.getIntOrFloatBitWidth() >= 32)
      return arith::FPToSIOp::create(b, type, value);
    // As machines do: a value that doesn't fit loses its upper bits.
    value = arith::FPToSIOp::create(b, b.getI32Type(), value);
    return arith::TruncIOp::create(b, type, value);
  }
  if (isa<FloatType>(type)) {
    Type compute = getComputeType(type);
    if (from.isInteger(1))
      value = arith::UIToFPOp::create(b, compute, value);
    else
      value = arith::SIToFPOp::create(b, compute, value);
    return convertFloat(b, value, type);
  }
  if (from.isInteger(1))
    return arith::ExtUIOp::create(b, type, value);
  if (from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(b, type, value);
  return arith::TruncIOp::create(b, type, value);
}

TypedAttr mlir::tp::nnlinalg::getSplat(Value tensor) {
  DenseElementsAttr attr;
  if (!matchPattern(tensor, m_Constant(&attr)) || !attr.isSplat())
    return {};
  return cast<TypedAttr>(attr.getSplatValue<Attribute>());
}

/// The splat as a constant of the type in which bodies compute.
static Value buildSplatScalar(ImplicitLocOpBuilder &b, TypedAttr splat) {
  auto value = dyn_cast<FloatAttr>(splat);
  if (!value || value.getType() == getComputeType(value.getType()))
    return buildConstant(b, splat);
  return getScalar(b, b.getF32Type(), value.getValueAsDouble());
}

Value mlir::tp::nnlinalg::addToSum(ImplicitLocOpBuilder &b, Value acc,
                                   Value value) {
  if (!isa<FloatType>(acc.getType()))
    return arith::AddIOp::create(b, acc, value);
  return arith::AddFOp::create(b, acc, value,
                               arith::FastMathFlags::reassoc |
                                   arith::FastMathFlags::contract);
}

//===----------------------------------------------------------------------===//
// Generic ops
//===----------------------------------------------------------------------===//

Value mlir::tp::nnlinalg::buildEmpty(ImplicitLocOpBuilder &b,
                                     RankedTensorType type) {
  return tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
}

Value mlir::tp::nnlinalg::buildFilled(ImplicitLocOpBuilder &b,
                                      ArrayRef<int64_t> shape, Value value) {
  Value empty = tensor::EmptyOp::create(b, shape, value.getType());
  return linalg::FillOp::create(b, value, empty).getResult(0);
}

Operand mlir::tp::nnlinalg::broadcastTo(Value value, ArrayRef<int64_t> shape) {
  MLIRContext *context = value.getContext();
  ArrayRef<int64_t> valueShape = getTensorType(value).getShape();
  size_t offset = shape.size() - valueShape.size();
  SmallVector<AffineExpr> exprs;
  for (auto [i, size] : llvm::enumerate(valueShape))
    exprs.push_back(size == 1 && shape[offset + i] != 1
                        ? getAffineConstantExpr(0, context)
                        : getAffineDimExpr(offset + i, context));

  // If a reshape only adds or drops unit dimensions, index its source.
  while (Operation *def = value.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(def))
      break;
    Value source = def->getOperand(0);
    auto notUnit = [](int64_t size) { return size != 1; };
    ArrayRef<int64_t> sourceShape = getTensorType(source).getShape();
    ArrayRef<int64_t> resultShape = getTensorType(value).getShape();
    if (!llvm::equal(llvm::make_filter_range(sourceShape, notUnit),
                     llvm::make_filter_range(resultShape, notUnit)))
      break;
    SmallVector<AffineExpr> kept;
    for (auto [size, expr] : llvm::zip_equal(resultShape, exprs))
      if (size != 1)
        kept.push_back(expr);
    SmallVector<AffineExpr> sourceExprs;
    auto next = kept.begin();
    for (int64_t size : sourceShape)
      sourceExprs.push_back(size == 1 ? getAffineConstantExpr(0, context)
                                      : *next++);
    exprs = std::move(sourceExprs);
    value = source;
  }
  return {value, AffineMap::get(shape.size(), 0, exprs, context)};
}

SmallVector<Value> mlir::tp::nnlinalg::buildGeneric(
    ImplicitLocOpBuilder &b, ArrayRef<Operand> ins, ArrayRef<Operand> outs,
    ArrayRef<IteratorType> iterators, GenericBody body) {
  SmallVector<Value> inputs, inits;
  SmallVector<AffineMap> maps;
  SmallVector<Type> types;
  // All loops of an elementwise op are known from its output. A reduction needs
  // its inputs for that.
  bool foldsSplats = llvm::all_of(iterators, [](IteratorType iterator) {
    return iterator == IteratorType::parallel;
  });
  auto getFoldedSplat = [&](const Operand &in) {
    return foldsSplats ? getSplat(in.value) : TypedAttr();
  };
  for (const Operand &in : ins)
    if (!getFoldedSplat(in)) {
      inputs.push_back(in.value);
      maps.push_back(in.map);
    }
  for (const Operand &out : outs) {
    inits.push_back(out.value);
    maps.push_back(out.map);
    types.push_back(out.value.getType());
  }

  auto buildBody = [&](OpBuilder &builder, Location loc, ValueRange blockArgs) {
    ImplicitLocOpBuilder b(loc, builder);
    SmallVector<Value> args;
    size_t next = 0;
    for (const Operand &in : ins) {
      if (TypedAttr splat = getFoldedSplat(in)) {
        args.push_back(buildSplatScalar(b, splat));
        continue;
      }
      Value arg = blockArgs[next++];
      args.push_back(convertScalar(b, arg, getComputeType(arg.getType())));
    }
    SmallVector<Value> results =
        body(b, args, llvm::to_vector(blockArgs.drop_front(next)));
    for (auto [result, type] : llvm::zip_equal(results, types))
      result = convertScalar(b, result,
                             cast<RankedTensorType>(type).getElementType());
    linalg::YieldOp::create(b, results);
  };
  auto op = linalg::GenericOp::create(b, types, inputs, inits, maps, iterators,
                                      buildBody);
  return llvm::to_vector_of<Value>(op.getResults());
}

Value mlir::tp::nnlinalg::buildElementwise(ImplicitLocOpBuilder &b,
                                           RankedTensorType type,
                                           ArrayRef<Operand> inputs,
                                           ElementwiseBody body) {
  Operand out = {buildEmpty(b, type), b.getMultiDimIdentityMap(type.getRank())};
  SmallVector<IteratorType> iterators(type.getRank(), IteratorType::parallel);
  return buildGeneric(b, inputs, out, iterators,
                      [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args,
                          ArrayRef<Value>) -> SmallVector<Value> {
                        return {body(b, args)};
                      })
      .front();
}

Value mlir::tp::nnlinalg::buildElementwise(ImplicitLocOpBuilder &b,
                                           RankedTensorType type,
                                           ValueRange inputs,
                                           ElementwiseBody body) {
  SmallVector<Operand> operands;
  for (Value input : inputs)
    operands.push_back(broadcastTo(input, type.getShape()));
  return buildElementwise(b, type, operands, body);
}

Operand mlir::tp::nnlinalg::asRows(Value rows, int64_t rank,
                                   ArrayRef<int64_t> dims) {
  MLIRContext *context = rows.getContext();
  SmallVector<AffineExpr> exprs;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(dims, dim))
      exprs.push_back(getAffineDimExpr(dim, context));
  return {rows, AffineMap::get(rank, 0, exprs, context)};
}

Value mlir::tp::nnlinalg::buildReduction(ImplicitLocOpBuilder &b,
                                         ArrayRef<Operand> inputs,
                                         ArrayRef<int64_t> shape,
                                         ArrayRef<int64_t> dims, Value identity,
                                         ReductionBody body) {
  SmallVector<IteratorType> iterators(shape.size(), IteratorType::parallel);
  SmallVector<int64_t> resultShape;
  for (int64_t dim : dims)
    iterators[dim] = IteratorType::reduction;
  for (auto [iterator, size] : llvm::zip_equal(iterators, shape))
    if (iterator == IteratorType::parallel)
      resultShape.push_back(size);
  Operand out =
      asRows(buildFilled(b, resultShape, identity), shape.size(), dims);
  return buildGeneric(b, inputs, out, iterators,
                      [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args,
                          ArrayRef<Value> accs) -> SmallVector<Value> {
                        return {body(b, args, accs.front())};
                      })
      .front();
}

/// Whether an element of `lhs` or `rhs` is part of more than one sum; only such
/// contractions become tprt.gemm.
static bool usesElementsTwice(Operand lhs, Operand rhs,
                              ArrayRef<int64_t> resultShape,
                              AffineMap resultMap) {
  for (auto [size, expr] :
       llvm::zip_equal(resultShape, resultMap.getResults())) {
    unsigned loop = cast<AffineDimExpr>(expr).getPosition();
    if (size != 1 &&
        (!lhs.map.isFunctionOfDim(loop) || !rhs.map.isFunctionOfDim(loop)))
      return true;
  }
  return false;
}

Value mlir::tp::nnlinalg::buildContraction(ImplicitLocOpBuilder &b, Operand lhs,
                                           Operand rhs,
                                           ArrayRef<int64_t> resultShape,
                                           AffineMap resultMap,
                                           bool isRounded) {
  SmallVector<IteratorType> iterators(resultMap.getNumDims(),
                                      IteratorType::reduction);
  for (AffineExpr expr : resultMap.getResults())
    iterators[cast<AffineDimExpr>(expr).getPosition()] = IteratorType::parallel;
  Type type = getTensorType(lhs.value).getElementType();
  auto multiply = [](ImplicitLocOpBuilder &b, Value x, Value y) -> Value {
    if (isa<FloatType>(x.getType()))
      return arith::MulFOp::create(b, x, y, arith::FastMathFlags::contract);
    return arith::MulIOp::create(b, x, y);
  };
  if (isRounded && type != getComputeType(type) &&
      getTensorType(rhs.value).getElementType() == type &&
      usesElementsTwice(lhs, rhs, resultShape, resultMap)) {
    Value zeros = buildFilled(
        b, resultShape, arith::ConstantOp::create(b, b.getFloatAttr(type, 0)));
    auto op = linalg::GenericOp::create(
        b, zeros.getType(), ValueRange{lhs.value, rhs.value}, zeros,
        ArrayRef<AffineMap>{lhs.map, rhs.map, resultMap}, iterators,
        [&](OpBuilder &builder, Location loc, ValueRange args) {
          ImplicitLocOpBuilder inner(loc, builder);
          linalg::YieldOp::create(
              inner,
              addToSum(inner, args[2], multiply(inner, args[0], args[1])));
        });
    return op.getResult(0);
  }
  Value zeros =
      buildFilled(b, resultShape, getScalar(b, getComputeType(type), 0));
  auto body = [&](ImplicitLocOpBuilder &b, ArrayRef<Value> args,
                  ArrayRef<Value> accs) -> SmallVector<Value> {
    return {addToSum(b, accs[0], multiply(b, args[0], args[1]))};
  };
  return buildGeneric(b, {lhs, rhs}, Operand{zeros, resultMap}, iterators, body)
      .front();
}

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

Value mlir::tp::nnlinalg::buildCopy(ImplicitLocOpBuilder &b,
                                    RankedTensorType type, Operand input) {
  int64_t rank = type.getRank();
  SmallVector<IteratorType> iterators(rank, IteratorType::parallel);
  auto op = linalg::GenericOp::create(
      b, TypeRange(type), ValueRange(input.value),
      ValueRange(buildEmpty(b, type)),
      ArrayRef<AffineMap>{input.map, b.getMultiDimIdentityMap(rank)}, iterators,
      [](OpBuilder &builder, Location loc, ValueRange args) {
        linalg::YieldOp::create(builder, loc, args.front());
      });
  return op.getResult(0);
}

Value mlir::tp::nnlinalg::buildReshape(ImplicitLocOpBuilder &b, Value value,
                                       ArrayRef<int64_t> shape) {
  return TensorBuilder::getUpstream().reshape(b, b.getLoc(), value, shape);
}

Value mlir::tp::nnlinalg::buildTranspose(ImplicitLocOpBuilder &b, Value value,
                                         ArrayRef<int64_t> permutation) {
  RankedTensorType type = getTensorType(value);
  SmallVector<int64_t> shape, moved;
  for (int64_t dim : permutation) {
    shape.push_back(type.getDimSize(dim));
    if (type.getDimSize(dim) != 1)
      moved.push_back(dim);
  }
  // If only dimensions of size 1 move, the data stays in place.
  if (llvm::is_sorted(moved))
    return buildReshape(b, value, shape);
  AffineMap map = inversePermutation(
      AffineMap::getPermutationMap(permutation, b.getContext()));
  return buildCopy(b, type.clone(shape), {value, map});
}

Value mlir::tp::nnlinalg::buildCast(ImplicitLocOpBuilder &b, Value value,
                                    Type elementType) {
  RankedTensorType type = getTensorType(value);
  if (type.getElementType() == elementType)
    return value;
  // The builder converts the body's result to the output's type.
  return buildElementwise(
      b, type.clone(elementType), ValueRange(value),
      [](ImplicitLocOpBuilder &, ArrayRef<Value> args) { return args[0]; });
}
