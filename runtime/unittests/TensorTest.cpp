//===- TensorTest.cpp ----------------------------------------------------===//

#include "tprt/Tensor.h"

#include "TestUtils.h"

#include <numeric>

using namespace tprt;
using namespace tprt::test;

TEST(Tensor, CheckedNumElements) {
  EXPECT_EQ(checkedNumElements({}), 1);
  EXPECT_EQ(checkedNumElements({2, 3}), 6);
  EXPECT_EQ(checkedNumElements({int64_t(1) << 62, 0, 8}), 0);
  EXPECT_EQ(checkedNumElements({int64_t(1) << 40, int64_t(1) << 40}),
            std::nullopt);
  EXPECT_EQ(checkedNumElements({-1}), std::nullopt);
}

TEST(Tensor, ContiguousOffset) {
  EXPECT_EQ(contiguousOffset({4, 6}, {{2, 0}, {2, 6}}), 12);
  EXPECT_EQ(contiguousOffset({4, 6}, {{1, 3}, {1, 3}}), 9);
  EXPECT_EQ(contiguousOffset({4, 6}, {{0, 3}, {4, 3}}), std::nullopt);
  EXPECT_EQ(contiguousOffset({2, 4, 6}, {{1, 2, 0}, {1, 2, 6}}), 36);
  EXPECT_EQ(contiguousOffset({}, {{}, {}}), 0);
}

/// Every block of every cut of a 4x6x2 tensor, element by element.
TEST(Tensor, ReadAndWriteBlocks) {
  Shape shape = {4, 6, 2};
  std::vector<int32_t> source(48);
  std::iota(source.begin(), source.end(), 0);
  Tensor tensor = makeTensor(Dtype::I32, shape, source);
  int numBlocks = 0;
  for (int64_t n0 : {1, 2, 4})
    for (int64_t n1 : {1, 2, 3, 6})
      for (int64_t n2 : {1, 2}) {
        std::vector<int32_t> rebuilt(48, -1);
        Shape size = {4 / n0, 6 / n1, 2 / n2};
        for (int64_t b = 0; b < n0 * n1 * n2; ++b, ++numBlocks) {
          Block block{{b / (n1 * n2) * size[0], b / n2 % n1 * size[1],
                       b % n2 * size[2]},
                      size};
          std::vector<int32_t> dense(numElements(size), -1);
          readBlock(shape, block, 4, tensor.data.get(),
                    reinterpret_cast<std::byte *>(dense.data()));
          for (int64_t i = 0; i < numElements(size); ++i) {
            int64_t i0 = i / (size[1] * size[2]) + block.offset[0];
            int64_t i1 = i / size[2] % size[1] + block.offset[1];
            int64_t i2 = i % size[2] + block.offset[2];
            ASSERT_EQ(dense[i], source[(i0 * 6 + i1) * 2 + i2]);
          }
          writeBlock(shape, block, 4,
                     reinterpret_cast<const std::byte *>(dense.data()),
                     reinterpret_cast<std::byte *>(rebuilt.data()));
        }
        EXPECT_EQ(rebuilt, source);
      }
  EXPECT_EQ(numBlocks, 7 * 12 * 3);
}

TEST(Tensor, EmptyBlock) {
  int32_t source = 1, target = 2;
  readBlock({4, 0}, {{0, 0}, {2, 0}}, 4,
            reinterpret_cast<const std::byte *>(&source),
            reinterpret_cast<std::byte *>(&target));
  EXPECT_EQ(target, 2);
}
