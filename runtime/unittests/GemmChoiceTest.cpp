//===- GemmChoiceTest.cpp - Tests of the choice of GEMM implementations ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/GemmChoice.h"
#include "TestUtils.h"
#include "cpu/Gemm.h"

#include <filesystem>
#include <nlohmann/json.hpp>

using namespace tprt;
using namespace tprt::test;
using nlohmann::json;

/// x (m x k) * w, stored n x k: of `batch` consecutive batches.
static OpInfo makeOp(int64_t m, int64_t n, int64_t k, int64_t batch = 1) {
  OpInfo op;
  op.kind = "gemm";
  op.dtype = Dtype::F32;
  tprt_gemm_args &args = op.product.emplace();
  args.batch0 = 1;
  args.batch1 = batch;
  args.m = m;
  args.n = n;
  args.k = k;
  args.a_row = k;
  args.a_col = 1;
  args.a_b1 = m * k;
  args.b_row = 1;
  args.b_col = k;
  args.c_row = n;
  args.c_b1 = m * n;
  op.isWeight = true;
  return op;
}

namespace {

class GemmChoiceTest : public ::testing::Test {
protected:
  GemmChoiceTest() {
    // The second is too small; batches of the third are rows of the first; the
    // last one is a vector's, f64 has no choice.
    manifest.ops = {makeOp(128, 160, 96), makeOp(8, 8, 8),
                    makeOp(64, 160, 96, 2), makeOp(1, 2000, 2000),
                    makeOp(192, 160, 96)};
    manifest.ops.push_back(makeOp(256, 160, 96));
    manifest.ops.back().dtype = Dtype::F64;
    options.file = directory / "p.tpx.gemm.json";
    options.maxSeconds = 60; // of a busy machine
  }

  json readJson() { return json::parse(readFile(options.file)); }
  void write(const std::string &text) { std::ofstream(options.file) << text; }
  GemmChoices choose(bool mayMeasure = true) {
    return chooseGemms(manifest, options, 1, mayMeasure);
  }

  TestDirectory directory;
  Manifest manifest;
  GemmOptions options;
};

} // namespace

TEST_F(GemmChoiceTest, MeasuresLargeProductsOnce) {
  GemmChoices choices = choose();
  EXPECT_EQ(choices.note, "");
  EXPECT_EQ(choices.file, options.file);
  ASSERT_EQ(choices.products.size(), 2u);
  EXPECT_EQ(choices.products[0].product,
            (Product{192, 160, 96, false, true, true}));
  EXPECT_EQ(choices.products[1].product,
            (Product{128, 160, 96, false, true, true}));
  for (const GemmChoice &choice : choices.products) {
    EXPECT_TRUE(choice.seconds.contains(GemmLibrary::Tiles));
    EXPECT_TRUE(choice.seconds.contains(GemmLibrary::OpenBlas));
    for (auto [library, seconds] : choice.seconds)
      EXPECT_GT(seconds, 0);
    EXPECT_LE(choice.seconds.at(choice.library),
              choice.seconds.at(GemmLibrary::Tiles));
    EXPECT_EQ(choices.get(choice.product), choice.library);
  }
  EXPECT_EQ(choices.get({192, 160, 97, false, true, true}), GemmLibrary::Tiles);

  std::string kept = readFile(options.file);
  GemmChoices again = choose();
  EXPECT_EQ(readFile(options.file), kept);
  ASSERT_EQ(again.products.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(again.products[i].product, choices.products[i].product);
    EXPECT_EQ(again.products[i].seconds, choices.products[i].seconds);
  }
}

/// What the file says holds, whatever is fastest, also where nothing may be
/// measured.
TEST_F(GemmChoiceTest, ReadsWhatWasChosen) {
  choose();
  json document = readJson();
  for (json &product : document["machines"][0]["products"])
    product["library"] = product["m"] == 192 ? "openblas" : "tiles";
  write(document.dump());
  for (bool mayMeasure : {false, true}) {
    GemmChoices choices = choose(mayMeasure);
    EXPECT_EQ(choices.note, "");
    EXPECT_EQ(choices.products[0].library, GemmLibrary::OpenBlas);
    EXPECT_EQ(choices.products[1].library, GemmLibrary::Tiles);
  }
}

TEST_F(GemmChoiceTest, MeasuresWhatTheFileLacks) {
  choose();
  manifest.ops.push_back(makeOp(300, 160, 96));
  EXPECT_TRUE(contains(choose(/*mayMeasure=*/false).note, "don't measure"));
  GemmChoices choices = choose();
  EXPECT_EQ(choices.note, "");
  ASSERT_EQ(choices.products.size(), 3u);
  EXPECT_EQ(choices.products[0].product.m, 300);
  EXPECT_EQ(readJson()["machines"][0]["products"].size(), 3u);
}

