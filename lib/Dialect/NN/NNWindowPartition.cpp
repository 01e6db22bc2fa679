//===- NNWindowPartition.cpp - Partition of ops with windows --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a spatial dimension is split, each rank first gets the elements that
// its windows consist of, its halo among them, in one exchange per dimension.
// Its windows then fill what it has, so its own op has no padding: the padding
// is a margin behind each rank's block, which stands for whatever lies beyond
// the dimension's ends.
//
//===----------------------------------------------------------------------===//

#include "tp/Dialect/NN/Expressions.h"
#include "tp/Interfaces/HaloExchange.h"
#include "tp/Interfaces/TensorBuilder.h"
#include <limits>

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::expr;

namespace {
/// One rank's operand and padding.
struct LocalWindows {
  Value input;
  SmallVector<int64_t> padding;
  /// By halo of the rule; null where the dimension isn't split.
  std::vector<std::optional<tp::HaloExchange>> exchanges;
};
} // namespace

/// `value`, a block along `halo.operandDim`, with what else the rank needs
/// there; `outside` lies beyond the ends of the dimension.
static Value exchangeHalo(ImplicitLocOpBuilder &b, Operation *op, Value value,
                          const tp::Halo &halo, ArrayRef<tp::AxisRefAttr> axes,
                          const tp::HaloExchange &exchange, tp::MeshOp mesh,
                          int64_t rank, double outside) {
  int64_t dim = halo.operandDim;
  if (exchange.margin > 0) {
    Value margin =
        filled(b, tp::resize(typeOf(value), dim, exchange.margin), outside);
    value = ConcatOp::create(b, ValueRange{value, margin}, dim);
  }
  auto begin = llvm::map_to_vector(
      exchange.needed, [](tp::Interval needed) { return needed.offset; });
  int64_t size = exchange.needed[mesh.getIndexAlong(rank, axes)].size;
  return tp::HaloOp::create(
      b, tp::resize(typeOf(value), dim, size), value, b.getI64IntegerAttr(dim),
      b.getI64IntegerAttr(halo.operandSize), b.getDenseI64ArrayAttr(begin),
      FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
      tp::AxisListAttr::get(b.getContext(), axes),
      op->getAttrOfType<StringAttr>(tp::kFqnAttr),
      b.getStringAttr(op->getName().getStringRef() + " over a split dimension"),
      IntegerAttr());
}

/// The operand and the padding of the rank's own op, or nullopt if the op stays
/// as it is.
template <typename OpT>
static std::optional<LocalWindows>
getLocalWindows(ImplicitLocOpBuilder &b, OpT op, const tp::ShardingRule &rule,
                Value input, const tp::OpSplit &split, double outside = 0) {
  LocalWindows local{input, SmallVector<int64_t>(op.getPadding()), {}};
  tp::MeshOp mesh = split.mesh;
  bool changed = false;
  for (auto [i, halo] : llvm::enumerate(rule.halos)) {
    ArrayRef<tp::AxisRefAttr> axes = split.factorAxes[halo.factor];
    auto &exchange = local.exchanges.emplace_back();
    if (mesh.getAxesSize(axes) == 1)
      continue;
    exchange.emplace(halo, axes, mesh);
    if (!exchange->isLocal)
      local.input = exchangeHalo(b, op, local.input, halo, axes, *exchange,
                                 mesh, split.rank, outside);
    local.padding[i] = halo.getLocalPadding(
        exchange->computed[mesh.getIndexAlong(split.rank, axes)]);
    changed |= !exchange->isLocal || local.padding[i] != op.getPadding()[i];
  }
  if (!changed)
    return std::nullopt;
  return local;
}

FailureOr<SmallVector<Value>>
ConvolutionOp::partition(OpBuilder &builder, ValueRange operands,
                         TypeRange types, const tp::OpSplit &split) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  auto local = getLocalWindows(b, *this, getShardingRule(), operands[0], split);
  if (!local)
    return tp::clonePartitioned(*this, builder, operands, types);
  return SmallVector<Value>{
      ConvolutionOp::create(b, types[0], local->input, operands[1], getStride(),
                            local->padding, getDilation())};
}

