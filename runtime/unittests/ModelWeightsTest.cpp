//===- ModelWeightsTest.cpp - Parameters found in a model's files ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/ModelWeights.h"

#include "TestUtils.h"
#include "tprt/Weights.h"

#include <filesystem>

using namespace tprt;
using namespace tprt::test;

namespace {

/// A folder of a model, each of whose weights has one number throughout.
class Folder {
public:
  void add(const std::string &name, const Shape &shape, float value) {
    Tensor tensor = makeTensor(Dtype::F32, shape,
                               std::vector<float>(numElements(shape), value));
    sources.push_back(
        makeSource(name, Dtype::F32, shape, [tensor] { return tensor; }));
  }
  void write(const std::string &config) {
    writeSafetensors(directory / "", "model.safetensors", sources);
    directory.write("config.json", config);
  }
  ModelWeights read(const std::vector<TensorInfo> &parameters,
                    const ModelWeightsOptions &options = {}) {
    writeSafetensors(directory / "", "model.safetensors", sources);
    return readModelWeights(directory / "", parameters, options);
  }

  TestDirectory directory;

private:
  std::vector<TensorSource> sources;
};

} // namespace

static TensorInfo makeInfo(const std::string &name, const Shape &shape = {1},
                           Dtype dtype = Dtype::F32) {
  TensorInfo info;
  info.name = name;
  info.dtype = dtype;
  info.shape = shape;
  return info;
}

static float valueOf(const ModelWeights &weights, const std::string &name) {
  return getElements<float>(weights.tensors.at(name)).front();
}

TEST(ModelWeights, OwnNamesComeFirst) {
  Folder folder;
  folder.add("a.w", {1}, 1);
  folder.add("m.a.w", {1}, 2);
  ModelWeights weights = folder.read({makeInfo("a.w")}, {.allowUnused = true});
  EXPECT_EQ(valueOf(weights, "a.w"), 1);
  EXPECT_TRUE(weights.notes.empty());
}

TEST(ModelWeights, APrefixOfTheFiles) {
  Folder folder;
  folder.add("bert.a.w", {1}, 1);
  folder.add("bert.b.w", {1}, 2);
  folder.add("cls.w", {1}, 3);
  ModelWeights weights = folder.read({makeInfo("a.w"), makeInfo("b.w")});
  EXPECT_EQ(valueOf(weights, "a.w"), 1);
  EXPECT_EQ(valueOf(weights, "b.w"), 2);
  EXPECT_EQ(weights.tensors.size(), 2u);
  ASSERT_EQ(weights.notes.size(), 2u);
  EXPECT_TRUE(contains(weights.notes[0],
                       "has 2 weights with the prefix 'bert.': 'a.w' is "
                       "'bert.a.w' there"));
  EXPECT_TRUE(
      contains(weights.notes[1], "the program doesn't use 1 weight of"));
  EXPECT_TRUE(contains(weights.notes[1], "'cls.w'"));
}

TEST(ModelWeights, APrefixOfTheProgram) {
  Folder folder;
  folder.add("a.w", {1}, 1);
  folder.add("head.w", {1}, 2);
  // The head keeps its name, as in a model around another one.
  ModelWeights weights =
      folder.read({makeInfo("model.a.w"), makeInfo("head.w")});
  EXPECT_EQ(valueOf(weights, "model.a.w"), 1);
  EXPECT_EQ(valueOf(weights, "head.w"), 2);
  ASSERT_EQ(weights.notes.size(), 1u);
  EXPECT_TRUE(contains(weights.notes[0],
                       "has 1 weight without the prefix 'model.': 'model.a.w' "
                       "is 'a.w' there"));
}

TEST(ModelWeights, AWrappersPrefixStandsForAnother) {
  Folder folder;
  folder.add("transformer.a.w", {1}, 1);
  folder.add("transformer.b.w", {1}, 2);
  ModelWeights weights =
      folder.read({makeInfo("model.a.w"), makeInfo("model.b.w")});
  EXPECT_EQ(valueOf(weights, "model.a.w"), 1);
  EXPECT_EQ(valueOf(weights, "model.b.w"), 2);
  ASSERT_EQ(weights.notes.size(), 1u);
  EXPECT_TRUE(contains(weights.notes[0],
                       "has 2 weights with the prefix 'transformer.' instead "
                       "of 'model.': 'model.a.w' is 'transformer.a.w' there"));
  // Dropping 'x.' is the same as 'model.' instead of 'x.model.'.
  Folder inner;
  inner.add("model.a.w", {1}, 1);
  weights = inner.read({makeInfo("x.model.a.w")});
  EXPECT_EQ(valueOf(weights, "x.model.a.w"), 1);
  ASSERT_EQ(weights.notes.size(), 1u);
  EXPECT_TRUE(contains(weights.notes[0], "without the prefix 'x.'"));
  // Not if a parameter is left, or if the prefix tells parameters apart.
  EXPECT_TRUE(folder
                  .read({makeInfo("model.a.w"), makeInfo("model.c.w")},
                        {.allowUnused = true})
                  .tensors.empty());
  EXPECT_TRUE(folder
                  .read({makeInfo("model.a.w"), makeInfo("x.b.w")},
                        {.allowUnused = true})
                  .tensors.empty());
}

