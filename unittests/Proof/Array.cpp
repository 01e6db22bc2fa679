//===- Array.cpp - Arrays of doubles --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Array.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::test;

int64_t test::count(const Shape &shape) {
  int64_t size = 1;
  for (int64_t extent : shape)
    size *= extent;
  return size;
}

Array test::make(Shape shape) {
  Array array{std::move(shape), {}};
  array.data.resize(count(array.shape));
  return array;
}

Shape test::unravel(int64_t at, const Shape &shape) {
  Shape index(shape.size());
  for (size_t i = shape.size(); i-- > 0; at /= shape[i])
    index[i] = at % shape[i];
  return index;
}

int64_t test::ravel(const Shape &index, const Shape &shape) {
  int64_t at = 0;
  for (size_t i = 0; i < shape.size(); ++i)
    at = at * shape[i] + index[i];
  return at;
}

double test::getBroadcast(const Array &array, const Shape &index) {
  Shape own(index.end() - array.shape.size(), index.end());
  for (size_t i = 0; i < own.size(); ++i)
    if (array.shape[i] == 1)
      own[i] = 0;
  return array.data[ravel(own, array.shape)];
}

Array test::takeAlong(const Array &whole, int64_t dim,
                      ArrayRef<Interval> intervals) {
  std::vector<int64_t> positions;
  for (Interval interval : intervals)
    for (int64_t i = 0; i < interval.size; ++i)
      positions.push_back(interval.offset + i);
  Shape shape = whole.shape;
  shape[dim] = positions.size();
  return generate(shape, [&](Shape index) {
    index[dim] = positions[index[dim]];
    return whole.data[ravel(index, whole.shape)];
  });
}

Array test::join(ArrayRef<Array> parts, int64_t dim) {
  Shape shape = parts.front().shape;
  shape[dim] = 0;
  for (const Array &part : parts)
    shape[dim] += part.shape[dim];
  return generate(shape, [&](Shape index) {
    const Array *part = parts.begin();
    for (; index[dim] >= part->shape[dim]; ++part)
      index[dim] -= part->shape[dim];
    return part->data[ravel(index, part->shape)];
  });
}

bool test::areEqual(const std::vector<Array> &a, const std::vector<Array> &b) {
  for (auto [one, other] : llvm::zip_equal(a, b)) {
    if (one.shape != other.shape)
      return false;
    for (auto [x, y] : llvm::zip_equal(one.data, other.data))
      if (!(std::isnan(x) && std::isnan(y)) && x != y &&
          !(std::abs(x - y) <=
            1e-7 * std::max({1.0, std::abs(x), std::abs(y)})))
        return false;
  }
  return true;
}
