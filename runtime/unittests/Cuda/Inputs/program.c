/* A program for the fake device as tp-compile would write it, by hand: one
   entry point per case. Its manifest is ../../Inputs/toy.json. */

#include "tprt/abi.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define ENTRY(NAME)                                                            \
  EXPORT int32_t NAME(tprt_rank *ctx, int64_t rank, const void *const *inputs, \
                      void *const *parameters, void *const *outputs,           \
                      void *arena)
#define CHECK(CALL)                                                            \
  do {                                                                         \
    int32_t status = CALL;                                                     \
    if (status)                                                                \
      return status;                                                           \
  } while (0)

__asm__(".pushsection .rodata\n"
        ".balign 8\n"
        "toy_kernels: .incbin \"" TOY_KERNELS "\"\n"
        "toy_kernels_end:\n"
        ".popsection\n");
extern const char toy_kernels[] __attribute__((visibility("hidden")));

enum { SCALE, CHECK_INDEX, SUM, NUM_KERNELS };

static const tprt_device_image images[] = {{0, 0, toy_kernels, 1}};
static const char *const kernels[] = {"scale", "check", "sum"};
static const char *const sites[] = {"a: gather", "embeddings.word: embedding"};

EXPORT const tprt_device_code tprt_device_code_value;
EXPORT const tprt_device_code tprt_device_code_value = {
    1, images, NUM_KERNELS, kernels, 2, sites};
/* The type and the constant have one name. */
__asm__(".globl tprt_device_code\n.set tprt_device_code, "
        "tprt_device_code_value\n");

/* Another program's. */
static const char *const other_kernels[] = {"check", "scale"};
static const char *const other_sites[] = {"b: gather"};
EXPORT const tprt_device_code other_device_code;
EXPORT const tprt_device_code other_device_code = {
    1, images, 2, other_kernels, 1, other_sites};

static const tprt_launch_args one_block = {{1, 1, 1}, {32, 1, 1}, 0};

static const tprt_gemm_args product = {TPRT_F32, 0, 1, 1, 2, 3, 2, 2, 1,
                                       0,        0, 3, 1, 0, 0, 3, 0, 0};

static int32_t scale(tprt_rank *ctx, void *data, int64_t count,
                     int64_t factor) {
  void *arguments[] = {&data, &count, &factor};
  int32_t status = tprt_launch(ctx, SCALE, &one_block, arguments);
  data = 0; /* the values count as they were */
  count = factor = -1;
  return status;
}

/* y = 2 * (x * w + b): as the toy of the host, and a kernel. */
ENTRY(tpx_main) {
  tprt_mark(ctx, 0);
  CHECK(tprt_gemm(ctx, &product, inputs[0], parameters[0], arena,
                  rank == 0 ? parameters[1] : NULL, NULL, NULL));
  CHECK(scale(ctx, arena, 6, 2));
  return tprt_collective(ctx, 0, arena, outputs[0]);
}

/* For an x and y of four rows, with the kernels of other_device_code. */
ENTRY(four_rows) {
  tprt_gemm_args args = product;
  int64_t count = 12, factor = 2;
  void *arguments[] = {&arena, &count, &factor};
  args.m = 4;
  tprt_mark(ctx, 0);
  CHECK(tprt_gemm(ctx, &args, inputs[0], parameters[0], arena,
                  rank == 0 ? parameters[1] : NULL, NULL, NULL));
  CHECK(tprt_launch(ctx, 1, &one_block, arguments));
  return tprt_collective(ctx, 0, arena, outputs[0]);
}

/* The same as tpx_main, where the sum runs beside a kernel that needs neither operand nor
   result. What it reads was written right before it, and is overwritten right
   behind the wait; what it writes is scaled there. */