/// What the time doesn't suffice for stays with tiles, also the next time.
TEST_F(GemmChoiceTest, EndsInTime) {
  options.maxSeconds = 0;
  for (int i = 0; i < 2; ++i) {
    GemmChoices choices = choose();
    ASSERT_EQ(choices.products.size(), 2u);
    EXPECT_EQ(choices.products[0].library, GemmLibrary::Tiles);
    EXPECT_TRUE(choices.products[0].seconds.empty());
    options.maxSeconds = 1;
  }
}

TEST_F(GemmChoiceTest, KeepsChoicesOfOtherMachines) {
  choose();
  json document = readJson();
  document["machines"][0]["processor"] = "another one";
  write(document.dump());
  GemmChoices choices = choose();
  EXPECT_TRUE(contains(choices.note, "has no entry for this machine"));
  EXPECT_EQ(choices.products.size(), 2u);
  document = readJson();
  ASSERT_EQ(document["machines"].size(), 2u);
  EXPECT_EQ(document["machines"][0]["processor"], "another one");
  EXPECT_EQ(choose().note, "");
  // As other numbers of threads are.
  EXPECT_TRUE(
      contains(chooseGemms(manifest, options, 7).note, "number of threads"));
  EXPECT_EQ(readJson()["machines"].size(), 3u);
}

/// Whatever this machine's entry is.
TEST_F(GemmChoiceTest, KeepsOtherMachinesBesideABadEntry) {
  choose();
  json document = readJson();
  json other = document["machines"][0];
  other["processor"] = "another one";
  document["machines"][0]["products"][0]["m"] = nullptr;
  for (bool isFirst : {false, true}) {
    json &machines = document["machines"];
    machines.insert(isFirst ? machines.begin() : machines.end(), other);
    write(document.dump());
    GemmChoices choices = choose();
    EXPECT_TRUE(contains(choices.note, "holds no choices for this machine: "
                                       "found null, expected an integer"))
        << choices.note;
    EXPECT_EQ(choices.products.size(), 2u);
    json kept = readJson();
    ASSERT_EQ(kept["machines"].size(), 2u + isFirst);
    EXPECT_EQ(kept["machines"][0], other);
    EXPECT_EQ(choose().note, "");
  }
}

TEST_F(GemmChoiceTest, ReplacesWhatIsNoChoice) {
  choose();
  json good = readJson(), schema = good, library = good, order = good,
       type = good;
  schema["schema"] = 9;
  library["machines"][0]["products"][0]["library"] = "mkl";
  order["machines"][0]["products"][0]["a"] = "tiles";
  type["machines"][0]["products"][0]["m"] = "many";
  for (auto [text, message] :
       std::initializer_list<std::pair<std::string, std::string>>{
           {"", "parse error"},
           {"{\"schema\": 1, \"machi", "parse error"},
           {"[]", "type_error"},
           {"{\"schema\": 1, \"machines\": 3}", "type_error"},
           {schema.dump(), "schema 9, expected 1"},
           {library.dump(), "'mkl' isn't a known library"},
           {order.dump(), "'tiles' is neither 'rows' nor 'columns'"},
           {type.dump(), "found \"many\", expected an integer"}}) {
    write(text);
    GemmChoices choices = choose();
    EXPECT_TRUE(contains(choices.note, "holds no choices")) << choices.note;
    EXPECT_TRUE(contains(choices.note, message)) << choices.note;
    EXPECT_EQ(choices.products.size(), 2u);
    EXPECT_EQ(readJson()["machines"].size(), 1u);
    EXPECT_EQ(choose().note, "");
  }
}

/// Without a file, choices could differ from run to run: there are none.
TEST_F(GemmChoiceTest, ChoosesNothingThatItCantKeep) {
  options.file = directory / "missing/p.json";
  GemmChoices choices = choose();
  EXPECT_TRUE(contains(choices.note, "can't be written")) << choices.note;
  EXPECT_TRUE(choices.products.empty());
  std::filesystem::create_directories(directory / "p.json");
  options.file = directory / "p.json"; // a directory
  choices = choose();
  EXPECT_NE(choices.note, "");
  EXPECT_TRUE(choices.products.empty());
}

TEST_F(GemmChoiceTest, DoesAsItIsTold) {
  options.library = GemmLibrary::OpenBlas;
  GemmChoices choices = choose();
  EXPECT_EQ(choices.get({2, 2, 2, false, false, false}), GemmLibrary::OpenBlas);
  EXPECT_FALSE(std::filesystem::exists(options.file));
  options.library = GemmLibrary::OneDnn;
  if (getVersion(GemmLibrary::OneDnn))
    EXPECT_EQ(choose().library, GemmLibrary::OneDnn);
  else
    EXPECT_THROW(choose(), Error);
}
