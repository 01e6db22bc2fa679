/* Kernels for the fake device. */

#include "Emulator.h"

#define KERNEL(NAME, NUM_ARGUMENTS, SHARED_BYTES, MAX_THREADS)                 \
  EXPORT const int32_t NAME##_num_arguments = NUM_ARGUMENTS;                   \
  EXPORT const int32_t NAME##_shared_bytes = SHARED_BYTES;                     \
  EXPORT const int32_t NAME##_max_threads = MAX_THREADS;                       \
  EXPORT void NAME(const tp_emulated_thread *self, void *const *arguments)
#define EXPORT __attribute__((visibility("default")))
#define ARGUMENT(TYPE, INDEX) (*(TYPE *)arguments[INDEX])

/* data[i] *= factor */
KERNEL(scale, 3, 0, 256) {
  float *data = ARGUMENT(float *, 0);
  int64_t count = ARGUMENT(int64_t, 1), factor = ARGUMENT(int64_t, 2);
  for (int64_t i = self->block * self->block_size + self->thread; i < count;
       i += self->grid_size * self->block_size)
    data[i] *= factor;
}

struct error {
  int32_t site, pad;
  int64_t index, bound;
};

/* Reports `index` unless it is less than `bound`. */
KERNEL(check, 3, 0, 256) {
  struct error *record = ARGUMENT(struct error *, 0);
  int64_t index = ARGUMENT(int64_t, 1), bound = ARGUMENT(int64_t, 2);
  int32_t none = -1;
  if (index < bound || self->thread != 0)
    return;
  if (__atomic_compare_exchange_n(&record->site, &none, 1, 0, __ATOMIC_RELAXED,
                                  __ATOMIC_RELAXED)) {
    record->index = index;
    record->bound = bound;
  }
}

/* Each block's sum of 64 numbers: by shuffles within warps, then by shared
   memory. */
KERNEL(sum, 2, 8, 64) {
  const float *data = ARGUMENT(const float *, 0);
  float *result = ARGUMENT(float *, 1);
  float *partial = self->shared;
  union {
    float value;
    uint32_t bits;
  } word = {data[self->block * self->block_size + self->thread]}, other;
  for (uint32_t mask = 16; mask > 0; mask /= 2) {
    other.bits = tp_emulated_shuffle_xor(self, word.bits, mask);
    word.value += other.value;
  }
  if (self->thread % 32 == 0)
    partial[self->thread / 32] = word.value;
  tp_emulated_barrier(self);
  if (self->thread == 0)
    result[self->block] = partial[0] + partial[1];
}
