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
  if (!isAllocated(a.a, int64_t(a.m - 1) * a.aRow + a.k))
    return false;
  for (const GemvPart &part : a.parts)
    if (part.b &&
        !(isAllocated(part.b, int64_t(part.n - 1) * part.bColumn + a.k) &&
          isAllocated(part.c, (a.m - 1) * part.cRow + part.n) &&
          isAllocated(part.bias, part.n) &&
          isAllocated(part.addend, (a.m - 1) * part.addendRow + part.n) &&
          isAllocated(part.factor, (a.m - 1) * part.factorRow + part.n)))
      return false;
  return true;
}

std::optional<CUfunc_st> fake::findGemv(const std::string &name) {
#define FIND(T, DTYPE, ROWS, COLUMNS)                                          \
  if (name == "tprt_gemv_" #DTYPE "_" #ROWS "_" #COLUMNS)                      \
    return makeKernel<GemvArguments, tprt_gemv_##DTYPE##_##ROWS##_##COLUMNS>(  \
        name, check<T>);
  TPRT_GEMV_KERNELS(FIND)
  return std::nullopt;
}
