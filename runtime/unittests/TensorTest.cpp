//===- TensorTest.cpp -----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Tensor.h"

#include "TestUtils.h"

#include <numeric>
#include <random>

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
  auto offsetOf = [](const Shape &shape, const Shape &offset,
                     const Shape &size) {
    return contiguousOffset(shape, makeBox(offset, size));
  };
  EXPECT_EQ(offsetOf({4, 6}, {2, 0}, {2, 6}), 12);
  EXPECT_EQ(offsetOf({4, 6}, {1, 3}, {1, 3}), 9);
  EXPECT_EQ(offsetOf({4, 6}, {0, 3}, {4, 3}), std::nullopt);
  EXPECT_EQ(offsetOf({2, 4, 6}, {1, 2, 0}, {1, 2, 6}), 36);
  EXPECT_EQ(offsetOf({}, {}, {}), 0);
  EXPECT_EQ(offsetOf({4, 6}, {4, 3}, {0, 3}), 0); // any address will do
  EXPECT_EQ(contiguousOffset({6}, {{{{0, 2}, {3, 2}}}}), std::nullopt);
}

TEST(Tensor, ConvertFloats) {
  auto convert = [](Dtype to, const Tensor &tensor, size_t i) {
    Tensor converted = convertFloats(tensor, to);
    EXPECT_EQ(converted.dtype, to);
    EXPECT_EQ(converted.shape, tensor.shape);
    return loadAsDouble(to, converted.data.get(), i);
  };
  // 1 + 2^-11 and 1 + 3 * 2^-11 lie between two f16, 1 + 2^-8 between two bf16.
  Tensor f32 =
      makeTensor<float>(Dtype::F32, {2, 2},
                        {1.0f + 0x1p-11f, 1.0f + 0x3p-11f, 1.0f + 0x1p-8f, -2});
  EXPECT_EQ(convert(Dtype::F16, f32, 0), 1.0);
  EXPECT_EQ(convert(Dtype::F16, f32, 1), 1.0 + 0x1p-9);
  EXPECT_EQ(convert(Dtype::BF16, f32, 2), 1.0);
  EXPECT_EQ(convert(Dtype::F64, f32, 0), 1.0 + 0x1p-11);
  EXPECT_EQ(convertFloats(f32, Dtype::F32).data, f32.data);
  for (Dtype from : {Dtype::F16, Dtype::BF16, Dtype::F64})
    for (Dtype to : {Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::F64})
      EXPECT_EQ(convert(to, convertFloats(f32, from), 3), -2.0);
}

TEST(Tensor, CountCovered) {
  auto count = [](std::vector<Block> blocks) { return countCovered(blocks); };
  EXPECT_EQ(count({}), 0);
  EXPECT_EQ(count({makeBox({}, {}), makeBox({}, {})}), 1);
  // Side by side, replicated, overlapping, empty.
  EXPECT_EQ(count({makeBox({0, 0}, {2, 3}), makeBox({2, 0}, {2, 3})}), 12);
  EXPECT_EQ(count({makeBox({0, 0}, {2, 3}), makeBox({0, 0}, {2, 3})}), 6);
  EXPECT_EQ(count({makeBox({0, 0}, {2, 3}), makeBox({1, 1}, {2, 3})}), 10);
  EXPECT_EQ(count({makeBox({0, 0}, {2, 3}), makeBox({2, 0}, {0, 3})}), 6);
  // Two segments of three, each cut over two ranks; then a hole.
  Block first{{{{0, 2}, {3, 2}}}}, second{{{{2, 1}, {5, 1}}}};
  EXPECT_EQ(count({first, second}), 6);
  EXPECT_EQ(count({first}), 4);
}

TEST(Tensor, CountCoveredAtRandom) {
  std::mt19937 random(1);
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int test = 0; test < 2000; ++test) {
    Shape shape(draw(1, 3));
    for (int64_t &size : shape)
      size = draw(1, 7);
    std::vector<Block> blocks(draw(0, 6));
    for (Block &block : blocks)
      for (int64_t size : shape) {
        auto &pieces = block.dims.emplace_back();
        for (int64_t at = 0; at < size && pieces.size() < 3;) {
          int64_t begin = draw(at, size), end = draw(begin, size);
          pieces.push_back({begin, end - begin});
          at = end + draw(0, 1);
        }
      }
    // Element by element.
    int64_t expected = 0;
    for (int64_t i = 0; i < numElements(shape); ++i)
      expected +=
          std::any_of(blocks.begin(), blocks.end(), [&](const Block &b) {
            int64_t rest = i;
            for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
              int64_t at = rest % shape[d];
              if (std::none_of(b.dims[d].begin(), b.dims[d].end(),
                               [&](const Piece &piece) {
                                 return piece.offset <= at &&
                                        at < piece.offset + piece.size;
                               }))
                return false;
            }
            return true;
          });
    ASSERT_EQ(countCovered(blocks), expected);
  }
}

/// The rows 0, 1 and 3 and the columns 1 and 2 of a 4x3 tensor.
TEST(Tensor, BlockOfPieces) {
  Block block{{{{0, 2}, {3, 1}}, {{1, 2}}}};
  EXPECT_EQ(block.getShape(), (Shape{3, 2}));
  std::vector<int32_t> source(12), dense(6, -1), rebuilt(12, -1);
  std::iota(source.begin(), source.end(), 0);
  readBlock({4, 3}, block, 4, reinterpret_cast<std::byte *>(source.data()),
            reinterpret_cast<std::byte *>(dense.data()));
  EXPECT_EQ(dense, (std::vector<int32_t>{1, 2, 4, 5, 10, 11}));
  writeBlock({4, 3}, block, 4, reinterpret_cast<std::byte *>(dense.data()),
             reinterpret_cast<std::byte *>(rebuilt.data()));
  EXPECT_EQ(rebuilt,
            (std::vector<int32_t>{-1, 1, 2, -1, 4, 5, -1, -1, -1, -1, 10, 11}));
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
          Shape offset = {b / (n1 * n2) * size[0], b / n2 % n1 * size[1],
                          b % n2 * size[2]};
          Block block = makeBox(offset, size);
          std::vector<int32_t> dense(numElements(size), -1);
          readBlock(shape, block, 4, tensor.data.get(),
                    reinterpret_cast<std::byte *>(dense.data()));
          for (int64_t i = 0; i < numElements(size); ++i) {
            int64_t i0 = i / (size[1] * size[2]) + offset[0];
            int64_t i1 = i / size[2] % size[1] + offset[1];
            int64_t i2 = i % size[2] + offset[2];
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
  readBlock({4, 0}, makeBox({0, 0}, {2, 0}), 4,
            reinterpret_cast<const std::byte *>(&source),
            reinterpret_cast<std::byte *>(&target));
  EXPECT_EQ(target, 2);
}
