//===- OwnKernels.cpp - The runtime's own kernels for CUDA devices --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/OwnKernels.h"

using namespace tprt;
using namespace tprt::cuda;

// Embeds a file's bytes and a NUL, by the assembler.
#define TPRT_EMBED(NAME, FILE)                                                 \
  extern "C" const char NAME[], NAME##_end[];                                  \
  asm(".pushsection .rodata\n"                                                 \
      ".balign 8\n"                                                            \
      ".hidden " #NAME "\n"                                                    \
      ".hidden " #NAME "_end\n"                                                \
      ".global " #NAME "\n"                                                    \
      ".global " #NAME "_end\n" #NAME ": .incbin \"" FILE "\"\n"               \
      ".byte 0\n" #NAME "_end:\n"                                              \
      ".popsection\n")
TPRT_EMBED(tprt_reduce_ptx, TPRT_REDUCE_PTX);
TPRT_EMBED(tprt_epilogue_ptx, TPRT_EPILOGUE_PTX);
TPRT_EMBED(tprt_attention_ptx, TPRT_ATTENTION_PTX);
TPRT_EMBED(tprt_attentiongradient_ptx, TPRT_ATTENTIONGRADIENT_PTX);

CUfunction Kernels::get(Loaded &loaded, const char *ptx, const char *end,
                        const std::string &name) {
  std::call_once(loaded.flag, [&] {
    tprt_device_image image = {/*arch=*/80, /*is_ptx=*/1, ptx,
                               static_cast<uint64_t>(end - ptx)};
    loaded.module.emplace(context,
                          std::vector<const tprt_device_image *>{&image});
  });
  return loaded.module->getFunction(name.c_str());
}

void Kernels::reduce(Reduction reduction, Dtype dtype,
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
  void *parameters[] = {&arguments};
  constexpr int64_t blockSize = 256, maxBlocks = 4096;
  unsigned numBlocks = std::min((count + blockSize - 1) / blockSize, maxBlocks);
  CUfunction kernel = get(reductions, tprt_reduce_ptx, tprt_reduce_ptx_end,
                          "tprt_reduce_" + std::string(toString(reduction)) +
                              "_" + std::string(toString(dtype)));
  TPRT_CUDA(context->getDriver(), cuLaunchKernel, kernel, numBlocks, 1, 1,
            blockSize, 1, 1, 0, stream, parameters, nullptr);
}

void Kernels::applyEpilogue(const EpilogueArguments &arguments, Dtype dtype,
                            CUstream stream) {
  EpilogueArguments copy = arguments;
  constexpr int64_t maxBlocks = 4096;
  launch(get(epilogues, tprt_epilogue_ptx, tprt_epilogue_ptx_end,
             "tprt_epilogue_" + std::string(toString(dtype))),
         std::min(copy.batches * copy.rows, maxBlocks), &copy, stream,
         /*blockSize=*/256);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static int64_t countHeads(const tprt_attention_args &args) {
  int64_t count = 1;
  for (int64_t size : args.batch)
    count *= size;
  return count;
}

void cuda::checkAttention(const tprt_attention_args &args) {
  if (args.dtype < TPRT_F32 || args.dtype > TPRT_BF16)
    throw executionError("tprt_attention: dtype is not f32, f64, f16 or bf16");
  if (std::max(args.depth, args.width) > maxAttentionDepth)
    throw executionError("tprt_attention: heads of " +
                         std::to_string(std::max(args.depth, args.width)) +
                         " elements aren't supported on CUDA devices, the "
                         "limit is " +
                         std::to_string(maxAttentionDepth));
  int64_t numRows = countHeads(args) * std::max(args.rows, args.columns);
  if (numRows > INT32_MAX)
    throw executionError(
        "tprt_attention: " + std::to_string(numRows) +
        " rows aren't supported on CUDA devices, the limit is " +
        std::to_string(INT32_MAX));
}

static std::string getSuffix(const tprt_attention_args &args) {
  return std::string(toString(static_cast<Dtype>(args.dtype)));
}

void Kernels::launch(CUfunction kernel, int64_t numBlocks, void *arguments,
                     CUstream stream, unsigned blockSize) {
  if (numBlocks <= 0)
    return;
  void *parameters[] = {arguments};
  TPRT_CUDA(context->getDriver(), cuLaunchKernel, kernel,
            static_cast<unsigned>(numBlocks), 1, 1, blockSize, 1, 1, 0, stream,
            parameters, nullptr);
}

void Kernels::attend(const AttentionArguments &arguments, CUstream stream) {
  const tprt_attention_args &args = arguments.args;
  AttentionArguments copy = arguments;
  CUfunction kernel = get(attention, tprt_attention_ptx, tprt_attention_ptx_end,
                          "tprt_attention_" + getSuffix(args));
  launch(kernel, args.width > 0 ? countHeads(args) * args.rows : 0, &copy,
         stream);
}

void Kernels::clearHiddenRows(const HiddenRowsArguments &arguments, Dtype dtype,
                              CUstream stream) {
  HiddenRowsArguments copy = arguments;
  CUfunction kernel =
      get(attention, tprt_attention_ptx, tprt_attention_ptx_end,
          "tprt_attention_hidden_rows_" + std::string(toString(dtype)));
  launch(kernel, copy.batches * copy.heads * copy.rows, &copy, stream);
}

int64_t Kernels::getStatisticsBytes(const tprt_attention_args &args) const {
  constexpr int64_t numbersByRow = 3, largestBytes = sizeof(double);
  return countHeads(args) * args.rows * numbersByRow * largestBytes;
}

void Kernels::attendBackwards(const AttentionGradientArguments &arguments,
                              CUstream stream) {
  const tprt_attention_args &args = arguments.args.attention;
  AttentionGradientArguments copy = arguments;
  auto find = [&](const std::string &kernel) {
    return get(gradients, tprt_attentiongradient_ptx,
               tprt_attentiongradient_ptx_end,
               "tprt_attention_" + kernel + "_gradient_" + getSuffix(args));
  };
  launch(find("query"), countHeads(args) * args.rows, &copy, stream);
  launch(find("key"), countHeads(args) * args.columns, &copy, stream);
}
