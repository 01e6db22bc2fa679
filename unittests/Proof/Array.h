//===- Array.h - Arrays of doubles ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_UNITTESTS_PROOF_ARRAY_H
#define TP_UNITTESTS_PROOF_ARRAY_H

#include "tp/Dialect/TP/Blocks.h"
#include <vector>

namespace mlir::tp::test {

using Shape = std::vector<int64_t>;

/// Row-major. Integers and booleans are doubles too.
struct Array {
  Shape shape;
  std::vector<double> data;
};

int64_t count(const Shape &shape);

/// Zeros.
Array make(Shape shape);

/// The index of element number `at`, and the number of the element at `index`.
Shape unravel(int64_t at, const Shape &shape);
int64_t ravel(const Shape &index, const Shape &shape);

/// Each element from its index.
template <typename Function>
Array generate(Shape shape, Function function) {
  Array array = make(std::move(shape));
  for (size_t at = 0; at < array.data.size(); ++at)
    array.data[at] = function(unravel(at, array.shape));
  return array;
}

/// The element that broadcasting puts at `index`.
double getBroadcast(const Array &array, const Shape &index);

Array takeAlong(const Array &whole, int64_t dim, ArrayRef<Interval> intervals);
Array join(ArrayRef<Array> parts, int64_t dim);

/// Whether they are equal but for rounding.
bool areEqual(const std::vector<Array> &a, const std::vector<Array> &b);

} // namespace mlir::tp::test

#endif // TP_UNITTESTS_PROOF_ARRAY_H
