//===- Softmax.cpp - Exponentials of rows, vectorised --------------------===//

#include "Softmax.h"

#include "Multiversion.h"

#include <cmath>
#include <limits>

using namespace tprt;

// Sixteen lanes, whatever the CPU's vectors hold: sums don't depend on it.
typedef float Lanes __attribute__((vector_size(64)));
typedef int32_t IntLanes __attribute__((vector_size(64)));
typedef float LanesInMemory
    __attribute__((vector_size(64), aligned(4), may_alias));
static_assert(sizeof(Lanes) / sizeof(float) == softmaxPadding);

/// e^x for x <= 0: 2^n times a polynomial in x - n ln 2, Cephes' coefficients.
TPRT_INLINE void exponentiate(Lanes &x) {
  constexpr float lowest = -87.33654f; // below it, subnormal: 0
  constexpr float shift = 12582912.0f; // adding it rounds to an integer
  IntLanes isZero = x < lowest;
  Lanes shifted = x * 1.44269504f + shift;
  Lanes n = shifted - shift;
  Lanes r = x - n * 0.693359375f + n * 2.12194440e-4f;
  Lanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // The integer is in the low bits of the shifted number.
  IntLanes exponent = (reinterpret_cast<IntLanes &>(shifted) - 0x4b400000 + 127)
                      << 23;
  p = p * reinterpret_cast<Lanes &>(exponent);
  IntLanes bits = reinterpret_cast<IntLanes &>(p) & ~isZero;
  x = reinterpret_cast<Lanes &>(bits);
}

TPRT_MULTIVERSION static float exponentiateRow(float *row, int64_t count) {
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
  return sum;
}

float tprt::exponentiate(float *row, int64_t count) {
  return count ? exponentiateRow(row, count) : 0.0f;
}

double tprt::exponentiate(double *row, int64_t count) {
  double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < count; ++i)
    maximum = row[i] > maximum ? row[i] : maximum;
  for (int64_t i = 0; i < count; ++i)
    sum += row[i] = std::exp(row[i] - maximum);
  return sum;
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
