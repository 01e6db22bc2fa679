//===- CompareTest.cpp ----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Compare.h"

#include "TestUtils.h"

#include <cmath>

using namespace tprt;
using namespace tprt::test;

static Tensor floats(const std::vector<float> &elements) {
  return makeTensor(Dtype::F32, {static_cast<int64_t>(elements.size())},
                    elements);
}

TEST(Compare, ToleranceIsAbsolutePlusRelative) {
  Tolerance tolerance{/*relative=*/0.01, /*absolute=*/0.5};
  // |got - expected| <= 0.5 + 0.01 * 100
  EXPECT_TRUE(compare(floats({101.5f}), floats({100}), tolerance).matches());
  EXPECT_FALSE(compare(floats({101.6f}), floats({100}), tolerance).matches());
}

TEST(Compare, NaNAndInfinity) {
  Tolerance loose{1, 1e30};
  EXPECT_TRUE(compare(floats({NAN, INFINITY, -INFINITY}),
                      floats({NAN, INFINITY, -INFINITY}), {0, 0})
                  .matches());
  EXPECT_FALSE(compare(floats({NAN}), floats({1}), loose).matches());
  EXPECT_FALSE(compare(floats({1}), floats({NAN}), loose).matches());
  EXPECT_FALSE(
      compare(floats({INFINITY}), floats({-INFINITY}), loose).matches());
  EXPECT_FALSE(compare(floats({1}), floats({INFINITY}), loose).matches());
}

TEST(Compare, LargestDifferencesFirst) {
  Tensor got = makeTensor<float>(Dtype::F32, {2, 3}, {0, 5, 0, 1, 9, 0});
  Tensor expected = makeTensor<float>(Dtype::F32, {2, 3}, {0, 0, 0, 0, 0, 0});
  Comparison comparison = compare(got, expected, {0, 0}, 2);
  EXPECT_EQ(comparison.numDifferent, 3);
  EXPECT_EQ(comparison.maxAbsolute, 9);
  ASSERT_EQ(comparison.largest.size(), 2u);
  EXPECT_EQ(comparison.largest[0].index, (Shape{1, 1}));
  EXPECT_EQ(comparison.largest[0].got, 9);
  EXPECT_EQ(comparison.largest[1].index, (Shape{0, 1}));
}

TEST(Compare, IntegersAreExact) {
  int64_t big = (int64_t(1) << 53) + 1;
  Tensor got = makeTensor<int64_t>(Dtype::I64, {1}, {big});
  Tensor expected = makeTensor<int64_t>(Dtype::I64, {1}, {big - 1});
  EXPECT_FALSE(compare(got, expected, {1, 10}).matches());
  EXPECT_TRUE(compare(got, got, {0, 0}).matches());
}

TEST(Compare, TypesMustMatch) {
  Tensor f32 = floats({1, 2});
  EXPECT_EQ(errorOf([&] { compare(f32, floats({1}), {}); }),
            "has type 2xf32, the expected 1xf32");
  Tensor f16 = makeTensor<Half>(Dtype::F16, {2}, {Half(1), Half(2)});
  EXPECT_THROW(compare(f16, f32, {}), Error);
  Tensor bf16 = makeTensor<BFloat16>(Dtype::BF16, {2},
                                     {BFloat16::round(1), BFloat16::round(2)});
  EXPECT_TRUE(compare(bf16, f32, {}).matches());
}

TEST(Compare, EmptyAndScalar) {
  EXPECT_TRUE(compare(floats({}), floats({}), {}).matches());
  Tensor one = makeTensor<float>(Dtype::F32, {}, {1});
  Tensor two = makeTensor<float>(Dtype::F32, {}, {2});
  Comparison comparison = compare(one, two, {});
  ASSERT_EQ(comparison.largest.size(), 1u);
  EXPECT_EQ(comparison.largest[0].index, Shape{});
}
