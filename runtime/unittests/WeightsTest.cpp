//===- WeightsTest.cpp - Safetensors files written, and read by index -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Weights.h"

#include "TestUtils.h"

#include <nlohmann/json.hpp>

using namespace tprt;
using namespace tprt::test;
using nlohmann::json;

static TensorSource makeFloats(const std::string &name,
                               const std::vector<float> &values) {
  Tensor tensor =
      makeTensor(Dtype::F32, {static_cast<int64_t>(values.size())}, values);
  return makeSource(name, tensor.dtype, tensor.shape,
                    [tensor] { return tensor; });
}

static std::vector<TensorSource> makeSources() {
  return {makeFloats("a", {1, 2, 3}),
          makeFloats("b", std::vector<float>(16, 4)), makeFloats("c", {}),
          makeFloats("d", std::vector<float>(32, 5))};
}

static std::vector<std::vector<std::string>>
getNames(const std::vector<std::vector<TensorSource>> &files) {
  std::vector<std::vector<std::string>> names;
  for (const std::vector<TensorSource> &file : files) {
    names.emplace_back();
    for (const TensorSource &tensor : file)
      names.back().push_back(tensor.name);
  }
  return names;
}

using Names = std::vector<std::vector<std::string>>;

TEST(Weights, OneFile) {
  TestDirectory directory;
  WrittenFile written =
      writeSafetensors(directory / "", "w.safetensors", makeSources());
  EXPECT_EQ(written, checksumFile(directory / "", "w.safetensors"));
  EXPECT_EQ(directory.countFiles(), 1u);
  auto entries = readWeights(directory / "w.safetensors");
  EXPECT_EQ(entries.size(), 4u);
  EXPECT_EQ(getElements<float>(entries.at("a").tensor),
            (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(getElements<float>(entries.at("d").tensor),
            std::vector<float>(32, 5));
  // Blocks that can be used in place come first: aligned in the file.
  for (const char *name : {"b", "c", "d"})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(entries.at(name).data.get()) %
                  blockAlignment,
              0u);
}

TEST(Weights, FilesOfOneSize) {
  EXPECT_EQ(getNames(distributeOverFiles(makeSources(), 2)),
            (Names{{"d"}, {"b", "a", "c"}}));
  EXPECT_EQ(getNames(distributeOverFiles(makeSources(), 9)),
            (Names{{"d"}, {"b"}, {"a"}, {"c"}}));
  EXPECT_EQ(getNames(distributeOverFiles({}, 3)), Names{{}});
}

TEST(Weights, FilesOfAtMost) {
  EXPECT_EQ(getNames(distributeByBytes(makeSources(), 76)),
            (Names{{"a", "b", "c"}, {"d"}}));
  EXPECT_EQ(getNames(distributeByBytes(makeSources(), 1)),
            (Names{{"a"}, {"b"}, {"c"}, {"d"}}));
  EXPECT_EQ(getNames(distributeByBytes(makeSources(), 1000)),
            (Names{{"a", "b", "c", "d"}}));
}

TEST(Weights, ShardedLikeHuggingFaces) {
  TestDirectory directory;
  std::vector<WrittenFile> written = writeShardedSafetensors(
      directory / "", "model", distributeOverFiles(makeSources(), 3), 2);
  ASSERT_EQ(written.size(), 4u);
  EXPECT_EQ(written[1].name, "model-00002-of-00003.safetensors");
  json index =
      json::parse(readFile(directory / "model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], 12 + 64 + 128);
  EXPECT_EQ(index["weight_map"]["b"], "model-00002-of-00003.safetensors");
  for (const std::string &path :
       {directory / "", directory / "model.safetensors.index.json"}) {
    auto entries = readWeights(path);
    EXPECT_EQ(entries.size(), 4u);
    EXPECT_EQ(getElements<float>(entries.at("b").tensor),
              std::vector<float>(16, 4));
  }
}

TEST(Weights, EveryType) {
  TestDirectory directory;
  std::vector<TensorSource> sources;
  for (int32_t i = 0; i < numDtypes; ++i) {
    auto dtype = static_cast<Dtype>(i);
    Tensor tensor{dtype, {2, 3}, nullptr};
    auto data = allocateAligned(tensor.getNumBytes());
    std::memset(data.get(), i, tensor.getNumBytes());
    tensor.data = data;
    sources.push_back(makeSource(std::string(toString(dtype)), dtype,
                                 tensor.shape, [tensor] { return tensor; }));
  }
  writeSafetensors(directory / "", "w.safetensors", sources);
  auto entries = readWeights(directory / "w.safetensors");
  for (int32_t i = 0; i < numDtypes; ++i) {
    std::string name(toString(static_cast<Dtype>(i)));
    const Tensor &tensor = entries.at(name).tensor;
    EXPECT_EQ(tensor.getTypeString(), "2x3x" + name);
    EXPECT_EQ(static_cast<int>(tensor.data.get()[tensor.getNumBytes() - 1]), i);
  }
}

/// What the runtime doesn't compute with passes through.
TEST(Weights, KeepsUnknownTypes) {
  TestDirectory directory;
  auto bytes = allocateAligned(3);
  std::memcpy(bytes.get(), "xyz", 3);
  writeSafetensors(directory / "", "w.safetensors",
                   {{"u", "F8_E4M3", {3}, 3, [bytes] { return bytes; }}});
  SafetensorsEntry entry = readWeights(directory / "w.safetensors").at("u");
  EXPECT_FALSE(entry.isSupported);
  EXPECT_EQ(entry.dtypeName, "F8_E4M3");
  EXPECT_EQ(std::memcmp(entry.data.get(), "xyz", 3), 0);
  TensorSource again = makeSource("u", entry);
  EXPECT_EQ(again.numBytes, 3);
  EXPECT_EQ(again.read(), entry.data);
}

TEST(Weights, Errors) {
  TestDirectory directory;
  auto errorWith = [&](const char *index) {
    directory.write("model.safetensors.index.json", index);
    return errorOf([&] { readWeights(directory / ""); });
  };
  EXPECT_TRUE(contains(errorOf([&] { readWeights(directory / ""); }),
                       "holds neither model.safetensors nor"));
  EXPECT_TRUE(contains(errorWith("{"), "is not an index of safetensors files"));
  EXPECT_TRUE(contains(errorWith(R"({"weight_map": []})"),
                       "is not an index of safetensors files"));
  EXPECT_TRUE(contains(errorWith(R"({"weight_map": {"a": "m", "a": "n"}})"),
                       "'a' is listed twice"));
  EXPECT_TRUE(contains(errorWith(R"({"weight_map": {"a": 1}})"),
                       "tensor 'a' has no file: found 1"));
  EXPECT_TRUE(contains(errorWith(R"({"weight_map": {"a": "m"}})"),
                       "1 isn't there: 'm'"));
  writeSafetensors(directory / "", "m", makeSources());
  EXPECT_TRUE(contains(errorWith(R"({"weight_map": {"e": "m"}})"),
                       "has no tensor 'e', which '"));
}

TEST(Weights, IncompleteDirectories) {
  TestDirectory directory;
  directory.write("config.json", "{}");
  EXPECT_TRUE(contains(errorOf([&] { readWeights(directory / ""); }),
                       "model.safetensors.index.json, only the model's "
                       "configuration: download its weights as well"));
  for (std::string number : {"1", "2", "3"})
    directory.write("model-" + number + "-of-3.safetensors", "");
  EXPECT_TRUE(contains(errorOf([&] { readWeights(directory / ""); }),
                       "holds 'model-1-of-3.safetensors', "
                       "'model-2-of-3.safetensors' … (1 more), but not "
                       "model.safetensors.index.json"));
}

TEST(Weights, PicklesAreRefusedWithTheConversion) {
  TestDirectory directory;
  directory.write("pytorch_model.bin.index.json", "{}");
  std::string error = errorOf([&] { readWeights(directory / ""); });
  EXPECT_TRUE(contains(error, "holds pickles, pytorch_model*.bin"));
  EXPECT_TRUE(contains(error, "\npython3 -c \"import glob"));
}

TEST(Weights, AllMissingFilesOfAnIndexAreListed) {
  TestDirectory directory;
  writeSafetensors(directory / "", "m", makeSources());
  directory.write("model.safetensors.index.json",
                  R"({"weight_map": {"a": "m", "b": "n", "c": "o"}})");
  EXPECT_TRUE(contains(errorOf([&] { readWeights(directory / ""); }),
                       "names 3 files, of which 2 aren't there: 'n', 'o'"));
}

/// What somebody else wrote must not have files read that are none of its own.
TEST(Weights, AnIndexStaysInItsDirectory) {
  TestDirectory directory;
  std::filesystem::create_directory(directory / "sub");
  writeSafetensors(directory / "", "m", makeSources());
  std::string name = makeSources().front().name;
  auto read = [&](const std::string &file, bool mayLeadOutside) {
    std::string index =
        directory.write("sub/i.json", R"({"weight_map": {")" + name +
                                          R"(": ")" + file + R"("}})");
    return readWeights(index, mayLeadOutside);
  };
  for (std::string file : {"../m", "./../m", "x/../../m", "..", "../sub/../m"})
    EXPECT_TRUE(contains(errorOf([&] { read(file, false); }),
                         "outside of the index's directory"));
  EXPECT_TRUE(contains(errorOf([&] { read("/etc/passwd", false); }),
                       "expected a path relative to the index"));
  EXPECT_EQ(read("../m", true).size(), 1u);
  EXPECT_EQ(listWeightFiles(directory / "sub/i.json", true),
            (std::vector<std::string>{directory / "sub/../m",
                                      directory / "sub/i.json"}));
  EXPECT_EQ(listWeightFiles(directory / "m"),
            std::vector<std::string>{directory / "m"});
  std::filesystem::rename(directory / "m", directory / "sub/m");
  EXPECT_EQ(read("x/../m", false).size(), 1u);
}

TEST(Weights, AFailingTensorLeavesNoFile) {
  TestDirectory directory;
  std::vector<std::vector<TensorSource>> files = {{makeFloats("a", {1})},
                                                  {makeFloats("b", {1})}};
  files[1][0].read = []() -> std::shared_ptr<const std::byte> {
    throw executionError("no value");
  };
  EXPECT_EQ(
      errorOf([&] { writeShardedSafetensors(directory / "", "m", files, 2); }),
      "no value");
  EXPECT_FALSE(
      std::filesystem::exists(directory / "m-00002-of-00002.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(directory / "m.safetensors.index.json"));
}
