//===- ExponentialTest.cpp - e^x of sixteen numbers -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/Exponential.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace tprt;

static float exponentiateOne(float value) {
  Lanes x = Lanes{} + value;
  exponentiate(x);
  for (int64_t lane = 1; lane < numLanes; ++lane)
    EXPECT_TRUE(x[lane] == x[0] || std::isnan(x[0]));
  return x[0];
}

/// Two units in the last place, also where the result is denormal.
TEST(Exponential, IsAccurate) {
  for (double value = 0; value > -110; value -= 0.00731) {
    float x = static_cast<float>(value);
    double expected = std::exp(static_cast<double>(x));
    double unit = std::max(std::ldexp(1.0, std::ilogb(expected) - 23),
                           double(std::numeric_limits<float>::denorm_min()));
    ASSERT_NEAR(exponentiateOne(x), expected, 2 * unit) << "of " << x;
  }
}

TEST(Exponential, SpecialNumbers) {
  EXPECT_EQ(exponentiateOne(0.0f), 1.0f);
  EXPECT_EQ(exponentiateOne(-0.0f), 1.0f);
  EXPECT_EQ(exponentiateOne(-INFINITY), 0.0f);
  EXPECT_EQ(exponentiateOne(-std::numeric_limits<float>::max()), 0.0f);
  EXPECT_TRUE(std::isnan(exponentiateOne(NAN)));
  // The smallest result, and what is rounded to 0.
  EXPECT_EQ(exponentiateOne(-103.9f), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(exponentiateOne(-104.0f), 0.0f);
}
