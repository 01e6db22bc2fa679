//===- FakeAttention.cpp - Attention's kernels without a device ----------===//
//
// What Attention.cu and AttentionGradient.cu compute, by the definition.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "tprt/Dtype.h"
#include "tprt/abi.h"

#include <algorithm>
#include <cmath>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

namespace {

/// The arguments of Attention.cu's.
struct AttentionArguments {
  tprt_attention_args args;
  const void *query, *key, *value, *mask;
  void *output;
};

/// The arguments of AttentionGradient.cu's.
struct GradientArguments {
  tprt_attention_gradient_args args;
  const void *query, *key, *value, *mask, *gradient;
  void *queryGradient, *keyGradient, *valueGradient;
  void *statistics;
};

/// An operand of one head.
template <typename T, typename Acc>
class Matrix {
public:
  Matrix(const tprt_attention_args &args, const tprt_attention_strides &strides,
         const void *data, int64_t head)
      : strides(strides), data(static_cast<T *>(const_cast<void *>(data))) {
    for (int d = TPRT_ATTENTION_BATCHES; d-- > 0; head /= args.batch[d])
      this->data += head % args.batch[d] * strides.batch[d];
  }

  Acc get(int64_t row, int64_t col) const {
    T *element = at(row, col);
    return checkMemory(element, sizeof(T)) ? castElement<Acc>(*element) : 0;
  }
  void set(int64_t row, int64_t col, Acc value) {
    T *element = at(row, col);
    if (checkMemory(element, sizeof(T)))
      *element = castElement<T>(value);
  }

private:
  T *at(int64_t row, int64_t col) const {
    return data + row * strides.row + col * strides.col;
  }

  const tprt_attention_strides &strides;
  T *data;
};

/// One head: query, key, and the scores that they give.
template <typename T, typename Acc>
struct Head {
  template <typename Arguments>
  Head(const tprt_attention_args &args, const Arguments &a, int64_t number)
      : args(args), query(args, args.query, a.query, number),
        key(args, args.key, a.key, number),
        value(args, args.value, a.value, number),
        added(args, args.mask_strides, a.mask, number),
        kept(args, args.mask_strides, a.mask, number) {}

  int64_t getColumns(int64_t row) const {
    return args.causal ? std::min(args.columns, row + 1) : args.columns;
  }

  Acc getScore(int64_t row, int64_t column) const {
    Acc dot = 0;
    for (int64_t d = 0; d < args.depth; ++d)
      dot += query.get(row, d) * key.get(column, d);
    dot *= static_cast<Acc>(args.scale);
    if (args.mask == TPRT_ADDED_MASK)
      return dot + added.get(row, column);
    if (args.mask == TPRT_BOOLEAN_MASK && kept.get(row, column) == 0)
      return -INFINITY;
    return dot;
  }

  /// A row of the softmax, and the logarithm of the sum of exponentials.
  std::vector<Acc> getWeights(int64_t row, Acc &logSum) const {
    std::vector<Acc> weights(getColumns(row));
    Acc highest = -INFINITY, sum = 0;
    for (size_t j = 0; j < weights.size(); ++j)
      highest = std::max(highest, weights[j] = getScore(row, j));
    for (Acc &weight : weights)
      sum += weight = std::exp(weight - highest);
    for (Acc &weight : weights)
      weight /= sum;
    logSum = highest + std::log(sum);
    return weights;
  }

  const tprt_attention_args &args;
  Matrix<T, Acc> query, key, value, added;
  Matrix<uint8_t, Acc> kept;
};

} // namespace

static int64_t countHeads(const tprt_attention_args &args) {
  int64_t count = 1;
  for (int64_t size : args.batch)
    count *= size;
  return count;
}

template <typename T, typename Acc>
static void attend(const AttentionArguments &a) {
  const tprt_attention_args &args = a.args;
  for (int64_t number = 0; number < countHeads(args); ++number) {
    Head<T, Acc> head(args, a, number);
    Matrix<T, Acc> output(args, args.output, a.output, number);
    for (int64_t i = 0; i < args.rows; ++i) {
      Acc logSum;
      std::vector<Acc> weights = head.getWeights(i, logSum);
      for (int64_t e = 0; e < args.width; ++e) {
        Acc sum = 0;
        for (size_t j = 0; j < weights.size(); ++j)
          sum += weights[j] * head.value.get(j, e);
        output.set(i, e, sum);
      }
    }
  }
}

