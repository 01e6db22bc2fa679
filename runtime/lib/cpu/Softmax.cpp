//===- Softmax.cpp - Exponentials of rows, vectorized ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/Softmax.h"

#include "cpu/Exponential.h"

#include <cmath>
#include <limits>

using namespace tprt;

/// The number that is subtracted before the exponential. If all elements are
/// -inf, it must be finite, because -inf minus -inf is NaN; any finite number
/// gives 0.
template <typename T>
static T getReference(T maximum) {
  return maximum == -std::numeric_limits<T>::infinity() ? T(0) : maximum;
}

/// The sum is 0 only for a row of -inf; otherwise the maximum contributes 1.
template <typename T>
static T getDivisor(T sum) {
  return sum == 0 ? T(1) : sum;
}

static_assert(numLanes == softmaxPadding);

TPRT_MULTIVERSION static float exponentiateRow(float *row, int64_t count,
                                               float &highestOfRow) {
  auto lanesAt = [&](int64_t i) -> LanesInMemory & {
    return *reinterpret_cast<LanesInMemory *>(row + i);
  };
  Lanes highest = lanesAt(0);
  for (int64_t i = softmaxPadding; i < count; i += softmaxPadding) {
    Lanes x = lanesAt(i);
    highest = x > highest ? x : highest;
  }
  float maximum = highest[0];
  for (int64_t i = 1; i < softmaxPadding; ++i)
    maximum = highest[i] > maximum ? highest[i] : maximum;
  highestOfRow = maximum;
  maximum = getReference(maximum);

  Lanes sums = {};
  for (int64_t i = 0; i < count; i += softmaxPadding) {
    Lanes x = lanesAt(i) - maximum;
    exponentiate(x);
    lanesAt(i) = x;
    sums += x;
  }
  float sum = 0;
  for (int64_t i = 0; i < softmaxPadding; ++i)
    sum += sums[i];
  return getDivisor(sum);
}

float tprt::exponentiate(float *row, int64_t count, float &maximum) {
  maximum = -std::numeric_limits<float>::infinity();
  return count ? exponentiateRow(row, count, maximum) : 1.0f;
}

double tprt::exponentiate(double *row, int64_t count, double &maximum) {
  double sum = 0;
  maximum = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < count; ++i)
    maximum = row[i] > maximum ? row[i] : maximum;
  double reference = getReference(maximum);
  for (int64_t i = 0; i < count; ++i)
    sum += row[i] = std::exp(row[i] - reference);
  return getDivisor(sum);
}

TPRT_MULTIVERSION static void differentiateRow(float *exponentials, float sum,
                                               float *gradient, int64_t count) {
  auto lanesAt = [](float *row, int64_t i) -> LanesInMemory & {
    return *reinterpret_cast<LanesInMemory *>(row + i);
  };
  float factor = 1.0f / sum;
  Lanes products = {};
  for (int64_t i = 0; i < count; i += softmaxPadding) {
    Lanes p = lanesAt(exponentials, i) * factor;
    lanesAt(exponentials, i) = p;
    products += p * lanesAt(gradient, i);
  }
  float mean = 0;
  for (int64_t i = 0; i < softmaxPadding; ++i)
    mean += products[i];
  for (int64_t i = 0; i < count; i += softmaxPadding)
    lanesAt(gradient, i) =
        lanesAt(exponentials, i) * (lanesAt(gradient, i) - mean);
}

void tprt::softmaxGradient(float *exponentials, float sum, float *gradient,
                           int64_t count) {
  differentiateRow(exponentials, sum, gradient, count);
}

void tprt::softmaxGradient(double *exponentials, double sum, double *gradient,
                           int64_t count) {
  double mean = 0;
  for (int64_t i = 0; i < count; ++i) {
    exponentials[i] /= sum;
    mean += exponentials[i] * gradient[i];
  }
  for (int64_t i = 0; i < count; ++i)
    gradient[i] = exponentials[i] * (gradient[i] - mean);
}

TPRT_MULTIVERSION static void differentiatePart(float *exponentials,
                                                float factor, float mean,
                                                float *gradient,
                                                int64_t count) {
  auto lanesAt = [](float *row, int64_t i) -> LanesInMemory & {
    return *reinterpret_cast<LanesInMemory *>(row + i);
  };
  for (int64_t i = 0; i < count; i += softmaxPadding) {
    Lanes p = lanesAt(exponentials, i) * factor;
    lanesAt(exponentials, i) = p;
    lanesAt(gradient, i) = p * (lanesAt(gradient, i) - mean);
  }
}

void tprt::softmaxGradient(float *exponentials, float factor, float mean,
                           float *gradient, int64_t count) {
  differentiatePart(exponentials, factor, mean, gradient, count);
}

void tprt::softmaxGradient(double *exponentials, double factor, double mean,
                           double *gradient, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    exponentials[i] *= factor;
    gradient[i] = exponentials[i] * (gradient[i] - mean);
  }
}
