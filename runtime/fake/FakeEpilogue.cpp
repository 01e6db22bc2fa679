//===- FakeEpilogue.cpp - Epilogues' kernels without a device -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The source of the runtime's own kernels, compiled for the emulator.
//
//===----------------------------------------------------------------------===//

#include "CudaOnHost.h"

#include "cuda/EpilogueKernels.cu"

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

template <typename T>
static bool check(const EpilogueArguments &a) {
  auto isAllocated = [&](const void *data, int64_t batch, int64_t row) {
    int64_t last = (a.batches - 1) * batch + (a.rows - 1) * row + a.columns;
    return !data || checkMemory(data, last * sizeof(T));
  };
  return isAllocated(a.c, a.batchStride, a.rowStride) &&
         isAllocated(a.bias, 0, 0) &&
         isAllocated(a.addend, a.addendBatchStride, a.addendRowStride) &&
         isAllocated(a.factor, a.factorBatchStride, a.factorRowStride);
}

std::optional<CUfunc_st> fake::findEpilogue(const std::string &name) {
#define FIND(T, DTYPE)                                                         \
  if (name == "tprt_epilogue_" #DTYPE)                                         \
    return makeKernel<EpilogueArguments, tprt_epilogue_##DTYPE>(name, check<T>);
  TPRT_EPILOGUES(FIND)
  return std::nullopt;
}
