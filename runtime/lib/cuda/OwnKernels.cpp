//===- OwnKernels.cpp - The runtime's own kernels for CUDA devices --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/OwnKernels.h"

#include "cuda/TileSizes.h"
#include "support/Division.h"

using namespace tprt;
using namespace tprt::cuda;

// Embeds a file and a NUL, by the assembler.
#define TPRT_EMBED(NAME, FILE)                                                 \
  extern "C" const char NAME[], NAME##_end[];                                  \
  asm(".pushsection .rodata\n"                                                 \
      ".balign 64\n"                                                           \
      ".hidden " #NAME "\n"                                                    \
      ".hidden " #NAME "_end\n"                                                \
      ".global " #NAME "\n"                                                    \
      ".global " #NAME "_end\n" #NAME ": .incbin \"" TPRT_KERNEL_FOLDER        \
      "/" FILE "\"\n"                                                          \
      ".byte 0\n" #NAME "_end:\n"                                              \
      ".popsection\n")
// What the build has made of a .cu file.
#define TPRT_EMBED_KERNELS(NAME, FILE)                                         \
  TPRT_EMBED(tprt_##NAME##_ptx, FILE ".ptx");                                  \
  TPRT_EMBED(tprt_##NAME##_fatbin, FILE ".fatbin")
TPRT_EMBED_KERNELS(reductions, "ReduceKernels");
TPRT_EMBED_KERNELS(epilogues, "EpilogueKernels");
TPRT_EMBED_KERNELS(gemvs, "GemvKernels");
TPRT_EMBED_KERNELS(attention, "AttentionKernels");
TPRT_EMBED_KERNELS(tiles, "AttentionTileKernels");
TPRT_EMBED_KERNELS(decodes, "DecodeKernels");
TPRT_EMBED_KERNELS(gradients, "AttentionGradientKernels");

#define TPRT_FILE(NAME)                                                        \
  NAME({tprt_##NAME##_ptx, tprt_##NAME##_ptx_end},                             \
       {tprt_##NAME##_fatbin, tprt_##NAME##_fatbin_end})
Kernels::Kernels(ContextPtr context)
    : context(std::move(context)), TPRT_FILE(reductions), TPRT_FILE(epilogues),
      TPRT_FILE(gemvs), TPRT_FILE(attention), TPRT_FILE(tiles),
      TPRT_FILE(decodes), TPRT_FILE(gradients) {}

void Kernels::File::load(const ContextPtr &context, const std::string &name) {
  if (ptx.size() <= 1) // the NUL
    throw executionError("libtprt was built without nvcc, so it lacks the "
                         "kernel '" +
                         name +
                         "'; configure with -DTPRT_NVCC=PATH and rebuild");
  // The PTX if there is no code for the device, or it is too new for the
  // driver.
  auto makeImage = [](std::string_view data, bool isPtx) {
    return tprt_device_image{/*arch=*/80, isPtx, data.data(), data.size()};
  };
  tprt_device_image images[] = {makeImage(fatbin, /*isPtx=*/false),
                                makeImage(ptx, /*isPtx=*/true)};
  module.emplace(
      context, std::vector<const tprt_device_image *>{&images[0], &images[1]});
}

CUfunction Kernels::get(File &file, const std::string &name) {
  std::call_once(file.flag, [&] { file.load(context, name); });
  return file.module->getFunction(name.c_str());
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
  constexpr int64_t blockSize = 256, maxBlocks = 4096;
  int64_t numThreads = divideCeil(count, size);
  int64_t numBlocks = std::min(divideCeil(numThreads, blockSize), maxBlocks);
  CUfunction kernel =
      get(reductions, "tprt_reduce_" + std::string(toString(reduction)) + "_" +
                          std::string(toString(dtype)));
  launch(kernel, numBlocks, &arguments, stream, blockSize);
}

void Kernels::applyEpilogue(const EpilogueArguments &arguments, Dtype dtype,
                            CUstream stream) {
  EpilogueArguments copy = arguments;
  constexpr int64_t maxBlocks = 4096;
  launch(get(epilogues, "tprt_epilogue_" + std::string(toString(dtype))),
         std::min(copy.batches * copy.rows, maxBlocks), &copy, stream,
         /*blockSize=*/256);
}

bool Kernels::multiplyRows(const tprt_gemm_args &args,
                           const GemmOperands &operands, CUstream stream) {
  constexpr int64_t maxRows = 8, vectorBytes = 16, warps = 4;
  if (args.m > maxRows || args.batch0 != 1 || args.batch1 != 1 ||
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
  while (arguments.split < warps &&
         args.k >= arguments.split * 2 * 2 * 32 * size)
    arguments.split *= 2;
  int64_t rows = 1;
  while (rows < args.m)
    rows *= 2;
  // Several columns share what is read of A, if enough blocks are left.
  int64_t columns = rows == maxRows ? 2 : 4;
  auto countBlocks = [&] {
    int64_t ofBlock = columns * warps / arguments.split;
    return divideCeil(args.n, ofBlock);
  };
  constexpr int64_t blocksByProcessor = 2;
  if (countBlocks() < blocksByProcessor * context->getNumProcessors())
    columns = 1;
  launch(get(gemvs, "tprt_gemv_" + std::string(toString(dtype)) + "_" +
                        std::to_string(rows) + "_" + std::to_string(columns)),
         countBlocks(), &arguments, stream);
  return true;
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
                     CUstream stream, unsigned blockSize, int32_t sharedBytes) {
  if (numBlocks <= 0)
    return;
  constexpr int32_t sharedBytesOfAll = 48 << 10; // without asking for more
  if (sharedBytes > sharedBytesOfAll)
    TPRT_CUDA(context->getDriver(), cuFuncSetAttribute, kernel,
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, sharedBytes);
  void *parameters[] = {arguments};
  TPRT_CUDA(context->getDriver(), cuLaunchKernel, kernel,
            static_cast<unsigned>(numBlocks), 1, 1, blockSize, 1, 1,
            sharedBytes, stream, parameters, nullptr);
}

void Kernels::attend(const AttentionArguments &arguments, CUstream stream) {
  const tprt_attention_args &args = arguments.args;
  AttentionArguments copy = arguments;
  if (args.width == 0)
    return;
  int64_t longest = std::max(args.depth, args.width);
  auto runTiles = [&](auto sizes, const char *size) {
    launch(get(tiles, "tprt_attention_tiles_" + getSuffix(args) + size),
           countHeads(args) * divideCeil(args.rows, sizes.rows), &copy, stream,
           /*blockSize=*/128, sizes.sharedBytes);
  };
  constexpr int floatBytes = sizeof(float), doubleBytes = sizeof(double);
  if (args.dtype == TPRT_F64 && longest <= 64)
    runTiles(tprt_kernels::TileSizes<doubleBytes, 64>(), "_64");
  else if (args.dtype != TPRT_F64 && longest <= 64)
    runTiles(tprt_kernels::TileSizes<floatBytes, 64>(), "_64");
  else if (args.dtype != TPRT_F64 && longest <= 128)
    runTiles(tprt_kernels::TileSizes<floatBytes, 128>(), "_128");
  else
    launch(get(attention, "tprt_attention_" + getSuffix(args)),
           countHeads(args) * args.rows, &copy, stream);
}

void Kernels::decode(const DecodePlan &plan, const DecodeArguments &arguments,
                     CUstream stream) {
  DecodeArguments copy = arguments;
  CUfunction kernel = get(decodes, "tprt_decode_" + getSuffix(arguments.args) +
                                       "_" + std::to_string(plan.lanes) + "_" +
                                       std::to_string(plan.queries));
  launch(kernel, plan.numBlocks, &copy, stream, plan.threads, plan.sharedBytes);
}

void Kernels::clearHiddenRows(const HiddenRowsArguments &arguments, Dtype dtype,
                              CUstream stream) {
  HiddenRowsArguments copy = arguments;
  CUfunction kernel = get(attention, "tprt_attention_hidden_rows_" +
                                         std::string(toString(dtype)));
  launch(kernel, copy.batches * copy.heads * copy.rows, &copy, stream);
}

void Kernels::addMask(const AddedMaskArguments &arguments, int64_t numRows,
                      CUstream stream) {
  AddedMaskArguments copy = arguments;
  launch(get(attention, "tprt_attention_added_mask_" + getSuffix(copy.args)),
         numRows, &copy, stream);
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
    return get(gradients,
               "tprt_attention_" + kernel + "_gradient_" + getSuffix(args));
  };
  launch(find("query"), countHeads(args) * args.rows, &copy, stream);
  launch(find("key"), countHeads(args) * args.columns, &copy, stream);
}
