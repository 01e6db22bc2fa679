//===- StridedView.cpp - a tensor as a part of another --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StridedView.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

StridedLayout StridedLayout::contiguous(ArrayRef<int64_t> sizes) {
  return {llvm::SmallVector<int64_t>(sizes), computeStrides(sizes), 0};
}

namespace {
/// A dimension of the base, in the order of memory.
struct BaseDim {
  int64_t size, stride;
  /// Of the view's first element.
  int64_t start = 0;
};
/// A dimension of the view that has several elements of the base.
struct ViewDim {
  unsigned number;
  int64_t size, stride;
  unsigned base = 0; ///< index of its BaseDim
};
} // namespace

/// The dimensions of more than one element from the largest stride to the
/// smallest.
static llvm::SmallVector<unsigned> getMemoryOrder(const StridedLayout &layout) {
  llvm::SmallVector<unsigned> order;
  for (auto [dim, size] : llvm::enumerate(layout.sizes))
    if (size != 1)
      order.push_back(dim);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) {
    return layout.strides[a] > layout.strides[b];
  });
  return order;
}

/// Merges a dimension with the next inner one.
static void merge(llvm::SmallVector<BaseDim> &dims, unsigned outer) {
  dims[outer].size *= dims[outer + 1].size;
  dims[outer].stride = dims[outer + 1].stride;
  dims.erase(dims.begin() + outer + 1);
}

/// Merges dimensions of the base until each dimension of the view is a range of
/// one of them. Some elements of the view begin at `offset`, and all lie inside
/// of the base.
static void matchDims(llvm::SmallVector<BaseDim> &dims,
                      llvm::SmallVector<ViewDim> &wanted, int64_t offset) {
  auto mergeOnce = [&] {
    for (ViewDim &dim : wanted) {
      auto *found = llvm::find_if(
          dims, [&](const BaseDim &base) { return base.stride <= dim.stride; });
      dim.base = found - dims.begin();
      if (dim.stride % found->stride == 0)
        continue;
      merge(dims, dim.base);
      return true;
    }
    int64_t rest = offset;
    for (BaseDim &base : dims) {
      base.start = rest / base.stride;
      rest %= base.stride;
    }
    for (auto [i, base] : llvm::enumerate(dims)) {
      int64_t last = base.start;
      for (const ViewDim &dim : wanted)
        if (dim.base == i)
          last += (dim.size - 1) * (dim.stride / base.stride);
      if (last < base.size)
        continue;
      merge(dims, i - 1);
      return true;
    }
    return false;
  };
  while (mergeOnce())
    ;
}

