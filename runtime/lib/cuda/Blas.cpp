//===- Blas.cpp - cuBLASLt ------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/Blas.h"

using namespace tprt;
using namespace tprt::cuda;

Blas::Blas() {
  Library library(
      {"cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}, {12, 0}});
#define TPRT_FUNCTION(name, result, parameters) library.find(#name, name);
  TPRT_CUBLASLT_FUNCTIONS(TPRT_FUNCTION)
#undef TPRT_FUNCTION
  // 120803 is 12.8.3; this is the same before and after version 13.
  size_t version = cublasLtGetVersion();
  library.checkVersion({static_cast<int32_t>(version / 10000),
                        static_cast<int32_t>(version % 10000 / 100)});
}

const Blas &Blas::get() {
  static const Blas blas;
  return blas;
}

std::string Blas::getVersion() const {
  size_t version = cublasLtGetVersion();
  return std::to_string(version / 10000) + "." +
         std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

void Blas::check(cublasStatus_t status, const char *function) const {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw executionError(std::string(function) + ": " +
                         cublasLtGetStatusName(status));
}