TEST(ModelWeights, TwoPrefixesAreAnError) {
  Folder folder;
  folder.add("encoder.w", {1}, 1);
  folder.add("decoder.w", {1}, 2);
  EXPECT_TRUE(contains(errorOf([&] { folder.read({makeInfo("w")}); }),
                       "under two names: with the prefix 'decoder.': 'w' is "
                       "'decoder.w' there, or with the prefix 'encoder.'"));
}

TEST(ModelWeights, AnotherParametersWeightIsNotTaken) {
  Folder folder;
  folder.add("m.w", {1}, 1);
  ModelWeights weights = folder.read({makeInfo("w"), makeInfo("m.w")});
  EXPECT_EQ(weights.tensors.size(), 1u);
  EXPECT_EQ(valueOf(weights, "m.w"), 1);
}

TEST(ModelWeights, NamesThatTransformersRenames) {
  Folder folder;
  folder.add("bert.LayerNorm.gamma", {1}, 1);
  folder.add("bert.LayerNorm.beta", {1}, 2);
  folder.add("embed_out.weight", {1}, 3);
  ModelWeights weights = folder.read({makeInfo("bert.LayerNorm.weight"),
                                      makeInfo("bert.LayerNorm.bias"),
                                      makeInfo("lm_head.weight")});
  EXPECT_EQ(valueOf(weights, "bert.LayerNorm.weight"), 1);
  EXPECT_EQ(valueOf(weights, "bert.LayerNorm.bias"), 2);
  EXPECT_EQ(valueOf(weights, "lm_head.weight"), 3);
  EXPECT_EQ(
      valueOf(folder.read({makeInfo("embed_out.weight")}), "embed_out.weight"),
      3);
}

TEST(ModelWeights, KeepsOldNamesBesideNewOnes) {
  Folder folder;
  folder.add("LayerNorm.gamma", {1}, 1);
  folder.add("LayerNorm.weight", {1}, 2);
  ModelWeights weights = folder.read({makeInfo("LayerNorm.weight")});
  EXPECT_EQ(valueOf(weights, "LayerNorm.weight"), 2);
  ASSERT_EQ(weights.notes.size(), 1u);
  EXPECT_TRUE(contains(weights.notes[0], "'LayerNorm.gamma'"));
}

TEST(ModelWeights, TiedEmbeddings) {
  std::vector<TensorInfo> parameters = {makeInfo("lm_head.weight", {4, 2}),
                                        makeInfo("norm.w")};
  auto read = [&](const std::string &config, bool isAmbiguous) {
    Folder folder;
    folder.add("embed.weight", {4, 2}, 1);
    folder.add("norm.w", {1}, 2);
    if (isAmbiguous)
      folder.add("other.weight", {4, 2}, 3);
    folder.write(config);
    return folder.read(parameters, {.allowUnused = true});
  };
  ModelWeights tied =
      read(R"({"tie_word_embeddings": true, "vocab_size": 4})", false);
  EXPECT_EQ(valueOf(tied, "lm_head.weight"), 1);
  ASSERT_EQ(tied.notes.size(), 1u);
  EXPECT_TRUE(contains(tied.notes[0], "has the weight 'lm_head.weight' as "
                                      "'embed.weight': its config.json ties"));
  EXPECT_EQ(read(R"({"tie_word_embeddings": true,
                     "text_config": {"vocab_size": 4}})",
                 false)
                .tensors.size(),
            2u);
  for (const char *config :
       {"{}", "[]", R"({"tie_word_embeddings": false, "vocab_size": 4})",
        R"({"tie_word_embeddings": true, "vocab_size": 5})"})
    EXPECT_FALSE(read(config, false).tensors.contains("lm_head.weight"));
  EXPECT_FALSE(read(R"({"tie_word_embeddings": true, "vocab_size": 4})", true)
                   .tensors.contains("lm_head.weight"));
  EXPECT_TRUE(contains(errorOf([&] { read("{", false); }), "config.json': "));
}

TEST(ModelWeights, ConversionsAreNoted) {
  Folder folder;
  folder.add("a", {1}, 1);
  folder.add("b", {1}, 1);
  folder.add("c", {1}, 1);
  ModelWeights weights = folder.read({makeInfo("a", {1}, Dtype::F16),
                                      makeInfo("b", {1}, Dtype::F64),
                                      makeInfo("c", {1}, Dtype::I32)});
  EXPECT_EQ(weights.notes,
            (std::vector<std::string>{
                "1 weight is converted from f32 to f64, in which the program "
                "computes",
                "1 weight is rounded from f32 to f16, in which the program "
                "computes"}));
}

TEST(ModelWeights, SurplusOfAFileIsLeftToTheCheck) {
  Folder folder;
  folder.add("a", {1}, 1);
  folder.add("b", {1}, 1);
  folder.read({});
  std::string file = folder.directory / "model.safetensors";
  EXPECT_EQ(readModelWeights(file, {makeInfo("a")}).tensors.size(), 2u);
  EXPECT_EQ(readModelWeights(file, {makeInfo("a")}, {.allowUnused = true})
                .tensors.size(),
            1u);
}
