//===- DatasetTest.cpp - Examples and the order they are taken in ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Dataset.h"

#include "TrainPrograms.h"

#include <numeric>
#include <set>

using namespace tprt;
using namespace tprt::test;

static std::vector<int64_t> getOrder(int64_t count, uint64_t seed,
                                     int64_t epoch) {
  EpochOrder order(count, seed, epoch);
  std::vector<int64_t> examples;
  for (int64_t i = 0; i < count; ++i)
    examples.push_back(order[i]);
  return examples;
}

TEST(EpochOrder, IsAPermutation) {
  for (int64_t count : {1, 2, 3, 4, 5, 7, 8, 16, 17, 100, 257, 1000, 4097})
    for (uint64_t seed : {0, 1, 12345}) {
      std::vector<int64_t> order = getOrder(count, seed, 3);
      std::vector<int64_t> expected(count);
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_TRUE(std::is_permutation(order.begin(), order.end(),
                                      expected.begin(), expected.end()))
          << count;
    }
}

TEST(EpochOrder, DependsOnSeedAndEpochAlone) {
  EXPECT_EQ(getOrder(100, 1, 2), getOrder(100, 1, 2));
  EXPECT_NE(getOrder(100, 1, 2), getOrder(100, 1, 3));
  EXPECT_NE(getOrder(100, 1, 2), getOrder(100, 2, 2));
  // Checkpoints rely on these orders: they never change.
  EXPECT_EQ(getOrder(8, 0, 0), (std::vector<int64_t>{4, 6, 0, 1, 2, 5, 3, 7}));
  EXPECT_EQ(getOrder(8, 7, 1), (std::vector<int64_t>{3, 7, 1, 5, 6, 2, 4, 0}));
}

/// Each example is as likely at each place: a chi-squared test with 49 degrees
/// of freedom, whose 99.99 % quantile is 97.
TEST(EpochOrder, LooksRandom) {
  constexpr int64_t count = 50, epochs = 5000;
  for (int64_t place : {0, 1, 25, 49}) {
    std::vector<int64_t> seen(count);
    for (int64_t epoch = 0; epoch < epochs; ++epoch)
      ++seen[EpochOrder(count, 42, epoch)[place]];
    double chi = 0, expected = double(epochs) / count;
    for (int64_t n : seen)
      chi += (n - expected) * (n - expected) / expected;
    EXPECT_LT(chi, 97) << place;
  }
}

namespace {

class Data : public testing::Test {
protected:
  Manifest parse(const std::string &name,
                 std::function<void(nlohmann::json &)> edit = {}) {
    nlohmann::json manifest = readTrainManifest(name);
    if (edit)
      edit(manifest);
    return Manifest::parse(manifest.dump());
  }
  /// x[e][f] = 10 e + f, target[e] = e.
  std::map<std::string, std::string> writeExamples(int64_t count) {
    std::vector<float> x, target;
    for (int64_t e = 0; e < count; ++e) {
      target.push_back(e);
      for (int64_t f = 0; f < 7; ++f)
        x.push_back(10 * e + f);
    }
    writeNpy(directory / "x.npy", makeTensor(Dtype::F32, {count, 7}, x));
    writeNpy(directory / "t.npy", makeTensor(Dtype::F32, {count}, target));
    return {{"x", directory / "x.npy"}, {"target", directory / "t.npy"}};
  }
  template <typename T>
  std::string writeArray(const std::string &name, const std::string &descr,
                         const std::string &shape,
                         const std::vector<T> &elements) {
    std::string header = "{'descr': '" + descr +
                         "', 'fortran_order': False, 'shape': " + shape + "}\n";
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(header.size());
    bytes += '\0';
    bytes += header;
    bytes.append(reinterpret_cast<const char *>(elements.data()),
                 elements.size() * sizeof(T));
    return directory.write(name, bytes);
  }

  TestDirectory directory;
};

} // namespace

