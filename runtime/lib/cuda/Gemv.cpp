//===- Gemv.cpp - Products of few rows on a CUDA device -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/Gemv.h"

#include "support/Division.h"
#include "tprt/Dtype.h"

#include <algorithm>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt_kernels;

static constexpr int64_t vectorBytes = 16; // that a thread reads at once

static int64_t getWidth(const tprt_gemm_args &args) {
  return byteWidth(static_cast<Dtype>(args.dtype));
}

/// Whether the kernels can compute the product.
static bool hasKernel(const tprt_gemm_args &args,
                      const GemmOperands &operands) {
  if (args.m > TPRT_FEW_ROWS || args.batch0 != 1 || args.batch1 != 1 ||
      args.k <= 0 || args.dtype == TPRT_F64)
    return false;
  int64_t size = vectorBytes / getWidth(args);
  auto isAligned = [](const void *data) {
    return reinterpret_cast<uintptr_t>(data) % vectorBytes == 0;
  };
  // The kernels' indices have 32 bits.
  constexpr int64_t maxNumber = INT32_MAX / 2;
  if (args.n > maxNumber || args.k > maxNumber ||
      (args.m > 1 && args.a_row > maxNumber) ||
      (args.n > 1 && args.b_col > maxNumber))
    return false;
  return args.k % size == 0 && args.a_col == 1 && args.b_row == 1 &&
         (args.m == 1 || args.a_row % size == 0) &&
         (args.n == 1 || args.b_col % size == 0) && isAligned(operands.a) &&
         isAligned(operands.b);
}

RowProducts::Range RowProducts::Product::getRange(const void *data,
                                                  int64_t count, int64_t stride,
                                                  int64_t size) const {
  if (!data)
    return {};
  auto begin = reinterpret_cast<uintptr_t>(data);
  return {begin, begin + ((count - 1) * stride + size) * getWidth(args)};
}

RowProducts::Range RowProducts::Product::getWritten() const {
  return getRange(operands.c, args.m, args.c_row, args.n);
}

std::array<RowProducts::Range, 5> RowProducts::Product::getRead() const {
  return {getRange(operands.a, args.m, args.a_row, args.k),
          getRange(operands.b, args.n, args.b_col, args.k),
          getRange(operands.bias, 1, 0, args.n),
          getRange(operands.addend, args.m, args.addend_row, args.n),
          getRange(operands.factor, args.m, args.factor_row, args.n)};
}

bool RowProducts::isGatedByHeld(const Product &product) const {
  const Product &before = held[0];
  return numHeld == 1 && product.operands.factor == before.operands.c &&
         product.args.n == before.args.n &&
         (product.args.m == 1 || product.args.factor_row == before.args.c_row);
}

bool RowProducts::canJoin(const Product &product) const {
  const tprt_gemm_args &args = product.args, &first = held[0].args;
  if (numHeld == 0 || numHeld == maxGemvParts || isGated ||
      product.operands.a != held[0].operands.a || args.dtype != first.dtype ||
      args.m != first.m || args.k != first.k ||
      (args.m > 1 && args.a_row != first.a_row))
    return false;
  // The order of parts that run at the same time must not matter.
  auto overlap = [](const Range &x, const Range &y) {
    return x.begin < y.end && y.begin < x.end;
  };
  auto read = product.getRead();
  if (isGatedByHeld(product))
    read.back() = {};
  Range written = product.getWritten();
  return std::none_of(held.begin(), held.begin() + numHeld, [&](auto &before) {
    Range result = before.getWritten();
    auto ofBefore = before.getRead();
    return overlap(written, result) ||
           std::any_of(ofBefore.begin(), ofBefore.end(),
                       [&](auto &range) { return overlap(written, range); }) ||
           std::any_of(read.begin(), read.end(),
                       [&](auto &range) { return overlap(result, range); });
  });
}

bool RowProducts::add(const tprt_gemm_args &args, const GemmOperands &operands,
                      CUstream stream) {
  if (!hasKernel(args, operands))
    return false;
  Product product{args, operands};
  if (!canJoin(product))
    flush(stream);
  else
    isGated = isGatedByHeld(product);
  held[numHeld++] = product;
  return true;
}

void RowProducts::flush(CUstream stream) {
  if (numHeld == 0)
    return;
  const tprt_gemm_args &args = held[0].args;
  int64_t size = vectorBytes / getWidth(args);
  int32_t rows = 1;
  while (rows < args.m)
    rows *= 2;
  GemvArguments arguments = {};
  arguments.a = held[0].operands.a;
  arguments.aRow = static_cast<int32_t>(args.a_row);
  arguments.m = static_cast<int32_t>(args.m);
  arguments.k = static_cast<int32_t>(args.k);
  arguments.isGated = isGated;
  // A column is split among warps while each thread still has two of its
  // vectors to read.
  int64_t split = 1;
  for (; split < gemvWarps && args.k >= split * 2 * 2 * 32 * size; split *= 2)
    ++arguments.splitBits;
  for (int i = 0; i < numHeld; ++i) {
    const auto &[its, operands] = held[i];
    arguments.parts[i] = {operands.b,
                          operands.c,
                          operands.bias,
                          operands.addend,
                          operands.factor,
                          its.c_row,
                          its.addend_row,
                          its.factor_row,
                          static_cast<int32_t>(its.n),
                          static_cast<int32_t>(its.b_col),
                          static_cast<int32_t>(its.activation),
                          its.accumulate};
  }
  // Several columns share what is read of A, if enough blocks are left.
  int64_t columns = rows == 1 || rows == TPRT_FEW_ROWS ? 2 : 4;
  auto countBlocks = [&] {
    int64_t ofBlock = columns * gemvWarps / split, count = 0;
    for (int i = 0; i < maxGemvParts; ++i) {
      if (i < numHeld && !isGated)
        count += divideCeil(held[i].args.n, ofBlock);
      else if (i == 0) // a block computes half as many columns of both
        count = divideCeil(args.n, ofBlock / 2);
      arguments.ends[i] = static_cast<uint32_t>(count);
    }
    return count;
  };
  constexpr int64_t blocksByProcessor = 2;
  if (rows > 1 && !isGated &&
      countBlocks() <
          blocksByProcessor * kernels.getContext().getNumProcessors())
    columns = 1;
  int64_t blocks = countBlocks();
  numHeld = 0; // also if the launch fails
  isGated = false;
  kernels.launch(KernelFile::Gemv,
                 "tprt_gemv_" +
                     std::string(toString(static_cast<Dtype>(args.dtype))) +
                     "_" + std::to_string(rows) + "_" + std::to_string(columns),
                 {blocks, gemvThreads}, arguments, stream);
}
