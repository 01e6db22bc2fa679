/* A program as tp-compile would write it, by hand: one entry point per case.
   The manifest of tpx_main is toy.json. */

#include "tprt/abi.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define ENTRY(NAME)                                                            \
  EXPORT int32_t NAME(tprt_rank *ctx, int64_t rank, const void *const *inputs, \
                      void *const *parameters, void *const *outputs,           \
                      void *arena)

__attribute__((constructor)) static void note_loading(void) {
  setenv("TOY_IS_LOADED", "1", 1);
}

/* y = x * w + b with w split by rows: x is 2x4 split along dimension 1, w is
   4x3 split along 0, the partial products are summed. b joins on rank 0. */
static const tprt_gemm_args product = {TPRT_F32, 0, 1, 1, 2, 3, 2, 2, 1,
                                       0,        0, 3, 1, 0, 0, 3, 0, 0};

ENTRY(tpx_main) {
  tprt_mark(ctx, 0);
  int32_t status = tprt_gemm(ctx, &product, inputs[0], parameters[0], arena,
                             rank == 0 ? parameters[1] : NULL, NULL, NULL);
  if (status)
    return status;
  return tprt_collective(ctx, 0, arena, outputs[0]);
}

/* The same for an x and y of four rows. */
ENTRY(four_rows) {
  tprt_gemm_args args = product;
  args.m = 4;
  tprt_mark(ctx, 0);
  int32_t status = tprt_gemm(ctx, &args, inputs[0], parameters[0], arena,
                             rank == 0 ? parameters[1] : NULL, NULL, NULL);
  if (status)
    return status;
  return tprt_collective(ctx, 0, arena, outputs[0]);
}

ENTRY(fail_index) {
  int32_t status = tprt_collective(ctx, 0, arena, outputs[0]);
  if (status)
    return status;
  if (rank == 1)
    return tprt_index_error(ctx, "embeddings.word: embedding", 30522, 30522);
  return tprt_collective(ctx, 0, arena, outputs[0]);
}

ENTRY(fail_status) { return rank == 0 ? 77 : 0; }

ENTRY(fail_unknown_collective) {
  return tprt_collective(ctx, 99, arena, outputs[0]);
}

ENTRY(fail_order) {
  return tprt_collective(ctx, rank == 0 ? 0 : 1, arena, outputs[0]);
}

ENTRY(fail_early_end) {
  return rank == 0 ? tprt_collective(ctx, 0, arena, outputs[0]) : 0;
}

ENTRY(fail_hang) {
  if (rank == 1)
    usleep(4000000); // longer than a busy machine delays the other rank
  return tprt_collective(ctx, 0, arena, outputs[0]);
}

ENTRY(fail_gemm) {
  tprt_gemm_args args = product;
  args.dtype = TPRT_I32;
  return tprt_gemm(ctx, &args, inputs[0], parameters[0], arena, NULL, NULL,
                   NULL);
}

/* The same as tpx_main, beside other work. */
ENTRY(started) {
  float other[2] = {1, 2};
  tprt_mark(ctx, 0);
  int32_t status = tprt_gemm(ctx, &product, inputs[0], parameters[0], arena,
                             rank == 0 ? parameters[1] : NULL, NULL, NULL);
  if (status)
    return status;
  status = tprt_collective_start(ctx, 0, arena, outputs[0]);
  if (status)
    return status;
  tprt_mark(ctx, 0);
  other[0] += other[1];
  status = tprt_collective_wait(ctx, 0);
  memset(arena, 0xEE, 24); /* free from here on */
  return status;
}

ENTRY(fail_started_twice) {
  int32_t status = tprt_collective_start(ctx, 0, arena, outputs[0]);
  return status ? status : tprt_collective_start(ctx, 0, arena, outputs[0]);
}

ENTRY(fail_never_started) { return tprt_collective_wait(ctx, 0); }

ENTRY(fail_never_waited) {
  return tprt_collective_start(ctx, 0, arena, outputs[0]);
}

ENTRY(fail_unlisted_start) {
  return tprt_collective_start(ctx, 1, arena, outputs[0]);
}

ENTRY(fail_start_in_place) {
  return tprt_collective_start(ctx, 2, arena, arena);
}
