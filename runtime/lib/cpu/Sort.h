//===- Sort.h - Sorting along a dimension -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_SORT_H
#define TPRT_LIB_CPU_SORT_H

#include "tprt/abi.h"

namespace tprt {

/// See tprt_sort. Uses at most `numThreads` threads. Throws an execution error
/// if the arguments are out of range.
TPRT_API void sort(const tprt_sort_args &args, const void *input, void *values,
                   int64_t *indices, int64_t numThreads);

} // namespace tprt

#endif // TPRT_LIB_CPU_SORT_H
