//===- RoutingTest.cpp - Sorting, products of groups ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestUtils.h"
#include "cpu/GroupedGemm.h"
#include "cpu/Sort.h"

#include <algorithm>
#include <cmath>

using namespace tprt;
using namespace tprt::test;

//===----------------------------------------------------------------------===//
// Sorting
//===----------------------------------------------------------------------===//

namespace {
struct SortResult {
  std::vector<float> values;
  std::vector<int64_t> indices;
};
} // namespace

static SortResult sortFloats(const tprt_sort_args &args,
                             const std::vector<float> &input,
                             int64_t numThreads = 1) {
  SortResult result;
  result.values.resize(args.outer * args.count * args.inner);
  result.indices.resize(result.values.size());
  sort(args, input.data(), result.values.data(), result.indices.data(),
       numThreads);
  return result;
}

TEST(SortTest, KeepsTheOrderOfEqualElements) {
  std::vector<float> input = {2, 1, 2, 0, 1, 2};
  auto ascending = sortFloats({.dtype = TPRT_F32,
                               .descending = 0,
                               .outer = 1,
                               .size = 6,
                               .inner = 1,
                               .count = 6},
                              input);
  EXPECT_EQ(ascending.indices, (std::vector<int64_t>{3, 1, 4, 0, 2, 5}));
  auto descending = sortFloats({.dtype = TPRT_F32,
                                .descending = 1,
                                .outer = 1,
                                .size = 6,
                                .inner = 1,
                                .count = 4},
                               input);
  EXPECT_EQ(descending.indices, (std::vector<int64_t>{0, 2, 5, 1}));
  EXPECT_EQ(descending.values, (std::vector<float>{2, 2, 2, 1}));
}

TEST(SortTest, NaNIsTheLargestNumber) {
  const float nan = std::nanf(""), inf = HUGE_VALF;
  std::vector<float> input = {nan, 1, inf, nan, -inf};
  tprt_sort_args args = {.dtype = TPRT_F32,
                         .descending = 0,
                         .outer = 1,
                         .size = 5,
                         .inner = 1,
                         .count = 5};
  EXPECT_EQ(sortFloats(args, input).indices,
            (std::vector<int64_t>{4, 1, 2, 0, 3}));
  args.descending = 1;
  EXPECT_EQ(sortFloats(args, input).indices,
            (std::vector<int64_t>{0, 3, 2, 1, 4}));
}

TEST(SortTest, SortsAMiddleDimensionOnSeveralThreads) {
  const int64_t outer = 5, size = 301, inner = 7;
  std::vector<float> input(outer * size * inner);
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = static_cast<float>(i * 7919 % 10007);
  tprt_sort_args args = {.dtype = TPRT_F32,
                         .descending = 0,
                         .outer = outer,
                         .size = size,
                         .inner = inner,
                         .count = 9};
  SortResult one = sortFloats(args, input), three = sortFloats(args, input, 3);
  EXPECT_EQ(one.indices, three.indices);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      std::vector<float> row;
      for (int64_t j = 0; j < size; ++j)
        row.push_back(input[(o * size + j) * inner + i]);
      std::sort(row.begin(), row.end());
      for (int64_t j = 0; j < args.count; ++j)
        EXPECT_EQ(one.values[(o * args.count + j) * inner + i], row[j]);
    }
}

TEST(SortTest, RefusesMoreResultsThanElements) {
  tprt_sort_args args = {.dtype = TPRT_F32,
                         .descending = 0,
                         .outer = 1,
                         .size = 2,
                         .inner = 1,
                         .count = 3};
  EXPECT_THROW(sort(args, nullptr, nullptr, nullptr, 1), Error);
  args.count = 2;
  args.dtype = TPRT_I1;
  EXPECT_THROW(sort(args, nullptr, nullptr, nullptr, 1), Error);
}

//===----------------------------------------------------------------------===//
// Products of groups
//===----------------------------------------------------------------------===//

