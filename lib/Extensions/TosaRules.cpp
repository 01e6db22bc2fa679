//===- TosaRules.cpp - Sharding rules of tosa ops -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes are operands in tosa, made by `tosa.const_shape`. A rank gets its own
// shapes where they follow from the shapes of the tensors.
//
//===----------------------------------------------------------------------===//

#include "RuleBuilders.h"
#include "RuleModels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Dialect/Tosa/Utils/ConversionUtils.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/TypeUtilities.h"
#include "tp/Extensions/Extensions.h"

using namespace mlir;
using namespace mlir::tp;

static RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isFloat(Operation *op) {
  return isa<FloatType>(getElementTypeOrSelf(op->getOperand(0))) &&
         isa<FloatType>(getElementTypeOrSelf(op->getResult(0)));
}

/// The numbers of a shape; nullopt if it isn't a constant.
static std::optional<SmallVector<int64_t>> getShapeValues(Value shape) {
  SmallVector<int64_t> values;
  if (!shape.getDefiningOp() ||
      !tosa::getConstShapeValues(shape.getDefiningOp(), values))
    return std::nullopt;
  return values;
}

static Value buildShape(OpBuilder &builder, Location loc,
                        ArrayRef<int64_t> values) {
  ImplicitLocOpBuilder b(loc, builder);
  return tosa::getTosaConstShape(b, values);
}

/// One factor per dimension of the first `numTensors` operands and of the
/// results. These have the same shape except in dimensions for which `isOther`
/// holds; the other operands have no factors.
static ShardingRule getSameDimsRule(Operation *op, unsigned numTensors,
                                    function_ref<bool(int64_t)> isOther) {
  ShardingRule rule = ShardingRule::replicated(op);
  RankedTensorType type = getTensorType(op->getResult(0));
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (isOther(dim))
      continue;
    unsigned factor = rule.factors.size();
    rule.factors.push_back({type.getDimSize(dim)});
    for (unsigned i = 0; i < numTensors; ++i)
      // Size 1 is broadcast.
      if (getTensorType(op->getOperand(i)).getDimSize(dim) ==
          type.getDimSize(dim))
        rule.operands[i][dim].push_back(factor);
    for (TensorFactors &result : rule.results)
      result[dim].push_back(factor);
  }
  return rule;
}

/// The neutral element of `kind`.
static TypedAttr getNeutral(OpBuilder &builder, Location loc,
                            ReductionKind kind, Type type) {
  bool isFloat = isa<FloatType>(type);
  using Kind = arith::AtomicRMWKind;
  auto get = [&](Kind ofFloats, Kind ofIntegers) {
    return arith::getIdentityValueAttr(isFloat ? ofFloats : ofIntegers, type,
                                       builder, loc);
  };
  switch (kind) {
  case ReductionKind::Max:
    return get(Kind::maximumf, Kind::maxs);
  case ReductionKind::Min:
    return get(Kind::minimumf, Kind::mins);
  case ReductionKind::Product:
    return get(Kind::mulf, Kind::muli);
  default:
    return get(Kind::addf, Kind::addi);
  }
}

/// The results of `op` if its block has no elements or is a reduction over
/// none; nullopt if they must be computed.
static std::optional<SmallVector<Value>>
buildWithoutElements(Operation *op, const ShardingRule &rule,
                     OpBuilder &builder, ValueRange operands, TypeRange types) {
  Location loc = op->getLoc();
  auto isEmpty = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getNumElements() == 0;
  };
  if (llvm::all_of(types, isEmpty))
    return llvm::map_to_vector(types, [&](Type type) -> Value {
      return tensor::EmptyOp::create(builder, loc,
                                     cast<RankedTensorType>(type).getShape(),
                                     getElementTypeOrSelf(type));
    });
  if (llvm::none_of(operands.getTypes(), isEmpty))
    return std::nullopt;
  for (const Factor &factor : rule.factors)
    if (factor.kind == FactorKind::Reduction)
      return llvm::map_to_vector(types, [&](Type type) -> Value {
        TypedAttr neutral = getNeutral(builder, loc, factor.reduction,
                                       getElementTypeOrSelf(type));
        return arith::ConstantOp::create(
            builder, loc,
            SplatElementsAttr::get(cast<RankedTensorType>(type),
                                   Attribute(neutral)));
      });
  return std::nullopt;
}

