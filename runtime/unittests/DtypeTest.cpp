//===- DtypeTest.cpp ------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Dtype.h"

#include "TestUtils.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace tprt;

TEST(Dtype, NamesRoundTrip) {
  for (int32_t i = 0; i < numDtypes; ++i) {
    Dtype dtype = static_cast<Dtype>(i);
    EXPECT_EQ(parseDtype(toString(dtype)), dtype);
  }
  EXPECT_EQ(parseDtype("f8"), std::nullopt);
}

static float throughBFloat16(float value) {
  BFloat16 rounded;
  float back;
  convertFromF32(Dtype::BF16, &value, &rounded, 1);
  convertToF32(Dtype::BF16, &rounded, &back, 1);
  return back;
}

TEST(Dtype, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(throughBFloat16(1.0f), 1.0f);
  // 1 + 2^-8 lies midway between 1 and 1 + 2^-7: even is 1.
  EXPECT_EQ(throughBFloat16(1.0f + 0x1p-8f), 1.0f);
  EXPECT_EQ(throughBFloat16(1.0f + 0x1p-8f + 0x1p-20f), 1.0f + 0x1p-7f);
  EXPECT_EQ(throughBFloat16(1.0f + 0x1p-7f + 0x1p-8f), 1.0f + 0x1p-6f);
  EXPECT_EQ(throughBFloat16(std::numeric_limits<float>::max()), INFINITY);
  EXPECT_EQ(throughBFloat16(-INFINITY), -INFINITY);
}

TEST(Dtype, BFloat16KeepsEveryNaN) {
  for (uint32_t bits : {0x7fc00000u, 0x7f800001u, 0x7fffffffu, 0xffffffffu})
    EXPECT_TRUE(std::isnan(throughBFloat16(std::bit_cast<float>(bits))));
}

TEST(Dtype, HalfRoundsToNearestEven) {
  // Longer than a vector, so that vectorized body and tail both run.
  std::vector<float> values(37, 1.0f + 0x1p-11f), back(37);
  std::vector<Half> halves(37);
  convertFromF32(Dtype::F16, values.data(), halves.data(), values.size());
  convertToF32(Dtype::F16, halves.data(), back.data(), back.size());
  for (float value : back)
    EXPECT_EQ(value, 1.0f);
  float big = 65520, inf;
  Half half;
  convertFromF32(Dtype::F16, &big, &half, 1);
  convertToF32(Dtype::F16, &half, &inf, 1);
  EXPECT_EQ(inf, INFINITY);
}
