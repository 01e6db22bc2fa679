//===- Kernels.cpp - The runtime's own kernels for CUDA devices ----------===//

#include "Cuda/Kernels.h"

using namespace tprt;
using namespace tprt::cuda;

// A file's bytes and a NUL, by the assembler.
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
TPRT_EMBED(tprt_attention_ptx, TPRT_ATTENTION_PTX);

CUfunction Kernels::get(Loaded &loaded, const char *ptx, const char *end,
                        const std::string &name) {
  std::call_once(loaded.flag, [&] {
    tprt_device_image image = {/*arch=*/80, /*is_ptx=*/1, ptx,
                               static_cast<uint64_t>(end - ptx)};
    loaded.module.emplace(context, image);
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

void Kernels::attend(const AttentionArguments &arguments, CUstream stream) {
  const tprt_attention_args &args = arguments.args;
  if (args.dtype < TPRT_F32 || args.dtype > TPRT_BF16)
    throw executionError("tprt_attention: dtype is not f32, f64, f16 or bf16");
  if (std::max(args.depth, args.width) > maxAttentionDepth)
    throw executionError("tprt_attention: heads of " +
                         std::to_string(std::max(args.depth, args.width)) +
                         " elements aren't supported on CUDA devices, the "
                         "limit is " +
                         std::to_string(maxAttentionDepth));
  int64_t numRows = args.rows;
  for (int64_t size : args.batch)
    numRows *= size;
  if (numRows <= 0 || args.width <= 0)
    return;
  if (numRows > INT32_MAX)
    throw executionError(
        "tprt_attention: " + std::to_string(numRows) +
        " rows aren't supported on CUDA devices, the limit is " +
        std::to_string(INT32_MAX));
  AttentionArguments copy = arguments;
  void *parameters[] = {&copy};
  constexpr unsigned blockSize = 128;
  CUfunction kernel =
      get(attention, tprt_attention_ptx, tprt_attention_ptx_end,
          "tprt_attention_" +
              std::string(toString(static_cast<Dtype>(args.dtype))));
  TPRT_CUDA(context->getDriver(), cuLaunchKernel, kernel,
            static_cast<unsigned>(numRows), 1, 1, blockSize, 1, 1, 0, stream,
            parameters, nullptr);
}
