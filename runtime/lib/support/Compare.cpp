//===- Compare.cpp - Comparison of results --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace tprt;

static constexpr double infinity = std::numeric_limits<double>::infinity();

/// The distance of two elements. NaN equals only NaN, and an infinity equals
/// only itself.
static double distance(double got, double expected) {
  if (got == expected || (std::isnan(got) && std::isnan(expected)))
    return 0;
  double difference = std::abs(got - expected);
  return std::isnan(difference) ? infinity : difference;
}

static Shape unravel(int64_t flat, const Shape &shape) {
  Shape index(shape.size());
  for (size_t d = shape.size(); d-- > 0; flat /= shape[d])
    index[d] = flat % shape[d];
  return index;
}

Comparison tprt::compare(const Tensor &got, const Tensor &expected,
                         Tolerance tolerance, size_t maxDifferences) {
  bool sameDtype = got.dtype == expected.dtype ||
                   (got.dtype == Dtype::BF16 && expected.dtype == Dtype::F32);
  if (!sameDtype || got.shape != expected.shape)
    throw inputError("has type " + got.getTypeString() + ", the expected " +
                     expected.getTypeString());

  struct Candidate {
    double difference;
    int64_t flat;
  };
  auto isWorse = [](const Candidate &a, const Candidate &b) {
    return a.difference > b.difference;
  };
  Comparison result;
  result.numElements = got.getNumElements();
  std::vector<Candidate> worst; // a heap with the smallest difference first
  int64_t width = byteWidth(got.dtype);
  for (int64_t i = 0; i < result.numElements; ++i) {
    double a = loadAsDouble(got.dtype, got.data.get(), i);
    double b = loadAsDouble(expected.dtype, expected.data.get(), i);
    double difference = distance(a, b);
    result.maxAbsolute = std::max(result.maxAbsolute, difference);
    bool isClose;
    if (isFloat(got.dtype))
      isClose =
          difference == 0 ||
          (std::isfinite(b) &&
           difference <= tolerance.absolute + tolerance.relative * std::abs(b));
    else // doubles can't distinguish integers beyond 2^53
      isClose = std::memcmp(got.data.get() + i * width,
                            expected.data.get() + i * width, width) == 0;
    if (isClose)
      continue;
    ++result.numDifferent;
    worst.push_back({difference, i});
    std::push_heap(worst.begin(), worst.end(), isWorse);
    if (worst.size() > maxDifferences) {
      std::pop_heap(worst.begin(), worst.end(), isWorse);
      worst.pop_back();
    }
  }
  std::sort(worst.begin(), worst.end(), isWorse);
  for (const Candidate &candidate : worst)
    result.largest.push_back(
        {unravel(candidate.flat, got.shape),
         loadAsDouble(got.dtype, got.data.get(), candidate.flat),
         loadAsDouble(expected.dtype, expected.data.get(), candidate.flat)});
  return result;
}
