//===- StridedSetTest.cpp - Sets of numbers in few words ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Support/StridedSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <random>
#include <set>

using namespace mlir::tp;

namespace {

std::set<int64_t> expand(llvm::ArrayRef<StridedPart> parts) {
  std::set<int64_t> numbers;
  for (const StridedPart &part : parts) {
    std::vector<int64_t> list = {part.offset};
    for (auto [size, stride] : llvm::zip_equal(part.sizes, part.strides)) {
      std::vector<int64_t> next;
      for (int64_t number : list)
        for (int64_t i = 0; i < size; ++i)
          next.push_back(number + i * stride);
      list = next;
    }
    for (int64_t number : list)
      EXPECT_TRUE(numbers.insert(number).second) << number << " twice";
  }
  return numbers;
}

/// The parts of the numbers below `end` for which `has` is true, as text; they
/// are these numbers.
template <typename Has>
std::string getParts(int64_t end, Has has) {
  llvm::SmallVector<int64_t> numbers;
  for (int64_t i = 0; i < end; ++i)
    if (has(i))
      numbers.push_back(i);
  auto parts = getStridedParts(numbers);
  EXPECT_EQ(expand(parts), std::set<int64_t>(numbers.begin(), numbers.end()));
  std::string text;
  for (const StridedPart &part : parts) {
    text += std::to_string(part.offset);
    for (auto [size, stride] : llvm::zip_equal(part.sizes, part.strides))
      text += llvm::formatv("+{0}x{1}", size, stride).str();
    text += ' ';
  }
  return text;
}

TEST(StridedSet, Patterns) {
  EXPECT_EQ(getParts(5, [](int64_t i) { return false; }), "");
  EXPECT_EQ(getParts(5, [](int64_t i) { return i == 3; }), "3 ");
  EXPECT_EQ(getParts(16384, [](int64_t i) { return true; }), "0+16384x1 ");
  EXPECT_EQ(getParts(16384, [](int64_t i) { return i % 16 == 3; }),
            "3+1024x16 ");
  EXPECT_EQ(getParts(16384, [](int64_t i) { return i % 16 < 12; }),
            "0+1024x16+12x1 ");
  EXPECT_EQ(getParts(16384, [](int64_t i) { return i % 16 >= 12; }),
            "12+1024x16+4x1 ");
  // Three dimensions, and a last one that is shorter.
  EXPECT_EQ(getParts(4096, [](int64_t i) { return i % 256 < 64 && i % 8 < 3; }),
            "0+16x256+8x8+3x1 ");
  EXPECT_EQ(getParts(40, [](int64_t i) { return i < 39; }), "0+39x1 ");
  // Nodes of eight ranks, groups of three: the pattern repeats after 24.
  EXPECT_EQ(getParts(12288,
                     [](int64_t i) {
                       return llvm::is_contained({0, 9, 10}, i % 24);
                     }),
            "0+512x24 9+512x24+2x1 ");
}

TEST(StridedSet, AnySet) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    unsigned period = 1 + random() % 40, share = random() % 5;
    std::vector<bool> in(period);
    for (unsigned i = 0; i < period; ++i)
      in[i] = random() % 5 <= share;
    getParts(random() % 500, [&](int64_t i) { return in[i % period]; });
    getParts(random() % 500, [&](int64_t i) { return random() % 5 <= share; });
  }
}

} // namespace
