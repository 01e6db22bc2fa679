//===- ProgramChoiceTest.cpp ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/ProgramChoice.h"

#include "TestUtils.h"

#include <numeric>
#include <random>

using namespace tprt;
using namespace tprt::test;

static TensorInfo makeInfo(const std::string &name, Dtype dtype,
                           const Shape &shape,
                           const std::vector<std::string> &symbolic) {
  TensorInfo info;
  info.name = name;
  info.dtype = dtype;
  info.shape = shape;
  info.shards = {makeBox(Shape(shape.size()), shape)};
  for (const std::string &text : symbolic)
    info.symbolicShape.push_back(SymbolicSize::parse(text));
  return info;
}

/// A program for ids of (batch, length) and a mask of (batch, 2 length + 1).
static Program makeProgram(int64_t batch, int64_t length) {
  Program program;
  program.name = std::to_string(batch) + "x" + std::to_string(length);
  program.inputs = {makeInfo("ids", Dtype::I64, {batch, length}, {"b", "s"}),
                    makeInfo("mask", Dtype::F32, {batch, 2 * length + 1, 3},
                             {"b", "2*s+1", "3"})};
  program.outputs = {
      makeInfo("same", Dtype::I64, {batch, length}, {"b", "s"}),
      makeInfo("rows", Dtype::F32, {5, 3 * length}, {"5", "3*s"})};
  program.symbols = {{"b", batch}, {"s", length}};
  return program;
}

static Manifest makeManifest(std::vector<Program> programs) {
  Manifest manifest;
  manifest.programs = std::move(programs);
  return manifest;
}

static Tensor makeRange(Dtype dtype, const Shape &shape) {
  if (dtype == Dtype::F32) {
    std::vector<float> elements(numElements(shape));
    std::iota(elements.begin(), elements.end(), 1.0f);
    return makeTensor(dtype, shape, elements);
  }
  std::vector<int64_t> elements(numElements(shape));
  std::iota(elements.begin(), elements.end(), 1);
  return makeTensor(dtype, shape, elements);
}

static TensorMap makeInputs(int64_t batch, int64_t length) {
  return {{"ids", makeRange(Dtype::I64, {batch, length})},
          {"mask", makeRange(Dtype::F32, {batch, 2 * length + 1, 3})}};
}

static const ProgramQuery padAll{.program = "",
                                 .pad = {{"ids", -1}, {"mask", 0.5}}};

/// Inputs of random sizes get the smallest program that has room for them, and
/// what they lose by padding and cutting is nothing.
TEST(ProgramChoice, IsTheSmallestThatFits) {
  std::mt19937 random(1);
  auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Program> programs;
    for (int64_t i = draw(1, 6); i > 0; --i)
      programs.push_back(makeProgram(draw(1, 4), draw(0, 9)));
    Manifest manifest = makeManifest(programs);
    int64_t batch = draw(0, 4), length = draw(0, 9);
    TensorMap inputs = makeInputs(batch, length);
    const Program *best = nullptr;
    auto getSize = [](const Program &program) {
      int64_t batch = program.symbols.at("b"), length = program.symbols.at("s");
      return batch * length + 3 * batch * (2 * length + 1);
    };
    for (const Program &program : manifest.programs)
      if (batch <= program.symbols.at("b") &&
          length <= program.symbols.at("s") &&
          (!best || getSize(program) < getSize(*best)))
        best = &program;
    if (!best) {
      EXPECT_THROW(chooseProgram(manifest, inputs, padAll), Error);
      continue;
    }
    ProgramChoice choice = chooseProgram(manifest, inputs, padAll);
    EXPECT_EQ(choice.program, best);
    EXPECT_EQ(choice.symbols.at("b"), batch);
    EXPECT_EQ(choice.symbols.at("s"), length);
    TensorMap padded = padInputs(choice, inputs, padAll);
    EXPECT_EQ(checkTensors(best->inputs, padded, "input", false), "");
    TensorMap outputs = cutOutputs(
        choice, {{"same", padded.at("ids")},
                 {"rows", makeRange(Dtype::F32, best->outputs[1].shape)}});
    EXPECT_EQ(outputs.at("same").shape, (Shape{batch, length}));
    EXPECT_EQ(getElements<int64_t>(outputs.at("same")),
              getElements<int64_t>(inputs.at("ids")));
    EXPECT_EQ(outputs.at("rows").shape, (Shape{5, 3 * length}));
    // Without padding only a program of these sizes does.
    if (choice.isPadded)
      EXPECT_THROW(chooseProgram(manifest, inputs), Error);
    else
      EXPECT_EQ(chooseProgram(manifest, inputs).program, best);
  }
}

TEST(ProgramChoice, PadsAtTheEnd) {
  Manifest manifest = makeManifest({makeProgram(2, 3)});
  TensorMap inputs = makeInputs(1, 2);
  ProgramChoice choice = chooseProgram(manifest, inputs, padAll);
  EXPECT_EQ(getElements<int64_t>(padInputs(choice, inputs, padAll).at("ids")),
            (std::vector<int64_t>{1, 2, -1, -1, -1, -1}));
}