/// A is m x k; B's matrices lie by columns, like the weights of linear layers.
static void checkProducts(const std::vector<int64_t> &bounds, int64_t m,
                          int64_t n, int64_t k, int64_t numThreads) {
  const int64_t groups = static_cast<int64_t>(bounds.size()) - 1;
  std::vector<float> a = makeFloats(m * k, 1),
                     b = makeFloats(groups * n * k, 2), c(m * n, 99);
  tprt_grouped_gemm_args args = {.dtype = TPRT_F32,
                                 .bounds_dtype = TPRT_I64,
                                 .sums_rows = 0,
                                 .groups = groups,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .a_row = k,
                                 .a_col = 1,
                                 .b_group = n * k,
                                 .b_row = 1,
                                 .b_col = k,
                                 .c_group = 0,
                                 .c_row = n};
  GemmState state;
  state.setThreads(numThreads);
  groupedGemm(args, a.data(), b.data(), bounds.data(), c.data(), state);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t l = 0; l < k && bounds[g] <= i && i < bounds[g + 1]; ++l)
          sum += double(a[i * k + l]) * b[(g * n + j) * k + l];
      ASSERT_NEAR(c[i * n + j], sum, 1e-4 * std::max<int64_t>(k, 1))
          << i << ", " << j;
    }
}

static void checkSums(const std::vector<int64_t> &bounds, int64_t m, int64_t n,
                      int64_t k) {
  const int64_t groups = static_cast<int64_t>(bounds.size()) - 1;
  std::vector<int32_t> narrow(bounds.begin(), bounds.end());
  std::vector<float> a = makeFloats(m * k, 1), b = makeFloats(m * n, 2),
                     c(groups * k * n, 99);
  tprt_grouped_gemm_args args = {.dtype = TPRT_F32,
                                 .bounds_dtype = TPRT_I32,
                                 .sums_rows = 1,
                                 .groups = groups,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .a_row = k,
                                 .a_col = 1,
                                 .b_group = 0,
                                 .b_row = n,
                                 .b_col = 1,
                                 .c_group = k * n,
                                 .c_row = n};
  GemmState state;
  groupedGemm(args, a.data(), b.data(), narrow.data(), c.data(), state);
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t i = bounds[g]; i < bounds[g + 1]; ++i)
          sum += double(a[i * k + l]) * b[i * n + j];
        ASSERT_NEAR(c[(g * k + l) * n + j], sum, 1e-4) << g << ", " << l;
      }
}

TEST(GroupedGemmTest, MultipliesEachGroupByItsMatrix) {
  for (const std::vector<int64_t> &bounds :
       {std::vector<int64_t>{0, 3, 3, 7, 9},
        {0, 0, 0, 0, 9},
        {2, 5, 5, 5, 6},
        {0, 0, 0, 0, 0},
        {0, 6, 4, 9, 2},
        {0, 9},
        {4}}) {
    checkProducts(bounds, 9, 5, 6, 1);
    checkSums(bounds, 9, 5, 6);
  }
  checkProducts({0, 9}, 9, 5, 0, 1);
}

TEST(GroupedGemmTest, DistributesGroupsOrRows) {
  std::vector<int64_t> many = {0};
  for (int64_t g = 0; g < 40; ++g)
    many.push_back(many.back() + g % 5);
  checkProducts(many, many.back() + 3, 256, 512, 4);
  checkProducts({0, 2, 100, 101}, 101, 256, 512, 4);
}

// Two threads must not add to one row at a time.
TEST(GroupedGemmTest, AddsTheProductsOfRowsInSeveralGroups) {
  std::vector<int64_t> bounds = {0};
  for (int64_t g = 0; g < 200; ++g)
    bounds.insert(bounds.end(), {4, 0});
  checkProducts(bounds, 800, 256, 512, 4);
}

TEST(GroupedGemmTest, RefusesBoundsBeyondTheRows) {
  for (int64_t bound : {-1, 10})
    try {
      checkProducts({0, bound}, 9, 5, 6, 1);
      FAIL();
    } catch (const Error &error) {
      EXPECT_NE(
          std::string(error.what()).find("bound 1 is " + std::to_string(bound)),
          std::string::npos)
          << error.what();
    }
}
