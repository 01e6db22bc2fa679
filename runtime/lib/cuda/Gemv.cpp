//===- Gemv.cpp - Products of few rows on a CUDA device -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/Gemv.h"

#include "cuda/GemvArguments.h"
#include "support/Division.h"
#include "tprt/Dtype.h"

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt_kernels;

bool cuda::multiplyRows(Kernels &kernels, const tprt_gemm_args &args,
                        const GemmOperands &operands, CUstream stream) {
  constexpr int64_t vectorBytes = 16;
  if (args.m > maxGemvRows || args.batch0 != 1 || args.batch1 != 1 ||
      operands.factor || args.dtype == TPRT_F64)
    return false;
  auto dtype = static_cast<Dtype>(args.dtype);
  int64_t size = vectorBytes / byteWidth(dtype);
  auto isAligned = [](const void *data) {
    return reinterpret_cast<uintptr_t>(data) % vectorBytes == 0;
  };
  if (args.k % size != 0 || args.a_col != 1 || args.b_row != 1 ||
      (args.m > 1 && args.a_row % size != 0) ||
      (args.n > 1 && args.b_col % size != 0) || !isAligned(operands.a) ||
      !isAligned(operands.b))
    return false;
  // Two vectors in flight for each thread and column, if there are so many.
  GemvArguments arguments = {args,       operands.a,    operands.b,
                             operands.c, operands.bias, operands.addend,
                             /*split=*/1};
  while (arguments.split < gemvWarps &&
         args.k >= arguments.split * 2 * 2 * 32 * size)
    arguments.split *= 2;
  int64_t rows = 1;
  while (rows < args.m)
    rows *= 2;
  // Several columns share what is read of A, if enough blocks are left.
  int64_t columns = rows == maxGemvRows ? 2 : 4;
  auto countBlocks = [&] {
    return divideCeil(args.n, columns * gemvWarps / arguments.split);
  };
  constexpr int64_t blocksByProcessor = 2;
  if (countBlocks() <
      blocksByProcessor * kernels.getContext().getNumProcessors())
    columns = 1;
  kernels.launch(KernelFile::Gemv,
                 "tprt_gemv_" + std::string(toString(dtype)) + "_" +
                     std::to_string(rows) + "_" + std::to_string(columns),
                 {countBlocks(), gemvThreads}, arguments, stream);
  return true;
}
