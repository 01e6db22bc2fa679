//===- AtenPooling.cpp - maxima and means of windows ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ReduceKind;

using Sizes = llvm::SmallVector<int64_t>;

namespace {
/// The windows of a pooling op.
struct Pooling {
  Sizes size, stride, padding, dilation;
};
} // namespace

/// Without a stride, windows lie side by side.
static Pooling poolingOf(AtenCall &call, int64_t n) {
  Pooling pooling;
  pooling.size = call.integersPerDim("kernel_size", n);
  pooling.stride = call.integersPerDim("stride", n);
  if (pooling.stride.empty())
    pooling.stride = pooling.size;
  pooling.padding = call.integersPerDim("padding", n);
  pooling.dilation = Sizes(n, 1);
  return pooling;
}

/// The pooling with windows cut to the elements that lie before the input's end
/// in at least one window. With ceil_mode, a window can be much larger than the
/// input. The first window starts first, so it alone decides where to cut.
static Pooling dropOutside(Pooling pooling, ArrayRef<int64_t> extents) {
  for (auto [size, padding, dilation, extent] :
       llvm::zip_equal(pooling.size, pooling.padding, pooling.dilation,
                       extents.take_back(pooling.size.size())))
    size = std::clamp((extent - 1 + padding) / dilation + 1, int64_t(1), size);
  return pooling;
}

static Value pool(ImportBuilder &b, ReduceKind kind, Value v,
                  const Pooling &given, ArrayRef<int64_t> shape) {
  Pooling pooling = dropOutside(given, shapeOf(v));
  return nn::PoolOp::create(b, typeOf(v).clone(shape), kind, v, pooling.size,
                            pooling.stride, pooling.padding, pooling.dilation);
}

/// The position of each window's first largest element in its image. Element k
/// of window p is element starts[p] + k * dilation of its dimension. If all
/// elements are -inf, as the padding is, it is the first one of the image.
static Value findLargest(ImportBuilder &b, Value v, const Pooling &given,
                         ArrayRef<Sizes> starts, ArrayRef<int64_t> extents,
                         ArrayRef<int64_t> shape) {
  Pooling pooling = dropOutside(given, shapeOf(v));
  int64_t n = pooling.size.size(), lead = rankOf(v) - n;
  Sizes windows(shapeOf(v).take_front(lead)), columns(windows);
  llvm::append_range(windows, pooling.size);
  llvm::append_range(windows, shape.take_back(n));
  columns.push_back(ShapedType::getNumElements(pooling.size));
  llvm::append_range(columns, shape.take_back(n));
  Value elements = nn::WindowsOp::create(
      b, typeOf(v).clone(windows), v, pooling.stride, pooling.padding,
      pooling.dilation, llvm::APFloat(-HUGE_VAL));
  Value element = nn::ArgMaxOp::create(b, b.reshape(elements, columns), lead);
  Type i64 = b.getI64Type();
  Value position = b.splat(shape, i64, Scalar::of(int64_t(0)));
  int64_t scale = 1;
  for (int64_t i = n; i-- > 0;) {
    Value size = b.scalar(i64, Scalar::of(pooling.size[i]));
    Value k = binary<nn::RemainderOp>(b, element, size);
    element = binary<nn::FloorDivOp>(b, element, size);
    auto perWindow = [&](ArrayRef<int64_t> values) {
      Sizes shape(n - i, 1);
      shape[0] = values.size();
      return b.reshape(nn::ConstantOp::create(b, b.getI64TensorAttr(values)),
                       shape);
    };
    Value dilation = b.scalar(i64, Scalar::of(pooling.dilation[i]));
    Value index = add(b, mul(b, k, dilation), perWindow(starts[i]));
    auto isOutside = [](int64_t start) { return start < 0; };
    if (llvm::any_of(starts[i], isOutside)) {
      auto first = llvm::map_to_vector(starts[i], [&](int64_t start) {
        return start < 0 ? llvm::mod(start, pooling.dilation[i]) : start;
      });
      index = binary<nn::MaximumOp>(b, index, perWindow(first));
    }
    position =
        add(b, position, mul(b, index, b.scalar(i64, Scalar::of(scale))));
    scale *= extents[i];
  }
  return position;
}

