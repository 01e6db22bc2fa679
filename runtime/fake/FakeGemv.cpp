//===- FakeGemv.cpp - Kernels of few rows without a device ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The source of the runtime's own kernels, compiled for the emulator.
//
//===----------------------------------------------------------------------===//

#include "CudaOnHost.h"

#include "cuda/GemvKernels.cu"

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

template <typename T>
static bool check(const GemvArguments &a) {
  auto isAllocated = [](const void *data, int64_t count) {
    return !data || checkMemory(data, count * sizeof(T));
  };
  const tprt_gemm_args &args = a.args;
  return isAllocated(a.a, (args.m - 1) * args.a_row + args.k) &&
         isAllocated(a.b, (args.n - 1) * args.b_col + args.k) &&
         isAllocated(a.c, (args.m - 1) * args.c_row + args.n) &&
         isAllocated(a.bias, args.n) &&
         isAllocated(a.addend, (args.m - 1) * args.addend_row + args.n);
}

std::optional<CUfunc_st> fake::findGemv(const std::string &name) {
#define FIND(T, DTYPE, ROWS, COLUMNS)                                          \
  if (name == "tprt_gemv_" #DTYPE "_" #ROWS "_" #COLUMNS)                      \
    return makeKernel<GemvArguments, tprt_gemv_##DTYPE##_##ROWS##_##COLUMNS>(  \
        name, check<T>);
  TPRT_GEMV_KERNELS(FIND)
  return std::nullopt;
}