TEST(ProgramChoice, PrefersTheInputsOwnType) {
  Program half = makeProgram(1, 2), single = half;
  half.inputs[1].dtype = Dtype::BF16;
  half.name = "half";
  Manifest manifest = makeManifest({half, single});
  TensorMap inputs = makeInputs(1, 2);
  EXPECT_EQ(chooseProgram(manifest, inputs).program, &manifest.programs[1]);
  manifest.programs.pop_back();
  EXPECT_EQ(chooseProgram(manifest, inputs).program, &manifest.programs[0]);
}

static std::string errorWith(const Manifest &manifest, const TensorMap &inputs,
                             const ProgramQuery &query = padAll) {
  return errorOf([&] { chooseProgram(manifest, inputs, query); });
}

TEST(ProgramChoice, SaysWhyNothingFits) {
  Manifest manifest = makeManifest({makeProgram(1, 4), makeProgram(2, 8)});
  EXPECT_EQ(errorWith(manifest, makeInputs(2, 9)),
            "no program takes these inputs:\n"
            "program '1x4': dimension 0 of input 'ids' is 2, expected 1 at "
            "most\n"
            "program '2x8': dimension 1 of input 'ids' is 9, expected 8 at "
            "most");
  EXPECT_EQ(errorWith(manifest, makeInputs(2, 8), {.program = "1x4", .pad = {}})
                .substr(0, 51),
            "no program takes these inputs:\nprogram '1x4': input");
  manifest.programs.pop_back();
  TensorMap inputs = makeInputs(1, 3);
  EXPECT_EQ(errorWith(manifest, inputs, {.program = "", .pad = {{"ids", 0}}}),
            "dimension 1 of input 'mask' is 7, expected 9; there is no value "
            "to pad this input with");
  inputs["mask"] = makeRange(Dtype::F32, {1, 6, 3});
  EXPECT_EQ(errorWith(manifest, inputs),
            "dimension 1 of input 'mask' is 6, expected a size of the form "
            "2*s+1");
  inputs["mask"] = makeRange(Dtype::F32, {1, 9, 3});
  EXPECT_EQ(errorWith(manifest, inputs),
            "dimension 1 of input 'mask' is 9, so s would be 4, but it is 3 "
            "in the inputs before it");
  inputs["mask"] = makeRange(Dtype::F32, {1, 7, 2});
  EXPECT_EQ(errorWith(manifest, inputs),
            "dimension 2 of input 'mask' is 2, expected 3, since its size "
            "isn't a multiple of a symbol but '3'");
  inputs["mask"] = makeRange(Dtype::F32, {1, 7});
  EXPECT_EQ(errorWith(manifest, inputs),
            "input 'mask' has type 1x7xf32, expected 1x9x3xf32");
}

TEST(ProgramChoice, ChecksTheQuery) {
  Manifest manifest = makeManifest({makeProgram(1, 4)});
  TensorMap inputs = makeInputs(1, 4);
  EXPECT_EQ(errorWith(manifest, inputs, {.program = "1x5", .pad = {}}),
            "there is no program '1x5', expected '1x4' (did you mean '1x4'?)");
  EXPECT_EQ(errorWith(manifest, inputs, {.program = "", .pad = {{"idx", 0}}}),
            "there is no input 'idx' to pad, expected 'ids', 'mask' (did you "
            "mean 'ids'?)");
  EXPECT_EQ(errorWith(manifest, inputs, {.program = "", .pad = {{"ids", 0.5}}}),
            "input 'ids' can't be padded with the given value, which isn't of "
            "type i64");
}

TEST(ProgramChoice, NeedsSizesThatItKnows) {
  Program program = makeProgram(1, 4);
  program.outputs[1].symbolicShape[1] = SymbolicSize::parse("FloorDiv(s, 2)");
  EXPECT_EQ(errorWith(makeManifest({program}), makeInputs(1, 3)),
            "inputs can't be padded, since dimension 1 of output 'rows' has "
            "the size 'FloorDiv(s, 2)', which isn't a multiple of a symbol "
            "plus a number");
  program.outputs[1].symbolicShape.clear();
  EXPECT_EQ(errorWith(makeManifest({program}), makeInputs(1, 3)),
            "inputs can't be padded, since dimension 0 of output 'rows' has "
            "no known dependence on the inputs' sizes");
  // Nothing is cut.
  Manifest manifest = makeManifest({program});
  EXPECT_FALSE(chooseProgram(manifest, makeInputs(1, 4), padAll).isPadded);
  for (TensorInfo &input : program.inputs)
    input.symbolicShape.clear();
  EXPECT_EQ(errorWith(makeManifest({program}), makeInputs(1, 3)),
            "dimension 1 of input 'ids' is 3, expected 4; only programs of "
            "torch.export with dynamic_shapes have sizes that can grow");
}