template <int64_t n>
static LogicalResult maxPool(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  if (!isFloat(self))
    return call.unsupported("of integers");
  Pooling pooling = poolingOf(call, n);
  pooling.dilation = call.integersPerDim("dilation", n);
  ArrayRef<int64_t> shape = call.resultShape();
  call.setResult(0, pool(b, ReduceKind::Max, self, pooling, shape));
  if (call.numResults() == 1)
    return success();
  llvm::SmallVector<Sizes> starts(n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t p = 0; p < shape.take_back(n)[i]; ++p)
      starts[i].push_back(p * pooling.stride[i] - pooling.padding[i]);
  call.setResult(1, findLargest(b, self, pooling, starts,
                                shapeOf(self).take_back(n), shape));
  return success();
}

/// Divides sums by `counts`, one list for each of the last dimensions; a
/// window has the product of its counts.
static Value divideByCounts(ImportBuilder &b, Value sums,
                            ArrayRef<llvm::SmallVector<double>> counts) {
  Type element = elementOf(sums);
  Value divisor;
  double product = 1;
  for (auto [i, list] : llvm::enumerate(counts)) {
    if (llvm::all_equal(list)) {
      product *= list.front();
      continue;
    }
    Sizes shape(counts.size() - i, 1);
    shape[0] = list.size();
    auto attrs = llvm::map_to_vector(list, [&](double count) -> Attribute {
      return b.getFloatAttr(element, count);
    });
    Value vector = nn::ConstantOp::create(
        b,
        DenseElementsAttr::get(RankedTensorType::get(shape, element), attrs));
    divisor = divisor ? mul(b, divisor, vector) : vector;
  }
  if (product != 1 || !divisor) {
    Value number = b.scalar(element, Scalar::of(product));
    divisor = divisor ? mul(b, divisor, number) : number;
  }
  return div(b, sums, divisor);
}

/// How many elements PyTorch divides the sum of each window by: those within
/// the padding, or those of the input. What ceil_mode adds never counts.
static llvm::SmallVector<double> countsOf(const Pooling &pooling, int64_t i,
                                          int64_t extent, int64_t numWindows,
                                          bool countPadding) {
  llvm::SmallVector<double> counts;
  int64_t padding = pooling.padding[i];
  for (int64_t p = 0; p < numWindows; ++p) {
    int64_t start = p * pooling.stride[i] - padding;
    int64_t end = start + pooling.size[i];
    counts.push_back(countPadding
                         ? std::min(end, extent + padding) - start
                         : std::min(end, extent) - std::max(start, int64_t(0)));
  }
  return counts;
}

template <int64_t n>
static LogicalResult averagePool(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  if (!isFloat(self))
    return call.unsupported("of integers");
  Pooling pooling = poolingOf(call, n);
  Value v = b.widen(self);
  ArrayRef<int64_t> result = call.resultShape();
  Value sums = pool(b, ReduceKind::Sum, v, pooling, result);
  llvm::SmallVector<llvm::SmallVector<double>> counts;
  if (n > 1 && call.has("divisor_override"))
    counts = {{call.real("divisor_override")}};
  else
    for (int64_t i = 0; i < n; ++i)
      counts.push_back(countsOf(pooling, i, shapeOf(v).take_back(n)[i],
                                result.take_back(n)[i],
                                call.flag("count_include_pad")));
  return call.result(
      castTo(b, divideByCounts(b, sums, counts), elementOf(self)));
}

namespace {
/// One dimension of an adaptive pooling: window p has the elements from
/// floor(p * from / to) to ceil((p + 1) * from / to).
struct AdaptiveDim {
  int64_t from, to;

  int64_t start(int64_t p) const { return p * from / to; }
  int64_t end(int64_t p) const { return llvm::divideCeil((p + 1) * from, to); }
  int64_t largest() const {
    int64_t size = 0;
    for (int64_t p = 0; p < to; ++p)
      size = std::max(size, end(p) - start(p));
    return size;
  }
};
} // namespace