namespace {

/// The base of all models. `Derived` has the rule, and `build` if cloning isn't
/// enough.
template <typename Derived, typename OpT>
struct TosaModel : ShardingRuleOpInterface::ExternalModel<Derived, OpT> {
  FailureOr<SmallVector<Value>> partition(Operation *op, OpBuilder &builder,
                                          ValueRange operands, TypeRange types,
                                          const OpSplit &split) const {
    auto &derived = static_cast<const Derived &>(*this);
    if (auto values = buildWithoutElements(op, derived.getShardingRule(op),
                                           builder, operands, types))
      return *values;
    return derived.build(op, builder, operands, types, split);
  }

  FailureOr<SmallVector<Value>> build(Operation *op, OpBuilder &builder,
                                      ValueRange operands, TypeRange types,
                                      const OpSplit &) const {
    return clonePartitioned(op, builder, operands, types);
  }
};

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// How many operands are tensors of elements; the others are zero points,
/// shifts and tables.
template <typename OpT>
unsigned getNumElementwise(Operation *op) {
  if constexpr (std::is_same_v<OpT, tosa::MulOp>)
    return 2;
  else if constexpr (llvm::is_one_of<OpT, tosa::NegateOp, tosa::TableOp,
                                     tosa::RescaleOp>::value)
    return 1;
  else
    return op->getNumOperands();
}

template <typename OpT>
SmallVector<LinearSet> getLinearSets(Operation *op) {
  if constexpr (llvm::is_one_of<OpT, tosa::AddOp, tosa::SubOp>::value)
    return {{0, 1}};
  else if constexpr (std::is_same_v<OpT, tosa::IdentityOp>)
    return {{0}};
  // Only float ops are linear: integer ops have zero points and shifts.
  else if constexpr (std::is_same_v<OpT, tosa::MulOp>)
    return isFloat(op) ? SmallVector<LinearSet>{{0}, {1}}
                       : SmallVector<LinearSet>{};
  else if constexpr (std::is_same_v<OpT, tosa::NegateOp>)
    return isFloat(op) ? SmallVector<LinearSet>{{0}} : SmallVector<LinearSet>{};
  else if constexpr (std::is_same_v<OpT, tosa::SelectOp>)
    return {{1, 2}};
  else
    return {};
}

template <typename OpT>
struct ElementwiseModel : TosaModel<ElementwiseModel<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const {
    if constexpr (std::is_same_v<OpT, tosa::RescaleOp>)
      if (cast<tosa::RescaleOp>(op).getPerChannel())
        return ShardingRule::replicated(op);
    ShardingRule rule = getSameDimsRule(op, getNumElementwise<OpT>(op),
                                        [](int64_t) { return false; });
    return hasSums(op) ? rule.linear(getLinearSets<OpT>(op)) : rule;
  }
};

struct ConstModel : TosaModel<ConstModel, tosa::ConstOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return ShardingRule::elementwise(op);
  }
  FailureOr<SmallVector<Value>> build(Operation *op, OpBuilder &builder,
                                      ValueRange, TypeRange types,
                                      const OpSplit &split) const {
    auto type = cast<RankedTensorType>(types[0]);
    auto dense =
        dyn_cast<DenseElementsAttr>(cast<tosa::ConstOp>(op).getValues());
    if (dense && dense.isSplat())
      return SmallVector<Value>{tosa::ConstOp::create(
          builder, op->getLoc(), type, dense.resizeSplat(type))};
    return sliceConstant(op, builder, type, split,
                         getShardingRule(op).results[0]);
  }
};

//===----------------------------------------------------------------------===//
// Contractions, reductions
//===----------------------------------------------------------------------===//

/// An einsum over the first operands; `whole` names the factors that the op
/// needs whole.
template <typename OpT>
struct EinsumModel : TosaModel<EinsumModel<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const {
    if constexpr (std::is_same_v<OpT, tosa::MatMulOp>) {
      ShardingRule rule =
          ShardingRule::einsum(op, "(b m k, b k n, 1, 1) -> (b m n)");
      return isFloat(op) ? rule.linear({{0}, {1}}) : rule;
    } else if constexpr (std::is_same_v<OpT, tosa::GatherOp>) {
      return ShardingRule::einsum(op, "(n k c, n w) -> (n w c)")
          .whole("k")
          .linear({{0}});
    } else if constexpr (std::is_same_v<OpT, tosa::Conv2DOp>) {
      // Channels stay whole: a sum over them would add the bias once per rank.
      return getWindowRule(op, "(n h w c, o i j c, o, 1, 1) -> (n y x o)");
    } else if constexpr (std::is_same_v<OpT, tosa::Conv3DOp>) {
      return getWindowRule(op,
                           "(n d h w c, o l i j c, o, 1, 1) -> (n z y x o)");
    } else if constexpr (std::is_same_v<OpT, tosa::DepthwiseConv2DOp>) {
      return getWindowRule(op,
                           "(n h w o, i j o m, [o m], 1, 1) -> (n y x [o m])");
    } else if constexpr (std::is_same_v<OpT, tosa::MaxPool2dOp>) {
      return getWindowRule(op, "(n h w o) -> (n y x o)");
    } else {
      static_assert(std::is_same_v<OpT, tosa::AvgPool2dOp>);
      return getWindowRule(op, "(n h w o, 1, 1) -> (n y x o)");
    }
  }