FailureOr<SmallVector<Value>> WindowsOp::partition(OpBuilder &builder,
                                                   ValueRange operands,
                                                   TypeRange types,
                                                   const tp::OpSplit &split) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  auto local = getLocalWindows(b, *this, getShardingRule(), operands[0], split,
                               getOutside().convertToDouble());
  if (!local)
    return tp::clonePartitioned(*this, builder, operands, types);
  return SmallVector<Value>{WindowsOp::create(b, types[0], local->input,
                                              getStride(), local->padding,
                                              getDilation(), getOutside())};
}

/// Cuts the rank's block out of `value`, which begins at the multiple of the
/// stride before it: a choice between as many slices as the stride says.
static Value cutBlock(ImplicitLocOpBuilder &b, Value value,
                      const tp::Halo &halo, int64_t size,
                      ArrayRef<tp::AxisRefAttr> axes, tp::MeshOp mesh) {
  int64_t dim = halo.resultDim;
  RankedTensorType type = tp::resize(typeOf(value), dim, size);
  auto scalar = RankedTensorType::get({}, b.getI64Type());
  Value first =
      tp::ShardOffsetOp::create(b, scalar, b.getI64IntegerAttr(halo.resultSize),
                                FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                                tp::AxisListAttr::get(b.getContext(), axes));
  Value start =
      binary<RemainderOp>(b, first, integer(b, b.getI64Type(), halo.stride));
  auto slice = [&](int64_t offset) -> Value {
    return SliceOp::create(b, type, value, dim, offset, /*step=*/1);
  };
  Value block = slice(0);
  for (int64_t offset = 1; offset < halo.stride; ++offset) {
    Value isStart = compare(b, ComparePredicate::EQ, start,
                            integer(b, b.getI64Type(), offset));
    block = select(b, isStart, slice(offset), block);
  }
  return block;
}

FailureOr<SmallVector<Value>> FoldOp::partition(OpBuilder &builder,
                                                ValueRange operands,
                                                TypeRange types,
                                                const tp::OpSplit &split) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  tp::ShardingRule rule = getShardingRule();
  auto local = getLocalWindows(b, *this, rule, operands[0], split);
  if (!local)
    return tp::clonePartitioned(*this, builder, operands, types);
  auto type = cast<RankedTensorType>(types[0]);
  tp::MeshOp mesh = split.mesh;
  SmallVector<std::pair<const tp::Halo *, int64_t>> cut;
  for (auto [halo, exchange] : llvm::zip_equal(rule.halos, local->exchanges)) {
    if (!exchange)
      continue;
    int64_t index =
        mesh.getIndexAlong(split.rank, split.factorAxes[halo.factor]);
    int64_t size = exchange->blocks[index].size;
    if (exchange->computed[index].size == size)
      continue;
    type = tp::resize(type, halo.resultDim, exchange->computed[index].size);
    cut.push_back({&halo, size});
  }
  Value result = FoldOp::create(b, type, local->input, getStride(),
                                local->padding, getDilation());
  for (auto [halo, size] : cut)
    result =
        cutBlock(b, result, *halo, size, split.factorAxes[halo->factor], mesh);
  return SmallVector<Value>{result};
}

FailureOr<SmallVector<Value>> PoolOp::partition(OpBuilder &builder,
                                                ValueRange operands,
                                                TypeRange types,
                                                const tp::OpSplit &split) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  double outside = getKind() == ReduceKind::Max
                       ? -std::numeric_limits<double>::infinity()
                       : 0.0;
  auto local =
      getLocalWindows(b, *this, getShardingRule(), operands[0], split, outside);
  if (!local)
    return tp::clonePartitioned(*this, builder, operands, types);
  return SmallVector<Value>{PoolOp::create(b, types[0], getKind(), local->input,
                                           getSize(), getStride(),
                                           local->padding, getDilation())};
}
