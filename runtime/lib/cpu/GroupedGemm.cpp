//===- GroupedGemm.cpp - Products of groups of rows -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/GroupedGemm.h"

#include "support/Parallel.h"

#include <algorithm>
#include <cstring>
#include <string>

using namespace tprt;

static void require(bool holds, const std::string &what) {
  if (!holds)
    throw executionError("tprt_grouped_gemm: " + what);
}

static std::vector<int64_t> getBounds(const tprt_grouped_gemm_args &args,
                                      const void *data) {
  require(args.bounds_dtype == TPRT_I64 || args.bounds_dtype == TPRT_I32,
          "the bounds are neither i64 nor i32");
  require(args.groups >= 0 && args.m >= 0, "a size is negative");
  std::vector<int64_t> bounds;
  for (int64_t g = 0; g <= args.groups; ++g) {
    int64_t bound = args.bounds_dtype == TPRT_I64
                        ? static_cast<const int64_t *>(data)[g]
                        : static_cast<const int32_t *>(data)[g];
    require(bound >= 0 && bound <= args.m,
            "bound " + std::to_string(g) + " is " + std::to_string(bound) +
                ", and there are " + std::to_string(args.m) + " rows");
    bounds.push_back(bound);
  }
  return bounds;
}

namespace {
/// The products of one call.
class Groups {
public:
  Groups(const tprt_grouped_gemm_args &args, const void *a, const void *b,
         const void *bounds, void *c)
      : args(args), a(a), b(b), c(c), bounds(getBounds(args, bounds)),
        width(byteWidth(static_cast<Dtype>(args.dtype))) {}

  int64_t countRows(int64_t g) const {
    return std::max<int64_t>(bounds[g + 1] - bounds[g], 0);
  }
  /// Whether no row is in several groups.
  bool areApart() const { return std::is_sorted(bounds.begin(), bounds.end()); }

  double countOperations(int64_t numRows) const {
    return 2.0 * numRows * args.n * args.k;
  }

  void run(int64_t g, GemmState &state) const {
    int64_t first = bounds[g];
    tprt_gemm_args product = {};
    product.dtype = args.dtype;
    product.accumulate = !args.sums_rows && !areApart();
    product.batch0 = product.batch1 = 1;
    product.n = args.n;
    product.b_row = args.b_row;
    product.b_col = args.b_col;
    product.c_row = args.c_row;
    GemmOperands operands{at(a, first * args.a_row), nullptr, nullptr};
    if (args.sums_rows) {
      product.m = args.k;
      product.k = countRows(g);
      product.a_row = args.a_col;
      product.a_col = args.a_row;
      operands.b = at(b, first * args.b_row);
      operands.c = at(c, g * args.c_group);
    } else {
      product.m = countRows(g);
      product.k = args.k;
      product.a_row = args.a_row;
      product.a_col = args.a_col;
      operands.b = at(b, g * args.b_group);
      operands.c = at(c, first * args.c_row);
    }
    if (product.m > 0)
      gemm(product, operands, state);
  }

  /// Makes the rows 0 that no product overwrites.
  void clearOthers() const {
    if (args.sums_rows)
      return;
    clear(0, areApart() ? bounds.front() : args.m);
    clear(bounds.back(), args.m);
  }

private:
  void clear(int64_t begin, int64_t end) const {
    for (int64_t row = begin; row < end; ++row)
      std::memset(at(c, row * args.c_row), 0, args.n * width);
  }
  const void *at(const void *data, int64_t element) const {
    return static_cast<const std::byte *>(data) + element * width;
  }
  void *at(void *data, int64_t element) const {
    return static_cast<std::byte *>(data) + element * width;
  }

  const tprt_grouped_gemm_args &args;
  const void *a, *b;
  void *c;
  std::vector<int64_t> bounds;
  int64_t width;
};
} // namespace

/// A group that is large enough for several threads is computed by all of them.
/// Otherwise each thread computes groups of its own.
void tprt::groupedGemm(const tprt_grouped_gemm_args &args, const void *a,
                       const void *b, const void *bounds, void *c,
                       GemmState &state) {
  require(args.dtype >= TPRT_F32 && args.dtype <= TPRT_BF16,
          "dtype is not f32, f64, f16 or bf16");
  Groups groups(args, a, b, bounds, c);
  groups.clearOthers();
  int64_t mostRows = 0;
  for (int64_t g = 0; g < args.groups; ++g)
    mostRows = std::max(mostRows, groups.countRows(g));
  int64_t numThreads =
      state.countThreads(groups.countOperations(args.m), args.groups);
  bool isLarge = state.countThreads(groups.countOperations(mostRows),
                                    state.getThreads()) > 1;
  if (isLarge || !groups.areApart()) // threads add to no row together
    numThreads = 1;
  if (numThreads == 1) {
    for (int64_t g = 0; g < args.groups; ++g)
      groups.run(g, state);
  } else {
    for (int64_t thread = 0; thread < numThreads; ++thread)
      state.getHelper(thread);
    // Each thread has consecutive groups of about the same number of rows.
    std::vector<int64_t> firsts(numThreads + 1, args.groups);
    firsts[0] = 0;
    int64_t rows = 0, thread = 1;
    for (int64_t g = 0; g < args.groups && thread < numThreads; ++g) {
      rows += groups.countRows(g);
      if (rows * numThreads >= args.m * thread)
        firsts[thread++] = g + 1;
    }
    parallelFor(numThreads, numThreads, [&](int64_t thread) {
      for (int64_t g = firsts[thread]; g < firsts[thread + 1]; ++g)
        groups.run(g, state.getHelper(thread));
    });
  }
}