private:
  /// Windows overlap the blocks of the dimensions that they move along.
  static ShardingRule getWindowRule(Operation *op, StringRef spec) {
    ShardingRule rule = ShardingRule::einsum(op, spec);
    for (StringRef name :
         {"c", "d", "h", "w", "l", "i", "j", "m", "x", "y", "z"})
      rule.whole(name);
    return rule;
  }
};

/// The kind of the Partial that results from a reduction over a split
/// dimension.
template <typename OpT>
std::optional<ReductionKind> getReductionKind(OpT op) {
  if constexpr (std::is_same_v<OpT, tosa::ReduceSumOp>)
    return ReductionKind::Sum;
  else if constexpr (std::is_same_v<OpT, tosa::ReduceProductOp>)
    return ReductionKind::Product;
  else if constexpr (llvm::is_one_of<OpT, tosa::ReduceMaxOp,
                                     tosa::ReduceMinOp>::value) {
    // Collectives propagate NaN.
    if (op.getNanMode() != tosa::NanPropagationMode::PROPAGATE)
      return std::nullopt;
    return std::is_same_v<OpT, tosa::ReduceMaxOp> ? ReductionKind::Max
                                                  : ReductionKind::Min;
  } else
    return std::nullopt;
}

/// A reduction along an axis. The result keeps the axis with size 1; that of
/// an argmax drops it.
template <typename OpT>
struct ReduceModel : TosaModel<ReduceModel<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const {
    constexpr bool isDropped = std::is_same_v<OpT, tosa::ArgMaxOp>;
    ShardingRule rule = ShardingRule::replicated(op);
    RankedTensorType type = getTensorType(op->getOperand(0));
    int64_t axis = cast<OpT>(op).getAxis();
    std::optional<ReductionKind> kind = getReductionKind(cast<OpT>(op));
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      unsigned factor = rule.factors.size();
      rule.factors.push_back({type.getDimSize(dim)});
      rule.operands[0][dim].push_back(factor);
      if (dim != axis) {
        rule.results[0][dim - (isDropped && dim > axis)].push_back(factor);
        continue;
      }
      rule.factors.back().kind =
          kind ? FactorKind::Reduction : FactorKind::Whole;
      rule.factors.back().reduction = kind.value_or(ReductionKind::Sum);
    }
    if (kind == ReductionKind::Sum)
      rule.linear({{0}});
    return rule;
  }
};

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

struct ReshapeModel : TosaModel<ReshapeModel, tosa::ReshapeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return ShardingRule::reshape(op).linear({{0}});
  }
  FailureOr<SmallVector<Value>> build(Operation *op, OpBuilder &builder,
                                      ValueRange operands, TypeRange types,
                                      const OpSplit &) const {
    auto type = cast<RankedTensorType>(types[0]);
    Value shape = buildShape(builder, op->getLoc(), type.getShape());
    return clonePartitioned(op, builder, {operands[0], shape}, types);
  }
};

struct TransposeModel : TosaModel<TransposeModel, tosa::TransposeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ShardingRule::replicated(op);
    RankedTensorType type = getTensorType(op->getResult(0));
    for (auto [dim, from] :
         llvm::enumerate(cast<tosa::TransposeOp>(op).getPerms())) {
      rule.operands[0][from].push_back(dim);
      rule.results[0][dim].push_back(dim);
      rule.factors.push_back({type.getDimSize(dim)});
    }
    return rule.linear({{0}});
  }
};

struct ConcatModel : TosaModel<ConcatModel, tosa::ConcatOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return getConcatRule(op, cast<tosa::ConcatOp>(op).getAxis());
  }
  FailureOr<SmallVector<Value>> build(Operation *op, OpBuilder &builder,
                                      ValueRange operands, TypeRange types,
                                      const OpSplit &) const {
    SmallVector<Value> parts(operands);
    llvm::erase_if(parts, [](Value part) {
      return getTensorType(part).getNumElements() == 0;
    });
    return clonePartitioned(op, builder, parts, types);
  }
};