/// Brings windows side by side, all of the size of the largest one. A smaller
/// one repeats its last element, or ends in zeros.
static Value alignWindows(ImportBuilder &b, Value v, int64_t dim,
                          AdaptiveDim windows, bool repeats) {
  if (windows.from % windows.to == 0)
    return v;
  int64_t size = windows.largest();
  Sizes order;
  llvm::SmallVector<bool> isInside;
  for (int64_t p = 0; p < windows.to; ++p)
    for (int64_t k = windows.start(p); k < windows.start(p) + size; ++k) {
      order.push_back(std::min(k, windows.end(p) - 1));
      isInside.push_back(k < windows.end(p));
    }
  v = b.pick(v, dim, order);
  if (repeats || llvm::all_equal(isInside))
    return v;
  Sizes shape(rankOf(v) - dim, 1);
  shape[0] = order.size();
  Value mask = nn::ConstantOp::create(
      b, DenseElementsAttr::get(RankedTensorType::get(shape, b.getI1Type()),
                                ArrayRef<bool>(isInside)));
  return keep(b, mask, v);
}

/// PyTorch's adaptive pooling: as many windows as the result has elements.
template <int64_t n, ReduceKind kind>
static LogicalResult adaptivePool(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self");
  if (!isFloat(self))
    return call.unsupported("of integers");
  bool isMax = kind == ReduceKind::Max;
  Value v = isMax ? self : b.widen(self);
  int64_t lead = rankOf(v) - n;
  ArrayRef<int64_t> result = call.resultShape();
  if (typeOf(v).getNumElements() == 0 ||
      call.resultType().getNumElements() == 0)
    return call.unsupported("of an empty tensor");
  auto isOne = [](int64_t size) { return size == 1; };
  if (!isMax && llvm::all_of(result.take_back(n), isOne)) {
    auto dims = llvm::to_vector(llvm::seq<int64_t>(lead, rankOf(v)));
    v = b.reduce(ReduceKind::Mean, v, dims, /*keepdim=*/true);
    return call.result(castTo(b, v, elementOf(self)));
  }
  Pooling pooling;
  llvm::SmallVector<llvm::SmallVector<double>> counts;
  llvm::SmallVector<Sizes> starts;
  for (int64_t dim = lead; dim < lead + n; ++dim) {
    AdaptiveDim windows{shapeOf(v)[dim], result[dim]};
    starts.emplace_back();
    v = alignWindows(b, v, dim, windows, /*repeats=*/isMax);
    pooling.size.push_back(windows.largest());
    counts.emplace_back();
    for (int64_t p = 0; p < windows.to; ++p) {
      counts.back().push_back(windows.end(p) - windows.start(p));
      starts.back().push_back(windows.start(p));
    }
  }
  pooling.stride = pooling.size;
  pooling.padding = Sizes(n, 0);
  pooling.dilation = Sizes(n, 1);
  if (!isMax) {
    v = pool(b, ReduceKind::Sum, v, pooling, result);
    return call.result(
        castTo(b, divideByCounts(b, v, counts), elementOf(self)));
  }
  call.setResult(0, pool(b, kind, v, pooling, result));
  if (call.numResults() > 1)
    call.setResult(1, findLargest(b, v, pooling, starts,
                                  shapeOf(self).take_back(n), result));
  return success();
}

template <int64_t n>
static void addPooling(AtenTable &table, const std::string &dims) {
  table["max_pool" + dims] = {.run = maxPool<n>,
                              .reads =
                                  "self kernel_size stride padding dilation",
                              .inType = "ceil_mode"};
  table["avg_pool" + dims] = {
      .run = averagePool<n>,
      .reads = n == 1 ? "self kernel_size stride padding count_include_pad"
                      : "self kernel_size stride padding count_include_pad "
                        "divisor_override",
      .inType = "ceil_mode"};
  table["adaptive_avg_pool" + dims] = {.run = adaptivePool<n, ReduceKind::Mean>,
                                       .reads = "self",
                                       .inType = "output_size"};
  table["adaptive_max_pool" + dims] = {.run = adaptivePool<n, ReduceKind::Max>,
                                       .reads = "self",
                                       .inType = "output_size"};
}

void mlir::tp::addPoolingOps(AtenTable &table) {
  addPooling<1>(table, "1d");
  addPooling<2>(table, "2d");
  addPooling<3>(table, "3d");
  for (StringRef dims : {"2d", "3d"})
    table[("_adaptive_avg_pool" + dims).str()] =
        table[("adaptive_avg_pool" + dims).str()];
  for (const char *dims : {"1d", "2d", "3d"}) {
    std::string name = std::string("max_pool") + dims;
    table[name + "_with_indices"] = table[name];
  }
}
