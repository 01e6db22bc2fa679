//===- FakeReduce.cpp - Reduction's kernels without a device --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The source of the runtime's own kernels, compiled for the emulator.
//
//===----------------------------------------------------------------------===//

#include "CudaOnHost.h"

#include "cuda/ReduceKernels.cu"

#include <algorithm>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

template <typename T>
static bool check(const ReduceArguments &a) {
  auto isAllocated = [&](const void *data) {
    return checkMemory(data, a.count * sizeof(T));
  };
  return std::all_of(a.operands, a.operands + a.numOperands, isAllocated) &&
         std::all_of(a.results, a.results + a.numResults, isAllocated);
}

std::optional<CUfunc_st> fake::findReduction(const std::string &name) {
#define FIND(REDUCTION, NAME, T, DTYPE)                                        \
  if (name == "tprt_reduce_" #NAME "_" #DTYPE)                                 \
    return makeKernel<ReduceArguments, tprt_reduce_##NAME##_##DTYPE>(          \
        name, check<T>);
  TPRT_REDUCTIONS(FIND)
  return std::nullopt;
}
