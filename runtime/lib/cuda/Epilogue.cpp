//===- Epilogue.cpp - Epilogues that cuBLASLt doesn't have ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/Epilogue.h"

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt_kernels;

void cuda::applyEpilogue(Kernels &kernels, const EpilogueArguments &arguments,
                         Dtype dtype, CUstream stream) {
  constexpr int64_t maxBlocks = 4096;
  kernels.launch(KernelFile::Epilogue,
                 "tprt_epilogue_" + std::string(toString(dtype)),
                 {std::min(arguments.batches * arguments.rows, maxBlocks),
                  epilogueThreads},
                 arguments, stream);
}