std::optional<StridedView> StridedView::find(const StridedLayout &base,
                                             const StridedLayout &view,
                                             std::string &why) {
  StridedView result;
  result.shape = view.sizes;
  auto add = [&](Step::Kind kind, ArrayRef<int64_t> dims) {
    result.steps.push_back({kind, llvm::SmallVector<int64_t>(dims)});
  };
  if (base == view || llvm::is_contained(view.sizes, 0))
    return result;

  // The base in the order of memory.
  llvm::SmallVector<unsigned> order = getMemoryOrder(base);
  int64_t count = 1;
  llvm::SmallVector<BaseDim> dims;
  for (unsigned dim : llvm::reverse(order)) {
    if (base.strides[dim] != count) {
      why = "the elements of its base aren't dense in memory";
      return std::nullopt;
    }
    dims.insert(dims.begin(), {base.sizes[dim], count});
    count *= base.sizes[dim];
  }
  if (dims.empty())
    dims.push_back({1, 1});
  llvm::SmallVector<int64_t> permutation;
  for (auto [dim, size] : llvm::enumerate(base.sizes))
    if (size == 1)
      permutation.push_back(dim);
  permutation.append(order.begin(), order.end());

  // Dimensions of stride 0 repeat elements, and come last.
  llvm::SmallVector<ViewDim> wanted;
  llvm::SmallVector<int64_t> unrepeated = view.sizes;
  int64_t extent = 1;
  llvm::SmallVector<unsigned> viewOrder = getMemoryOrder(view);
  for (unsigned dim : llvm::reverse(viewOrder)) {
    int64_t size = view.sizes[dim], stride = view.strides[dim];
    if (stride == 0) {
      unrepeated[dim] = 1;
      result.repeats = true;
      continue;
    }
    if (stride < extent) {
      why = "its elements overlap";
      return std::nullopt;
    }
    wanted.insert(wanted.begin(), {dim, size, stride});
    extent += (size - 1) * stride;
  }
  int64_t offset = view.offset - base.offset;
  if (offset < 0 || offset + extent > count) {
    why = "it lies outside of its base";
    return std::nullopt;
  }

  if (!llvm::is_sorted(permutation))
    add(Step::Transpose, permutation);
  matchDims(dims, wanted, offset);
  llvm::SmallVector<int64_t> shape;
  for (const BaseDim &dim : dims)
    shape.push_back(dim.size);
  add(Step::Reshape, shape);

  // Cut each dimension of the base, which may split it as well.
  size_t at = 0;
  auto slice = [&](int64_t start, int64_t size, int64_t step) {
    shape[at] = size;
    result.steps.push_back({Step::Slice, {}, int64_t(at), start, size, step});
  };
  llvm::SmallVector<int64_t> kept;
  ArrayRef<ViewDim> open = wanted;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    auto own = open.take_while([&](const ViewDim &d) { return d.base == i; });
    open = open.drop_front(own.size());
    int64_t start = dim.start, size = dim.size;
    for (; own.size() > 1; own = own.drop_front()) {
      // Rows, in which the further dimensions lie. The last one needn't be
      // complete; then all of them begin earlier, or zeros complete it.
      int64_t row = own[0].stride / dim.stride, rows = own[0].size * row;
      int64_t first = std::min(start, size - rows), extent = 1;
      for (const ViewDim &inner : own.drop_front())
        extent += (inner.size - 1) * (inner.stride / dim.stride);
      if (first < 0 || start - first + extent > row) {
        first = start;
        shape[at] = start + rows;
        result.steps.push_back({Step::Pad, {}, int64_t(at), 0, shape[at]});
      }
      slice(first, rows, 1);
      shape[at] = own[0].size;
      shape.insert(shape.begin() + at + 1, row);
      add(Step::Reshape, shape);
      kept.push_back(own[0].size);
      ++at;
      start -= first;
      size = row;
    }
    if (own.empty()) {
      slice(start, 1, 1);
    } else {
      slice(start, own[0].size, own[0].stride / dim.stride);
      kept.push_back(own[0].size);
    }
    ++at;
  }

  // The view's order and its dimensions of one element.
  add(Step::Reshape, kept);
  llvm::SmallVector<int64_t> toView(wanted.size());
  llvm::SmallVector<unsigned> numbers;
  for (const ViewDim &dim : wanted)
    numbers.push_back(dim.number);
  for (auto [from, number] : llvm::enumerate(numbers))
    toView[llvm::count_if(numbers, [&](unsigned n) { return n < number; })] =
        from;
  add(Step::Transpose, toView);
  add(Step::Reshape, unrepeated);
  add(Step::Broadcast, view.sizes);
  return result;
}

Value StridedView::apply(ImportBuilder &b, const Step &step,
                         Value before) const {
  switch (step.kind) {
  case Step::Reshape:
    return b.reshape(before, step.dims);
  case Step::Transpose:
    return b.transpose(before, step.dims);
  case Step::Pad: {
    llvm::SmallVector<int64_t> zeros(shapeOf(before));
    zeros[step.dim] = step.size - zeros[step.dim];
    Value padding = b.splat(zeros, elementOf(before), Scalar::of(int64_t(0)));
    return b.concat({before, padding}, step.dim);
  }
  case Step::Slice:
    return b.slice(before, step.dim, step.start, step.size, step.step);
  case Step::Broadcast:
    return broadcast(b, before, step.dims);
  }
  llvm_unreachable("unknown step");
}

Value StridedView::read(ImportBuilder &b, Value base) const {
  if (llvm::is_contained(shape, 0))
    return b.splat(shape, elementOf(base), Scalar::of(int64_t(0)));
  for (const Step &step : steps)
    base = apply(b, step, base);
  return base;
}

Value StridedView::write(ImportBuilder &b, Value base, Value part) const {
  if (llvm::is_contained(shape, 0))
    return base;
  llvm::SmallVector<Value> before{base};
  for (const Step &step : steps)
    before.push_back(apply(b, step, before.back()));
  for (size_t i = steps.size(); i-- > 0;) {
    const Step &step = steps[i];
    switch (step.kind) {
    case Step::Reshape:
    case Step::Broadcast: // of nothing
      part = b.reshape(part, shapeOf(before[i]));
      break;
    case Step::Transpose:
      part = b.transpose(part, invertPermutationVector(step.dims));
      break;
    case Step::Pad:
      part = b.slice(part, step.dim, 0, shapeOf(before[i])[step.dim]);
      break;
    case Step::Slice:
      part = b.sliceScatter(before[i], part, step.dim, step.start, step.step);
      break;
    }
  }
  return part;
}
