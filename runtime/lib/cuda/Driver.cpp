//===- Driver.cpp - The CUDA driver ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/Driver.h"

using namespace tprt;
using namespace tprt::cuda;

static const LibraryInfo info = {
    "the CUDA driver", {"libcuda.so.1"}, {12, 0} /* 525.60 */};

Driver::Driver() {
  Library library(info);
#define TPRT_FUNCTION(name, symbol, parameters) library.find(#symbol, name);
  TPRT_CUDA_DRIVER_FUNCTIONS(TPRT_FUNCTION)
#undef TPRT_FUNCTION
  int version = 0;
  if (cuDriverGetVersion(&version) == CUDA_SUCCESS)
    library.checkVersion({version / 1000, version % 1000 / 10});
  CUresult result = cuInit(0);
  int count = 0;
  if (result == CUDA_SUCCESS)
    result = cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS)
    throw inputError("the CUDA driver finds no device: " + describe(result));
}

const Driver &Driver::get() {
  static const Driver driver;
  return driver;
}

std::string Driver::describe(CUresult result) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  if (!name || !text)
    return "error " + std::to_string(result);
  return std::string(text) + " (" + name + ")";
}

void Driver::check(CUresult result, const char *function) const {
  if (result != CUDA_SUCCESS)
    throw executionError(std::string(function) + ": " + describe(result));
}
