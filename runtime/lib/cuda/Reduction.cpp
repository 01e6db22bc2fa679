//===- Reduction.cpp - Elementwise reduction on a CUDA device -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/Reduction.h"

#include "cuda/ReduceArguments.h"
#include "support/Division.h"

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt_kernels;

void cuda::reduce(Kernels &kernels, Reduction reduction, Dtype dtype,
                  const std::vector<const std::byte *> &operands,
                  const std::vector<std::byte *> &results, int64_t count,
                  CUstream stream) {
  if (operands.size() > maxReduced)
    throw executionError(
        "reductions among " + std::to_string(operands.size()) +
        " ranks of one CUDA device aren't supported, the limit is " +
        std::to_string(maxReduced));
  ReduceArguments arguments = {};
  std::copy(operands.begin(), operands.end(), arguments.operands);
  std::copy(results.begin(), results.end(), arguments.results);
  arguments.count = count;
  arguments.numOperands = operands.size();
  arguments.numResults = results.size();
  constexpr int64_t vectorBytes = 16;
  auto isAligned = [](const std::byte *data) {
    return reinterpret_cast<uintptr_t>(data) % vectorBytes == 0;
  };
  int64_t size = 1; // elements that a thread handles at once
  if (std::all_of(operands.begin(), operands.end(), isAligned) &&
      std::all_of(results.begin(), results.end(), isAligned)) {
    int64_t ofVector = vectorBytes / byteWidth(dtype);
    arguments.numVectors = count / ofVector;
    size = 2 * ofVector;
  }
  constexpr int64_t maxBlocks = 4096;
  int64_t numBlocks =
      std::min(divideCeil(divideCeil(count, size), reduceThreads), maxBlocks);
  kernels.launch(KernelFile::Reduce,
                 "tprt_reduce_" + std::string(toString(reduction)) + "_" +
                     std::string(toString(dtype)),
                 {numBlocks, reduceThreads}, arguments, stream);
}
