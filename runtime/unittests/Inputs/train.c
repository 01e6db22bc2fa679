/* A training program as tp-compile would write it, by hand: linear regression
   with momentum, y = scale * (x · w) + b over 8 examples of 7 features. The
   batch, w and its momentum are split over the ranks in uneven blocks: w is
   gathered, gradients and the loss are summed, each rank updates its own block.
   The manifests are train.2.json and train.3.json, by number of ranks. */

#include "tprt/abi.h"

#include <math.h>

#define EXPORT __attribute__((visibility("default")))

enum { numExamples = 8, numFeatures = 7 };

enum { W, B, Scale, MomentumW, MomentumB, Step }; /* parameters */
enum { Loss, LearningRate, GradNorm };            /* outputs */

/* Where rank's block of n elements begins, cut for `ranks` ranks. */
static int64_t begin(int64_t n, int64_t ranks, int64_t rank) {
  int64_t at = (n + ranks - 1) / ranks * rank;
  return at < n ? at : n;
}

static int32_t train(int64_t ranks, tprt_rank *ctx, int64_t rank,
                     const void *const *inputs, void *const *parameters,
                     void *const *outputs, void *arena) {
  const float *x = inputs[0], *target = inputs[1];
  const float *scale = parameters[Scale];
  float *b = parameters[B], *momentumB = parameters[MomentumB];
  float *w = parameters[W], *momentumW = parameters[MomentumW];
  int64_t *step = parameters[Step];

  float *whole = arena, *sums = whole + numFeatures + 1;
  int32_t status = tprt_collective(ctx, 0, w, whole);
  if (status)
    return status;
  for (int i = 0; i < numFeatures + 2; ++i)
    sums[i] = 0; /* gradients of w and b, loss */
  int64_t numLocal =
      begin(numExamples, ranks, rank + 1) - begin(numExamples, ranks, rank);
  for (int64_t e = 0; e < numLocal; ++e) {
    float y = 0;
    for (int f = 0; f < numFeatures; ++f)
      y += x[e * numFeatures + f] * whole[f];
    float error = *scale * y + *b - target[e];
    for (int f = 0; f < numFeatures; ++f)
      sums[f] += 2 * error * *scale * x[e * numFeatures + f] / numExamples;
    sums[numFeatures] += 2 * error / numExamples;
    sums[numFeatures + 1] += error * error / numExamples;
  }
  status = tprt_collective(ctx, 1, sums, sums);
  if (status)
    return status;

  float squares = 0, rate = 0.05f / (1 + 0.01f * *step);
  for (int i = 0; i < numFeatures + 1; ++i)
    squares += sums[i] * sums[i];
  int64_t first = begin(numFeatures, ranks, rank);
  int64_t size = begin(numFeatures, ranks, rank + 1) - first;
  for (int64_t i = 0; i < size; ++i) {
    momentumW[i] = 0.9f * momentumW[i] + sums[first + i];
    w[i] -= rate * momentumW[i];
  }
  *momentumB = 0.9f * *momentumB + sums[numFeatures];
  *b -= rate * *momentumB;
  ++*step;
  *(float *)outputs[Loss] = sums[numFeatures + 1];
  *(float *)outputs[LearningRate] = rate;
  *(float *)outputs[GradNorm] = sqrtf(squares);
  return TPRT_OK;
}

#define ENTRY(NAME)                                                            \
  EXPORT int32_t NAME(tprt_rank *ctx, int64_t rank, const void *const *inputs, \
                      void *const *parameters, void *const *outputs,           \
                      void *arena)

ENTRY(train_2) {
  return train(2, ctx, rank, inputs, parameters, outputs, arena);
}
ENTRY(train_3) {
  return train(3, ctx, rank, inputs, parameters, outputs, arena);
}

/* One table of 16 numbers that learns each token's mean successor; 4 windows of
   3 tokens, the batch split over 2 ranks. Manifest: tokens.json. */
ENTRY(tokens) {
  enum { numLocal = 6, numTokens = 16 };
  const int64_t *ids = inputs[0], *target = inputs[1];
  float *table = parameters[0], *sums = arena;
  for (int i = 0; i < numTokens + 1; ++i)
    sums[i] = 0; /* gradients, loss */
  for (int i = 0; i < numLocal; ++i) {
    if (ids[i] < 0 || ids[i] >= numTokens)
      return tprt_index_error(ctx, "table: embedding", ids[i], numTokens);
    float error = table[ids[i]] - target[i];
    sums[ids[i]] += error;
    sums[numTokens] += error * error;
  }
  int32_t status = tprt_collective(ctx, 0, sums, sums);
  if (status)
    return status;
  for (int i = 0; i < numTokens; ++i)
    table[i] -= 0.125f * sums[i];
  *(float *)outputs[0] = sums[numTokens];
  return TPRT_OK;
}
