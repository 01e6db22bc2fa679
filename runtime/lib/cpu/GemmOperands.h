//===- GemmOperands.h - Operands of tprt_gemm -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_GEMMOPERANDS_H
#define TPRT_LIB_CPU_GEMMOPERANDS_H

namespace tprt {

/// The pointers that tprt_gemm takes.
struct GemmOperands {
  const void *a, *b;
  void *c;
  const void *bias = nullptr, *addend = nullptr, *factor = nullptr;
};

} // namespace tprt

#endif // TPRT_LIB_CPU_GEMMOPERANDS_H
