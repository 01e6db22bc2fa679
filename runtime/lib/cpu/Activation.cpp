//===- Activation.cpp - Vectorized GEMM activations -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/Activation.h"

#include "cpu/Exponential.h"
#include "tprt/abi.h"

#include <cmath>
#include <numbers>

using namespace tprt;

static constexpr double sqrt2OverPi =
    std::numbers::sqrt2 * std::numbers::inv_sqrtpi;

//===----------------------------------------------------------------------===//
// Sixteen numbers
//===----------------------------------------------------------------------===//

TPRT_INLINE Lanes absolute(Lanes x) {
  return reinterpret_cast<Lanes>(reinterpret_cast<IntLanes>(x) & 0x7fffffff);
}

/// 0 is +0, and NaN stays NaN.
TPRT_INLINE Lanes relu(Lanes x) { return keep(~(x < 0.0f), x) + 0.0f; }

/// 1 / (1 + e^-x), from an exponential that is at most 1, so that tails keep
/// their precision.
TPRT_INLINE Lanes sigmoid(Lanes x) {
  Lanes e = -absolute(x);
  exponentiate(e);
  return (x < 0.0f ? e : Lanes{} + 1.0f) / (e + 1.0f);
}

TPRT_INLINE Lanes silu(Lanes x) { return x * sigmoid(x); }

/// 1 + tanh(u) is twice the sigmoid of 2u.
TPRT_INLINE Lanes geluTanh(Lanes x) {
  constexpr float scale = 2 * sqrt2OverPi;
  return x * sigmoid((x * x * x * 0.044715f + x) * scale);
}

/// x times the normal distribution function Φ(x), computed as max(x, 0) - |x|
/// q. Here q is Φ(-|x|) = e^(-x²/2) t P(t), with t = 1 / (1 + c |x|). P is
/// fitted to a relative error of 7e-9 up to |x| = 14. Beyond that q is
/// denormal, and 0 from 15 on.
TPRT_INLINE Lanes gelu(Lanes x) {
  constexpr float c = 0.35 / std::numbers::sqrt2;
  Lanes a = absolute(x);
  a = a > 15.0f ? Lanes{} + 15.0f : a;
  Lanes t = 1.0f / (a * c + 1.0f);
  Lanes p = t * 0.0192005071f - 0.0794640633f;
  p = p * t + 0.0907304876f;
  p = p * t - 0.0138527416f;
  p = p * t + 0.0435093788f;
  p = p * t + 0.0730210549f;
  p = p * t + 0.0755931201f;
  p = p * t + 0.0939511923f;
  p = p * t + 0.0985691786f;
  p = p * t + 0.0987418891f;
  Lanes e = a * a * -0.5f;
  exponentiate(e);
  return relu(x) - a * (e * (t * p));
}

/// The activation is a compile-time constant, so there is no branch per
/// element.
template <tprt_activation activation>
TPRT_INLINE Lanes evaluate(Lanes x) {
  if constexpr (activation == TPRT_RELU)
    return relu(x);
  else if constexpr (activation == TPRT_GELU)
    return gelu(x);
  else if constexpr (activation == TPRT_GELU_TANH)
    return geluTanh(x);
  else if constexpr (activation == TPRT_SILU)
    return silu(x);
  else
    return x;
}

template <tprt_activation activation>
TPRT_INLINE void evaluateRow(int64_t count, float *c, const float *factor) {
  int64_t i = 0;
  for (; i + numLanes <= count; i += numLanes) {
    auto &x = *reinterpret_cast<LanesInMemory *>(c + i);
    Lanes y = evaluate<activation>(x);
    if (factor)
      y *= *reinterpret_cast<const LanesInMemory *>(factor + i);
    x = y;
  }
  if (i == count)
    return;
  Lanes rest = {};
  for (int64_t j = i; j < count; ++j)
    rest[j - i] = c[j];
  rest = evaluate<activation>(rest);
  for (int64_t j = i; j < count; ++j)
    c[j] = factor ? rest[j - i] * factor[j] : rest[j - i];
}

//===----------------------------------------------------------------------===//
// Doubles
//===----------------------------------------------------------------------===//

template <tprt_activation activation>
static double evaluate(double x) {
  if constexpr (activation == TPRT_RELU)
    return (x < 0 ? 0 : x) + 0.0;
  else if constexpr (activation == TPRT_GELU)
    return x * (0.5 * std::erfc(x * (-std::numbers::sqrt2 / 2)));
  else if constexpr (activation == TPRT_GELU_TANH)
    return x / (1 + std::exp((x * x * x * 0.044715 + x) * (-2 * sqrt2OverPi)));
  else if constexpr (activation == TPRT_SILU)
    return x / (1 + std::exp(-x));
  else
    return x;
}

template <tprt_activation activation>
TPRT_INLINE void evaluateRow(int64_t count, double *c, const double *factor) {
  for (int64_t j = 0; j < count; ++j)
    c[j] = evaluate<activation>(c[j]) * (factor ? factor[j] : 1.0);
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

namespace {
/// The arguments of tprt::activate.
template <typename T>
struct Work {
  int64_t rows, columns;
  T *c;
  int64_t rowC;
  const T *factor;
  int64_t rowFactor;
};
} // namespace

template <tprt_activation activation, typename T>
TPRT_INLINE void evaluateRows(const Work<T> &work) {
  for (int64_t i = 0; i < work.rows; ++i)
    evaluateRow<activation>(work.columns, work.c + i * work.rowC,
                            work.factor ? work.factor + i * work.rowFactor
                                        : nullptr);
}

template <typename T>
TPRT_INLINE void dispatch(int64_t activation, const Work<T> &work) {
  switch (activation) {
  case TPRT_RELU:
    return evaluateRows<TPRT_RELU>(work);
  case TPRT_GELU:
    return evaluateRows<TPRT_GELU>(work);
  case TPRT_GELU_TANH:
    return evaluateRows<TPRT_GELU_TANH>(work);
  case TPRT_SILU:
    return evaluateRows<TPRT_SILU>(work);
  default:
    return evaluateRows<TPRT_NO_ACTIVATION>(work);
  }
}

TPRT_MULTIVERSION static void dispatchFloats(int64_t activation,
                                             const Work<float> &work) {
  dispatch(activation, work);
}

void tprt::activate(int64_t activation, int64_t rows, int64_t columns, float *c,
                    int64_t rowC, const float *factor, int64_t rowFactor) {
  dispatchFloats(activation, {rows, columns, c, rowC, factor, rowFactor});
}

void tprt::activate(int64_t activation, int64_t rows, int64_t columns,
                    double *c, int64_t rowC, const double *factor,
                    int64_t rowFactor) {
  dispatch<double>(activation, {rows, columns, c, rowC, factor, rowFactor});
}