ENTRY(started) {
  uint32_t bits;
  float one = 1;
  void *beside = (char *)arena + 64;
  memcpy(&bits, &one, 4);
  tprt_mark(ctx, 0);
  CHECK(tprt_gemm(ctx, &product, inputs[0], parameters[0], arena,
                  rank == 0 ? parameters[1] : NULL, NULL, NULL));
  CHECK(tprt_collective_start(ctx, 0, arena, outputs[0]));
  tprt_mark(ctx, 0);
  CHECK(tprt_fill(ctx, beside, bits, 4, 6));
  CHECK(tprt_collective_start(ctx, 1, beside, beside));
  CHECK(tprt_collective_wait(ctx, 0));
  CHECK(tprt_fill(ctx, arena, 0xEE, 1, 24));
  CHECK(scale(ctx, outputs[0], 6, 2));
  return tprt_collective_wait(ctx, 1);
}

/* y = x * w + b, whose operand is elsewhere in rank 1's arena. */
ENTRY(shifted) {
  char *at = (char *)arena + (rank == 1 ? 32 : 0);
  CHECK(tprt_gemm(ctx, &product, inputs[0], parameters[0], at,
                  rank == 0 ? parameters[1] : NULL, NULL, NULL));
  return tprt_collective(ctx, 0, at, outputs[0]);
}

/* y[i] = 7 by copies and fills of all widths. */
ENTRY(moves) {
  uint32_t bits;
  float seven = 7;
  (void)rank, (void)inputs, (void)parameters;
  memcpy(&bits, &seven, 4);
  CHECK(tprt_fill(ctx, arena, 0xEE, 1, 64));
  CHECK(tprt_fill(ctx, arena, bits, 4, 1));
  CHECK(tprt_fill(ctx, (char *)arena + 4, bits >> 16 << 16 & 0xffff, 2, 1));
  CHECK(tprt_fill(ctx, (char *)arena + 6, bits >> 16, 2, 1));
  CHECK(tprt_fill(ctx, (char *)arena + 8, (uint64_t)bits << 32 | 1, 8, 2));
  CHECK(tprt_fill(ctx, (char *)arena + 8, bits, 4, 1));
  CHECK(tprt_fill(ctx, (char *)arena + 16, bits, 4, 1));
  return tprt_copy(ctx, outputs[0], arena, 24);
}

/* A kernel gets an address of the host's memory. */
ENTRY(host_address) {
  static float constant[6];
  (void)rank, (void)inputs, (void)parameters, (void)outputs, (void)arena;
  return scale(ctx, constant, 6, 2);
}

/* y[i] = the sum of 64 numbers, by shuffles, a barrier and shared memory. */
ENTRY(sums) {
  static const tprt_launch_args six_blocks = {{6, 1, 1}, {64, 1, 1}, 0};
  float one = 1, two = 2;
  uint32_t ones, twos;
  void *arguments[] = {&arena, (void *)&outputs[0]};
  (void)rank, (void)inputs, (void)parameters;
  memcpy(&ones, &one, 4);
  memcpy(&twos, &two, 4);
  CHECK(tprt_fill(ctx, arena, ones, 4, 6 * 64));
  CHECK(tprt_fill(ctx, arena, twos, 4, 64 + 1));
  return tprt_launch(ctx, SUM, &six_blocks, arguments);
}

ENTRY(fail_width) {
  (void)rank, (void)inputs, (void)parameters, (void)outputs;
  return tprt_fill(ctx, arena, 0, 3, 1);
}

ENTRY(fail_index) {
  void *record = tprt_error_record(ctx);
  int64_t index = 30522, bound = rank == 1 ? 30522 : 30523;
  void *arguments[] = {&record, &index, &bound};
  (void)inputs, (void)parameters;
  CHECK(tprt_launch(ctx, CHECK_INDEX, &one_block, arguments));
  return tprt_collective(ctx, 0, arena, outputs[0]);
}

ENTRY(fail_kernel) {
  void *arguments[] = {&arena};
  (void)rank, (void)inputs, (void)parameters, (void)outputs;
  return tprt_launch(ctx, NUM_KERNELS, &one_block, arguments);
}