/// The result is a window on each dimension that it doesn't take in full.
struct SliceModel : TosaModel<SliceModel, tosa::SliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = ShardingRule::replicated(op).linear({{0}});
    auto starts = getShapeValues(op->getOperand(1));
    if (!starts)
      return rule;
    RankedTensorType whole = getTensorType(op->getOperand(0));
    RankedTensorType type = getTensorType(op->getResult(0));
    for (unsigned dim = 0; dim < type.getRank(); ++dim) {
      rule.operands[0][dim].push_back(dim);
      rule.results[0][dim].push_back(dim);
      rule.factors.push_back({whole.getDimSize(dim)});
      if (type.getDimSize(dim) != whole.getDimSize(dim))
        rule.windows.push_back(
            {/*isResult=*/true, 0, dim, (*starts)[dim], type.getDimSize(dim)});
    }
    return rule;
  }
  FailureOr<SmallVector<Value>> build(Operation *op, OpBuilder &builder,
                                      ValueRange operands, TypeRange types,
                                      const OpSplit &split) const {
    auto starts = getShapeValues(op->getOperand(1));
    if (!starts)
      return clonePartitioned(op, builder, operands, types);
    RankedTensorType whole = getTensorType(op->getOperand(0));
    for (auto [dim, start] : llvm::enumerate(*starts))
      start = getLocalStart(split, dim, whole.getDimSize(dim), start);
    auto type = cast<RankedTensorType>(types[0]);
    Value start = buildShape(builder, op->getLoc(), *starts);
    Value size = buildShape(builder, op->getLoc(), type.getShape());
    return clonePartitioned(op, builder, {operands[0], start, size}, types);
  }
};

/// A dimension whose size changes stays whole.
template <typename OpT>
struct ResizeModel : TosaModel<ResizeModel<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const {
    RankedTensorType from = getTensorType(op->getOperand(0));
    RankedTensorType to = getTensorType(op->getResult(0));
    std::optional<SmallVector<int64_t>> padding;
    if constexpr (std::is_same_v<OpT, tosa::PadOp>)
      // The sizes aren't enough: as much may be cut off on one side as is added
      // on the other.
      if (!(padding = getShapeValues(op->getOperand(1))))
        return ShardingRule::replicated(op);
    ShardingRule rule = getSameDimsRule(op, 1, [&](int64_t dim) {
      return from.getDimSize(dim) != to.getDimSize(dim) ||
             (padding && (*padding)[2 * dim] != 0);
    });
    return std::is_same_v<OpT, tosa::TileOp> ? rule.linear({{0}}) : rule;
  }
};

struct ReverseModel : TosaModel<ReverseModel, tosa::ReverseOp> {
  ShardingRule getShardingRule(Operation *op) const {
    int64_t axis = cast<tosa::ReverseOp>(op).getAxis();
    return getSameDimsRule(op, 1, [&](int64_t dim) { return dim == axis; })
        .linear({{0}});
  }
};

} // namespace

void tp::registerTosaExternalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tosa::TosaDialect *) {
    using namespace tosa;
    attachModelsByTrait<ElementwiseModel,
                        OpTrait::tosa::TosaElementwiseOperator,
#define GET_OP_LIST
#include "mlir/Dialect/Tosa/IR/TosaOps.cpp.inc"
                        >(context);
    attachModels<ElementwiseModel, MulOp, TableOp, RescaleOp, CastOp,
                 IdentityOp>(context);
    attachModels<EinsumModel, MatMulOp, GatherOp, Conv2DOp, Conv3DOp,
                 DepthwiseConv2DOp, MaxPool2dOp, AvgPool2dOp>(context);
    attachModels<ReduceModel, ReduceSumOp, ReduceMaxOp, ReduceMinOp,
                 ReduceProductOp, ReduceAllOp, ReduceAnyOp, ArgMaxOp>(context);
    ConstOp::attachInterface<ConstModel>(*context);
    ReshapeOp::attachInterface<ReshapeModel>(*context);
    TransposeOp::attachInterface<TransposeModel>(*context);
    ConcatOp::attachInterface<ConcatModel>(*context);
    SliceOp::attachInterface<SliceModel>(*context);
    ReverseOp::attachInterface<ReverseModel>(*context);
    attachModels<ResizeModel, PadOp, TileOp>(context);
    attachModels<ReplicatedModel, ConstShapeOp, FFT2dOp, RFFT2dOp, ResizeOp,
                 ScatterOp, TransposeConv2DOp>(context);
  });
}
