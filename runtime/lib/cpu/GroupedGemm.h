//===- GroupedGemm.h - Products of groups of rows ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_GROUPEDGEMM_H
#define TPRT_LIB_CPU_GROUPEDGEMM_H

#include "cpu/Gemm.h"
#include "tprt/abi.h"

namespace tprt {

/// See tprt_grouped_gemm. Throws an execution error if the arguments or the
/// bounds are out of range.
TPRT_API void groupedGemm(const tprt_grouped_gemm_args &args, const void *a,
                          const void *b, const void *bounds, void *c,
                          GemmState &state);

} // namespace tprt

#endif // TPRT_LIB_CPU_GROUPEDGEMM_H
