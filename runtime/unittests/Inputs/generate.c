/* Programs that generate, as tp-compile would write them, by hand: a causal
   model of 13 tokens with a cache of 14 places. The logits of a token follow
   from a weighted sum of the tokens before it, by their distances. The
   vocabulary is split over the ranks. The manifests are made by
   GenerateProgram.h. */

#include "tprt/abi.h"

#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { Vocabulary = 13, Places = 14 };

enum { Cache, Calls, Scale };               /* parameters */
enum { Ids, Positions, PositionIds, Mask }; /* inputs */

/* With splitsBatch, each rank has all logits of one sequence. */
static int32_t run(int64_t ranks, int64_t batch, int64_t length, int isMasked,
                   int onlyLast, int splitsBatch, tprt_rank *ctx, int64_t rank,
                   const void *const *inputs, void *const *parameters,
                   void *const *outputs) {
  const int64_t *ids = inputs[Ids], *positions = inputs[Positions];
  const int64_t *places = isMasked ? inputs[PositionIds] : 0;
  const int64_t *mask = isMasked ? inputs[Mask] : 0;
  float *cache = parameters[Cache], *logits = outputs[0];
  const float *scale = parameters[Scale];
  int64_t *calls = parameters[Calls];
  ++calls[length == 1 ? 0 : 1];
  int64_t chunk = splitsBatch ? Vocabulary : (Vocabulary + ranks - 1) / ranks;
  int64_t begin = splitsBatch ? 0 : rank * chunk;
  int64_t end = begin + chunk < Vocabulary ? begin + chunk : Vocabulary;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < length; ++i) {
      int64_t at = positions[i], id = ids[b * length + i];
      if (at < 0 || at >= Places)
        return tprt_index_error(ctx, "cache: scatter", at, Places);
      if (id < 0 || id >= Vocabulary)
        return tprt_index_error(ctx, "embed: embedding", id, Vocabulary);
      cache[b * Places + at] =
          (id + 1) * (places ? 1 + places[b * length + i] % 3 : 1);
    }
  for (int64_t b = splitsBatch ? rank : 0; b < (splitsBatch ? rank + 1 : batch);
       ++b)
    for (int64_t i = onlyLast ? length - 1 : 0; i < length; ++i) {
      int64_t sum = 0;
      for (int64_t j = 0; j <= positions[i]; ++j)
        if (!mask || mask[b * Places + j])
          sum += cache[b * Places + j] * (1 + (positions[i] - j) % 5);
      for (int64_t v = begin; v < end; ++v)
        *logits++ = (v * 7 + sum) % 23 * *scale;
    }
  return TPRT_OK;
}

#define ENTRY(NAME, RANKS, BATCH, LENGTH, IS_MASKED, ONLY_LAST, SPLITS_BATCH)  \
  EXPORT int32_t NAME(tprt_rank *ctx, int64_t rank, const void *const *inputs, \
                      void *const *parameters, void *const *outputs,           \
                      void *arena) {                                           \
    (void)arena;                                                               \
    return run(RANKS, BATCH, LENGTH, IS_MASKED, ONLY_LAST, SPLITS_BATCH, ctx,  \
               rank, inputs, parameters, outputs);                             \
  }

ENTRY(one_1, 1, 1, 1, 0, 0, 0)
ENTRY(four_1, 1, 1, 4, 0, 0, 0)
ENTRY(last_1, 1, 1, 4, 0, 1, 0)
ENTRY(one_2, 2, 1, 1, 0, 0, 0)
ENTRY(four_2, 2, 1, 4, 0, 0, 0)
ENTRY(last_2, 2, 1, 4, 0, 1, 0)
/* Takes a while. */
EXPORT int32_t slow_1(tprt_rank *ctx, int64_t rank, const void *const *inputs,
                      void *const *parameters, void *const *outputs,
                      void *arena) {
  usleep(100000);
  return one_1(ctx, rank, inputs, parameters, outputs, arena);
}

ENTRY(masked_one_1, 1, 2, 1, 1, 0, 0)
ENTRY(masked_four_1, 1, 2, 4, 1, 0, 0)
ENTRY(masked_one_2, 2, 2, 1, 1, 0, 0)
ENTRY(masked_four_2, 2, 2, 4, 1, 0, 0)
ENTRY(split_one_2, 2, 2, 1, 1, 0, 1)
ENTRY(split_four_2, 2, 2, 4, 1, 0, 1)