/// Of a row, as the second kernel reads them.
template <typename Acc>
static Acc *getStatistics(const GradientArguments &a, int64_t head,
                          int64_t row) {
  return static_cast<Acc *>(a.statistics) +
         2 * (head * a.args.attention.rows + row);
}

template <typename T, typename Acc>
static void differentiateQuery(const GradientArguments &a) {
  const tprt_attention_args &args = a.args.attention;
  for (int64_t number = 0; number < countHeads(args); ++number) {
    Head<T, Acc> head(args, a, number);
    Matrix<T, Acc> gradient(args, args.output, a.gradient, number);
    Matrix<T, Acc> result(args, a.args.query_gradient, a.queryGradient, number);
    for (int64_t i = 0; i < args.rows; ++i) {
      Acc *statistics = getStatistics<Acc>(a, number, i);
      if (!checkMemory(statistics, 2 * sizeof(Acc)))
        return;
      std::vector<Acc> weights = head.getWeights(i, statistics[0]);
      std::vector<Acc> slopes(weights.size());
      Acc mean = 0;
      for (size_t j = 0; j < weights.size(); ++j) {
        for (int64_t e = 0; e < args.width; ++e)
          slopes[j] += gradient.get(i, e) * head.value.get(j, e);
        mean += weights[j] * slopes[j];
      }
      statistics[1] = mean;
      for (int64_t d = 0; d < args.depth; ++d) {
        Acc sum = 0;
        for (size_t j = 0; j < weights.size(); ++j)
          sum += weights[j] * (slopes[j] - mean) * head.key.get(j, d);
        result.set(i, d, sum * static_cast<Acc>(args.scale));
      }
    }
  }
}

template <typename T, typename Acc>
static void differentiateKey(const GradientArguments &a) {
  const tprt_attention_args &args = a.args.attention;
  for (int64_t number = 0; number < countHeads(args); ++number) {
    Head<T, Acc> head(args, a, number);
    Matrix<T, Acc> gradient(args, args.output, a.gradient, number);
    Matrix<T, Acc> keys(args, a.args.key_gradient, a.keyGradient, number);
    Matrix<T, Acc> values(args, a.args.value_gradient, a.valueGradient, number);
    for (int64_t j = 0; j < args.columns; ++j) {
      std::vector<Acc> key(args.depth), value(args.width);
      for (int64_t i = args.causal ? j : 0; i < args.rows; ++i) {
        const Acc *statistics = getStatistics<Acc>(a, number, i);
        Acc weight = std::exp(head.getScore(i, j) - statistics[0]), slope = 0;
        for (int64_t e = 0; e < args.width; ++e) {
          slope += gradient.get(i, e) * head.value.get(j, e);
          value[e] += weight * gradient.get(i, e);
        }
        Acc factor = weight * (slope - statistics[1]);
        for (int64_t d = 0; d < args.depth; ++d)
          key[d] += factor * head.query.get(i, d);
      }
      for (int64_t d = 0; d < args.depth; ++d)
        keys.set(j, d, key[d] * static_cast<Acc>(args.scale));
      for (int64_t e = 0; e < args.width; ++e)
        values.set(j, e, value[e]);
    }
  }
}

/// One kernel of four types.
template <typename Arguments>
static CUfunc_st
makeKernel(const std::string &name, void (*f32)(const Arguments &),
           void (*f64)(const Arguments &), void (*f16)(const Arguments &),
           void (*bf16)(const Arguments &)) {
  auto run = name.ends_with("_f32")   ? f32
             : name.ends_with("_f64") ? f64
             : name.ends_with("_f16") ? f16
                                      : bf16;
  return {name, 0, sizeof(Arguments), 0,
          [run](uint32_t, uint32_t, void *const *arguments) {
            run(*static_cast<const Arguments *>(arguments[0]));
          }};
}

CUfunc_st fake::makeAttention(const std::string &name) {
  if (name.starts_with("tprt_attention_query_gradient_"))
    return makeKernel<GradientArguments>(name, differentiateQuery<float, float>,
                                         differentiateQuery<double, double>,
                                         differentiateQuery<Half, float>,
                                         differentiateQuery<BFloat16, float>);
  if (name.starts_with("tprt_attention_key_gradient_"))
    return makeKernel<GradientArguments>(
        name, differentiateKey<float, float>, differentiateKey<double, double>,
        differentiateKey<Half, float>, differentiateKey<BFloat16, float>);
  return makeKernel<AttentionArguments>(
      name, attend<float, float>, attend<double, double>, attend<Half, float>,
      attend<BFloat16, float>);
}
