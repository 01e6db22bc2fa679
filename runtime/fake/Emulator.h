//===- Emulator.h - Kernels that are code for the host ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fake driver's cubins are shared objects for the host, of architecture 0,
// as tp-compile makes them with --target=cuda:emulated. For each kernel such an
// object exports
//
//   void NAME(const tp_emulated_thread *self, void *const *arguments);
//   const int32_t NAME_shared_bytes;   // static shared memory of a block
//   const int32_t NAME_num_arguments;  // of 8 bytes each
//   const int32_t NAME_max_threads;    // of a block
//
// and it calls the two functions below. Threads of a block are fibers, which
// switch when they wait for each other; blocks run one after the other.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_FAKE_EMULATOR_H
#define TPRT_FAKE_EMULATOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tp_emulated_thread {
  uint32_t thread, block, block_size, grid_size;
  void *shared; /* aligned to 64 */
} tp_emulated_thread;

typedef void (*tp_emulated_kernel)(const tp_emulated_thread *self,
                                   void *const *arguments);

/* __syncthreads(). */
__attribute__((visibility("default"))) void
tp_emulated_barrier(const tp_emulated_thread *self);

/* __shfl_xor_sync() of a whole warp. */
__attribute__((visibility("default"))) uint32_t tp_emulated_shuffle_xor(
    const tp_emulated_thread *self, uint32_t value, uint32_t mask);

#ifdef __cplusplus
}

/// Runs all blocks. Throws std::runtime_error if threads of a block wait for
/// each other at different points.
__attribute__((visibility("default"))) void
runEmulated(tp_emulated_kernel kernel, uint32_t gridSize, uint32_t blockSize,
            uint32_t sharedBytes, void *const *arguments);
#endif

#endif /* TPRT_FAKE_EMULATOR_H */
