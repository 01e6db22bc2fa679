//===- FakeKernels.cpp - What kernels do without a device -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Kernels.h"

#include "Emulator.h"

#include "tprt/Dtype.h"
#include "tprt/abi.h"

#include <algorithm>
#include <cmath>
#include <dlfcn.h>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

namespace {

// The reduction kernels of lib/cuda/ReduceKernels.cu, written a second time for
// the host, as plainly as possible.

/// The arguments of ReduceKernels.cu's kernels.
struct ReduceArguments {
  const void *operands[32];
  void *results[32];
  int64_t count;
  int32_t numOperands, numResults;
};

template <typename T, typename Acc>
void reduceElements(const std::string &reduction,
                    const ReduceArguments &arguments) {
  auto get = [&](int32_t operand, int64_t i) {
    return castElement<Acc>(
        static_cast<const T *>(arguments.operands[operand])[i]);
  };
  for (int64_t i = 0; i < arguments.count; ++i) {
    Acc acc = get(0, i);
    for (int32_t j = 1; j < arguments.numOperands; ++j) {
      Acc value = get(j, i);
      if (reduction == "max")
        acc = acc > value || acc != acc ? acc : value;
      else if (reduction == "min")
        acc = acc < value || acc != acc ? acc : value;
      else if (reduction == "product")
        acc *= value;
      else
        acc += value;
    }
    if (reduction == "avg")
      acc /= static_cast<Acc>(arguments.numOperands);
    for (int32_t j = 0; j < arguments.numResults; ++j)
      static_cast<T *>(arguments.results[j])[i] = castElement<T>(acc);
  }
}

/// tprt_reduce_REDUCTION_DTYPE.
CUfunc_st makeReduction(const std::string &name) {
  size_t split = name.rfind('_');
  std::string dtype = name.substr(split + 1);
  std::string reduction = name.substr(12, split - 12);
  auto run = [=](uint32_t, uint32_t, void *const *arguments) {
    const auto &reduce = *static_cast<const ReduceArguments *>(arguments[0]);
    size_t width = byteWidth(*parseDtype(dtype));
    for (int32_t j = 0; j < reduce.numOperands; ++j)
      if (!checkMemory(reduce.operands[j], reduce.count * width))
        return;
    for (int32_t j = 0; j < reduce.numResults; ++j)
      if (!checkMemory(reduce.results[j], reduce.count * width))
        return;
    if (dtype == "f32")
      reduceElements<float, float>(reduction, reduce);
    else if (dtype == "f64")
      reduceElements<double, double>(reduction, reduce);
    else if (dtype == "f16")
      reduceElements<Half, float>(reduction, reduce);
    else if (dtype == "bf16")
      reduceElements<BFloat16, float>(reduction, reduce);
    else if (dtype == "i64")
      reduceElements<int64_t, int64_t>(reduction, reduce);
    else if (dtype == "i32")
      reduceElements<int32_t, int32_t>(reduction, reduce);
    else if (dtype == "i16")
      reduceElements<int16_t, int32_t>(reduction, reduce);
    else if (dtype == "i8")
      reduceElements<int8_t, int32_t>(reduction, reduce);
    else if (dtype == "ui8")
      reduceElements<uint8_t, int32_t>(reduction, reduce);
    else
      reduceElements<uint8_t, uint8_t>(reduction, reduce);
  };
  return {name, 0, sizeof(ReduceArguments), 0, run};
}

} // namespace

CUfunc_st fake::makeOwn(const std::string &name) {
  return name.starts_with("tprt_reduce_") ? makeReduction(name)
                                          : makeAttention(name);
}

bool fake::findEmulated(void *handle, const std::string &name,
                        CUfunc_st &function) {
  auto kernel =
      reinterpret_cast<tp_emulated_kernel>(::dlsym(handle, name.c_str()));
  auto *sharedBytes = static_cast<const int32_t *>(
      ::dlsym(handle, (name + "_shared_bytes").c_str()));
  auto *numArguments = static_cast<const int32_t *>(
      ::dlsym(handle, (name + "_num_arguments").c_str()));
  if (!kernel || !sharedBytes || !numArguments)
    return false;
  auto shared = static_cast<uint32_t>(*sharedBytes);
  function = {name, static_cast<size_t>(*numArguments), 0, shared,
              [=](uint32_t grid, uint32_t block, void *const *arguments) {
                runEmulated(kernel, grid, block, shared, arguments);
              }};
  return true;
}