TEST_F(Data, BatchesInTheOrderOfTheFiles) {
  Dataset data = Dataset::fromArrays(parse("train.2"), writeExamples(20));
  EXPECT_EQ(data.getNumExamples(), 20);
  EXPECT_EQ(data.getBatchSize(), 8);
  TensorMap batch = data.getBatch(8, {});
  EXPECT_EQ(getElements<float>(batch.at("target")),
            (std::vector<float>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(getElements<float>(batch.at("x"))[7 * 3 + 2], 112);
  // Four that are left over, and four of the next epoch.
  EXPECT_EQ(getElements<float>(data.getBatch(16, {}).at("target")),
            (std::vector<float>{16, 17, 18, 19, 0, 1, 2, 3}));
}

/// By the blocks of the program that runs, which may be another than the one
/// that the data were opened for.
TEST_F(Data, BatchesOfSomeRanksHaveTheirRows) {
  Dataset data = Dataset::fromArrays(parse("train.2"), writeExamples(20));
  Manifest manifest = parse("train.3"); // 3, 3 and 2 rows
  std::vector<float> whole = getElements<float>(data.getBatch(8, 3).at("x"));
  auto check = [&](const std::vector<int64_t> &ranks, int64_t begin,
                   int64_t end) {
    std::vector<float> part =
        getElements<float>(data.getBatch(8, 3, manifest, ranks).at("x"));
    EXPECT_TRUE(std::equal(whole.begin() + 7 * begin, whole.begin() + 7 * end,
                           part.begin() + 7 * begin));
  };
  check({0}, 0, 3);
  check({2}, 6, 8);
  check({1, 2}, 3, 8);
  check({0, 1, 2}, 0, 8);
}

TEST_F(Data, ShuffledBatchesTakeEachExampleOncePerEpoch) {
  Dataset data = Dataset::fromArrays(parse("train.2"), writeExamples(20));
  std::vector<float> taken;
  for (int64_t position = 0; position < 40; position += 8) {
    TensorMap batch = data.getBatch(position, 5);
    std::vector<float> x = getElements<float>(batch.at("x"));
    std::vector<float> target = getElements<float>(batch.at("target"));
    for (size_t e = 0; e < 8; ++e)
      EXPECT_EQ(x[e * 7], 10 * target[e]); // rows belong together
    taken.insert(taken.end(), target.begin(), target.end());
  }
  std::vector<float> first(taken.begin(), taken.begin() + 20);
  std::vector<float> second(taken.begin() + 20, taken.end());
  EXPECT_NE(first, second);
  EXPECT_EQ(std::set<float>(first.begin(), first.end()).size(), 20u);
  EXPECT_EQ(std::set<float>(second.begin(), second.end()).size(), 20u);
  std::vector<int64_t> order = getOrder(20, 5, 0);
  EXPECT_EQ(first, std::vector<float>(order.begin(), order.end()));
}

/// Narrower types are widened; rows needn't be aligned.
TEST_F(Data, ConvertsWhatIsExact) {
  Manifest manifest = parse("tokens");
  std::vector<uint16_t> ids(15);
  std::iota(ids.begin(), ids.end(), 65521);
  std::vector<int8_t> target(15, -1);
  Dataset data = Dataset::fromArrays(
      manifest, {{"ids", writeArray("i.npy", "<u2", "(5, 3)", ids)},
                 {"target", writeArray("t.npy", "|i1", "(5, 3)", target)}});
  TensorMap batch = data.getBatch(0, {});
  EXPECT_EQ(getElements<int64_t>(batch.at("ids"))[11], 65532);
  EXPECT_EQ(getElements<int64_t>(batch.at("target"))[0], -1);

  Manifest half = parse("train.2", [](nlohmann::json &manifest) {
    manifest["programs"][0]["inputs"][0]["dtype"] = "bf16";
    manifest["programs"][0]["inputs"][1]["dtype"] = "f64";
  });
  TensorMap mixed = Dataset::fromArrays(half, writeExamples(8)).getBatch(0, {});
  EXPECT_EQ(loadAsDouble(Dtype::BF16, mixed.at("x").data.get(), 7), 10);
  EXPECT_EQ(getElements<double>(mixed.at("target"))[7], 7);
}

TEST_F(Data, BadArrays) {
  Manifest manifest = parse("train.2");
  auto good = writeExamples(20);
  auto errorWith = [&](const std::string &input, const std::string &path) {
    auto paths = good;
    paths[input] = path;
    return errorOf([&] { Dataset::fromArrays(manifest, paths); });
  };
  EXPECT_TRUE(contains(
      errorWith("x",
                writeArray("w.npy", "<f4", "(20, 2)", std::vector<float>(40))),
      "w.npy' has shape (20, 2), expected (examples, 7) for input 'x' of type "
      "8x7xf32"));
  EXPECT_TRUE(
      contains(errorWith("target", writeArray("w.npy", "<f4", "()",
                                              std::vector<float>(1))),
               "has shape (), expected (examples,) for input 'target'"));
  EXPECT_TRUE(contains(
      errorWith(
          "x", writeArray("w.npy", "<f8", "(20, 7)", std::vector<double>(140))),
      "w.npy' has elements of type 'f8', input 'x' is f32, which doesn't hold "
      "them all exactly: save a.astype('float32')"));
  EXPECT_TRUE(contains(errorWith("target", writeArray("w.npy", "<f4", "(19,)",
                                                      std::vector<float>(19))),
                       "examples, '"));
  EXPECT_TRUE(contains(errorWith("y", good["x"]),
                       "the program has no input 'y', expected 'x', "
                       "'target'"));
  EXPECT_TRUE(contains(
      errorOf([&] { Dataset::fromArrays(manifest, writeExamples(7)); }),
      "has 7 examples, too few for a batch of 8"));
  Manifest scalar = parse("train.2", [](nlohmann::json &manifest) {
    manifest["programs"][0]["inputs"][1]["shape"] = nlohmann::json::array();
    manifest["programs"][0]["inputs"][1]["shards"] = {nlohmann::json::array(),
                                                      nlohmann::json::array()};
  });
  EXPECT_TRUE(
      contains(errorOf([&] { Dataset::fromArrays(scalar, writeExamples(20)); }),
               "input 'target' is a scalar"));
  Manifest uneven = parse("train.2", [](nlohmann::json &manifest) {
    manifest["programs"][0]["inputs"][1]["shape"] = {4};
    manifest["programs"][0]["inputs"][1]["shards"] = {{{0, 2}}, {{2, 2}}};
  });
  EXPECT_TRUE(
      contains(errorOf([&] { Dataset::fromArrays(uneven, writeExamples(20)); }),
               "has 8 rows, input 'target' has 4: batches need one size"));
}

template <typename T>
static std::string toBytes(int64_t count) {
  std::vector<T> tokens(count);
  std::iota(tokens.begin(), tokens.end(), T(0));
  return {reinterpret_cast<const char *>(tokens.data()), count * sizeof(T)};
}

TEST_F(Data, WindowsOfTokens) {
  Manifest manifest = parse("tokens");
  struct Case {
    const char *type;
    std::string bytes;
  };
  for (const Case &c :
       {Case{"u16", toBytes<uint16_t>(17)}, Case{"u32", toBytes<uint32_t>(17)},
        Case{"i32", toBytes<int32_t>(17)}, Case{"i64", toBytes<int64_t>(17)}}) {
    Dataset data =
        Dataset::fromTokens(manifest, directory.write("tokens.bin", c.bytes),
                            *parseTokenType(c.type), "ids", "target");
    // The 16 tokens before the last one are five windows and a rest.
    EXPECT_EQ(data.getNumExamples(), 5);
    EXPECT_EQ(data.getTokensPerExample(), 3);
    TensorMap batch = data.getBatch(1, {});
    std::vector<int64_t> ids = getElements<int64_t>(batch.at("ids"));
    std::vector<int64_t> expected(12);
    std::iota(expected.begin(), expected.end(), 3);
    EXPECT_EQ(ids, expected);
    std::iota(expected.begin(), expected.end(), 4);
    EXPECT_EQ(getElements<int64_t>(batch.at("target")), expected);
  }
  EXPECT_FALSE(parseTokenType("u8"));
}

TEST_F(Data, BadTokenFiles) {
  Manifest manifest = parse("tokens");
  auto errorWith = [&](const std::string &bytes, const Manifest &manifest,
                       TokenType type = TokenType::U16,
                       const std::string &target = "target") {
    return errorOf([&] {
      Dataset::fromTokens(manifest, directory.write("t.bin", bytes), type,
                          "ids", target);
    });
  };
  EXPECT_TRUE(
      contains(errorWith("abc", manifest),
               "t.bin' has 3 bytes, which isn't a multiple of a token's "
               "2"));
  EXPECT_TRUE(contains(errorWith(toBytes<uint16_t>(12), manifest),
                       "t.bin' has 12 tokens, which are 3 examples, too few "
                       "for a batch of 4"));
  EXPECT_TRUE(contains(errorWith("", manifest), "has 0 tokens"));
  EXPECT_TRUE(contains(
      errorWith(toBytes<uint16_t>(40), manifest, TokenType::U16, "labels"),
      "the program has no input 'labels'"));
  EXPECT_TRUE(
      contains(errorWith(toBytes<float>(80), parse("train.2"), TokenType::U16),
               "the program has no input 'ids'"));
  Manifest narrow = parse("tokens", [](nlohmann::json &manifest) {
    manifest["programs"][0]["inputs"][0]["dtype"] = "i32";
  });
  EXPECT_TRUE(
      contains(errorWith(toBytes<uint32_t>(40), narrow, TokenType::U32),
               "input 'ids' is i32, which doesn't hold all tokens of '"));
}
