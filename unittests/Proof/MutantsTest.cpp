//===- MutantsTest.cpp - Wrong programs, refused --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of ranks are changed in one place at a time: comparisons, constants,
// casts, roundings, choices, the order of elements and ranks, and what
// FaultsTest.cpp changes. Whether a mutant is wrong is found by running it over
// doubles on many inputs (Evaluator.h), which shares nothing with the proof.
// One that is wrong must be neither proven nor tested.
//
//===----------------------------------------------------------------------===//

#include "Evaluator.h"
#include "Faults.h"
#include "ProofTest.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Proof/Equivalence.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>
#include <map>
#include <random>

using namespace mlir;
using namespace mlir::tp;
using test::Array;
using test::Fault;
using test::Values;

namespace {

struct Model {
  const char *name;
  /// Integers of arguments are below this.
  int64_t bound;
  /// Without the mesh; `X`, `Y` are placements over dimension 0 and 1.
  const char *text;
};

constexpr Model kModels[] = {
    {"embedding", 12, R"(
func.func @main(%ids: tensor<5xi64>) -> tensor<5x4xf32> {
  %e = nn.parameter "e" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<12x4xf32>
  %0 = nn.embedding %ids, %e : (tensor<5xi64>, tensor<12x4xf32>) -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
})"},
    {"padded", 8, R"(
func.func @main(%ids: tensor<6xi64>) -> tensor<6x4xf32> {
  %e = nn.parameter "e" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<8x4xf32>
  %pad = nn.constant dense<0> : tensor<i64>
  %isPad = nn.compare eq %ids, %pad : (tensor<6xi64>, tensor<i64>) -> tensor<6xi1>
  %zero = nn.constant dense<0.0> : tensor<f32>
  %0 = nn.embedding %ids, %e : (tensor<6xi64>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %c = nn.reshape %isPad : tensor<6xi1> -> tensor<6x1xi1>
  %1 = nn.where %c, %zero, %0 : (tensor<6x1xi1>, tensor<f32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
})"},
    {"threshold", 8, R"(
func.func @main(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<4x6xf32> {
  %one = nn.constant dense<1.0> : tensor<f32>
  %c = nn.compare gt %x, %one : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xi1>
  %0 = nn.tanh %x : tensor<4x6xf32>
  %1 = nn.where %c, %x, %0 : (tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
})"},
    {"boolean", 8, R"(
func.func @main(%m: tensor<4x6xi1> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<4x6xf32> {
  %half = nn.constant dense<0.5> : tensor<f32>
  %0 = nn.cast %m : tensor<4x6xi1> -> tensor<4x6xf32>
  %1 = nn.compare ge %0, %half : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xi1>
  %2 = nn.cast %1 : tensor<4x6xi1> -> tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
})"},
    {"argmax", 8, R"(
func.func @main(%x: tensor<3x4xf32>) -> (tensor<3xi64>, tensor<3x2xf32>) {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<6x4xf32>
  %t = nn.parameter "t" : tensor<6x2xf32>
  %0 = nn.linear %x, %w : (tensor<3x4xf32>, tensor<6x4xf32>) -> tensor<3x6xf32>
  %1 = nn.argmax %0 dim 1 : tensor<3x6xf32> -> tensor<3xi64>
  %2 = nn.embedding %1, %t : (tensor<3xi64>, tensor<6x2xf32>) -> tensor<3x2xf32>
  return %1, %2 : tensor<3xi64>, tensor<3x2xf32>
})"},
    {"clamp", 8, R"(
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %w1 = nn.parameter "w1" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<6x4xf32>
  %w2 = nn.parameter "w2" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<4x6xf32>
  %low = nn.constant dense<-1.0> : tensor<f32>
  %high = nn.constant dense<2.0> : tensor<f32>
  %0 = nn.linear %x, %w1 : (tensor<4x4xf32>, tensor<6x4xf32>) -> tensor<4x6xf32>
  %1 = nn.maximum %0, %low : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %2 = nn.minimum %1, %high : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %3 = nn.linear %2, %w2 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>
  %4 = nn.relu %3 : tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
})"},
    {"quantize", 8, R"(
func.func @main(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %two = nn.constant dense<2.0> : tensor<f32>
  %0 = nn.mul %x, %two : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %1 = nn.floor %0 : tensor<4x6xf32>
  %2 = nn.cast %0 : tensor<4x6xf32> -> tensor<4x6xi64>
  %3 = nn.cast %2 : tensor<4x6xi64> -> tensor<4x6xf32>
  %4 = nn.tanh %3 : tensor<4x6xf32>
  return %1, %4 : tensor<4x6xf32>, tensor<4x6xf32>
})"},
    {"rounding", 8, R"(
func.func @main(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<3x6xf32>
  %0 = nn.linear %x, %w : (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x3xf32>
  %1 = nn.cast %0 : tensor<4x3xf32> -> tensor<4x3xbf16>
  %2 = nn.cast %1 : tensor<4x3xbf16> -> tensor<4x3xf32>
  %3 = nn.tanh %2 : tensor<4x3xf32>
  %4 = nn.mul %0, %0 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %3, %4 : tensor<4x3xf32>, tensor<4x3xf32>
})"},
    {"rounded parts", 8, R"(
func.func @main(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> (tensor<4x6xf32>, tensor<4xbf16>) {
  %0 = nn.cast %x : tensor<4x6xf32> -> tensor<4x6xbf16>
  %1 = nn.cast %0 : tensor<4x6xbf16> -> tensor<4x6xf32>
  %2 = nn.mul %1, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %3 = nn.reduce sum %1 dims [1] : tensor<4x6xf32> -> tensor<4xf32>
  %4 = nn.cast %3 : tensor<4xf32> -> tensor<4xbf16>
  return %2, %4 : tensor<4x6xf32>, tensor<4xbf16>
})"},
    {"signs", 8, R"(
func.func @main(%x: tensor<4x6xi8> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                %f: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xui8>, tensor<4x6xf32>, tensor<4x6xui8>, tensor<4x6xi64>) {
  %0 = nn.cast %x : tensor<4x6xi8> -> tensor<4x6xui8>
  %1 = nn.cast %0 : tensor<4x6xui8> -> tensor<4x6xf32>
  %2 = nn.cast %f : tensor<4x6xf32> -> tensor<4x6xui8>
  %3 = nn.cast %x : tensor<4x6xi8> -> tensor<4x6xf32>
  %4 = nn.sub %3, %1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %5 = nn.cast %0 : tensor<4x6xui8> -> tensor<4x6xi64>
  return %0, %4, %2, %5 : tensor<4x6xui8>, tensor<4x6xf32>, tensor<4x6xui8>, tensor<4x6xi64>
})"},
    {"masked softmax", 8, R"(
func.func @main(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                %m: tensor<4x6xi1> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<4x6xf32> {
  %low = nn.constant dense<0xFF800000> : tensor<f32>
  %0 = nn.where %m, %x, %low : (tensor<4x6xi1>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %1 = nn.softmax %0 dim 1 : tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
})"},
    {"causal", 8, R"(
func.func @main(%x: tensor<2x4x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>}) -> tensor<2x4x4xf32> {
  %low = nn.constant dense<-1.0e+04> : tensor<f32>
  %i = nn.iota dim 0 start 0.0 step 1.0 : tensor<4x4xi64>
  %j = nn.iota dim 1 start 0.0 step 1.0 : tensor<4x4xi64>
  %m = nn.compare le %j, %i : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
  %0 = nn.where %m, %x, %low : (tensor<4x4xi1>, tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4x4xf32>
  %1 = nn.softmax %0 dim 2 : tensor<2x4x4xf32>
  return %1 : tensor<2x4x4xf32>
})"},
    {"one hot of the largest", 8, R"(
func.func @main(%x: tensor<3x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<3x6xf32> {
  %0 = nn.reduce max %x dims [1] keepdim : tensor<3x6xf32> -> tensor<3x1xf32>
  %1 = nn.compare eq %x, %0 : (tensor<3x6xf32>, tensor<3x1xf32>) -> tensor<3x6xi1>
  %2 = nn.cast %1 : tensor<3x6xi1> -> tensor<3x6xf32>
  return %2 : tensor<3x6xf32>
})"},
    {"logic", 8, R"(
func.func @main(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                %y: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                %m: tensor<4x6xi1>) -> tensor<4x6xf32> {
  %0 = nn.compare lt %x, %y : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
  %1 = nn.logical_and %0, %m : (tensor<4x6xi1>, tensor<4x6xi1>) -> tensor<4x6xi1>
  %2 = nn.compare ne %x, %y : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
  %3 = nn.logical_xor %1, %2 : (tensor<4x6xi1>, tensor<4x6xi1>) -> tensor<4x6xi1>
  %4 = nn.where %3, %x, %y : (tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %4 : tensor<4x6xf32>
})"},
    {"clamped index", 8, R"(
func.func @main(%ids: tensor<6xi64>) -> tensor<6x2xf32> {
  %e = nn.parameter "e" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<6x2xf32>
  %last = nn.constant dense<5> : tensor<i64>
  %0 = nn.minimum %ids, %last : (tensor<6xi64>, tensor<i64>) -> tensor<6xi64>
  %1 = nn.embedding %0, %e : (tensor<6xi64>, tensor<6x2xf32>) -> tensor<6x2xf32>
  return %1 : tensor<6x2xf32>
})"},
    {"scores", 8, R"(
func.func @main(%x: tensor<4x4xf32>, %valid: tensor<4xi64>) -> tensor<4xf32> {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<6x4xf32>
  %zero = nn.constant dense<0.0> : tensor<f32>
  %three = nn.constant dense<3> : tensor<i64>
  %0 = nn.linear %x, %w : (tensor<4x4xf32>, tensor<6x4xf32>) -> tensor<4x6xf32>
  %1 = nn.compare gt %0, %zero : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xi1>
  %2 = nn.cast %1 : tensor<4x6xi1> -> tensor<4x6xf32>
  %3 = nn.reduce sum %2 dims [1] : tensor<4x6xf32> -> tensor<4xf32>
  %4 = nn.compare lt %valid, %three : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
  %5 = nn.where %4, %3, %zero : (tensor<4xi1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %5 : tensor<4xf32>
})"},
    {"normalized", 8, R"(
func.func @main(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<4x6xf32> {
  %tiny = nn.constant dense<1.0e-02> : tensor<f32>
  %0 = nn.mul %x, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = nn.reduce sum %0 dims [1] keepdim : tensor<4x6xf32> -> tensor<4x1xf32>
  %2 = nn.sqrt %1 : tensor<4x1xf32>
  %3 = nn.maximum %2, %tiny : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %4 = nn.div %x, %3 : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
  return %4 : tensor<4x6xf32>
})"},
};

class MutantsTest : public test::ProofTest,
                    public testing::WithParamInterface<unsigned> {
protected:
  struct Programs {
    MeshOp mesh;
    SmallVector<Program> programs;
    /// By rank.
    SmallVector<func::FuncOp> functions;
  };
  std::optional<Programs> getPrograms(ModuleOp ranks) {
    Programs all;
    all.mesh = *ranks.getOps<MeshOp>().begin();
    auto programs = getRanks(
        SmallVector<func::FuncOp>(ranks.getOps<func::FuncOp>()), all.mesh);
    if (failed(programs))
      return std::nullopt;
    all.programs = *programs;
    all.functions.resize(all.mesh.getNumRanks());
    for (Program &program : all.programs)
      for (int64_t rank : program.ranks)
        all.functions[rank] = program.function;
    return all;
  }

  OwningOpRef<ModuleOp> parallelize(ModuleOp model) {
    OwningOpRef<ModuleOp> ranks = model.clone();
    PassManager passes(&context);
    buildParallelizePipeline(passes, {});
    passes.addPass(createLowerStartWait());
    EXPECT_TRUE(succeeded(passes.run(*ranks)));
    return ranks;
  }

  /// Small numbers, often equal, beside any, large and small ones; constants of
  /// the program and numbers near them; a few that are special.
  Array draw(RankedTensorType type, int64_t bound, bool isArgument,
             ArrayRef<double> constants, std::mt19937 &random) {
    static constexpr double kNear[] = {0, 1e-4, -1e-4, 5e-3, -0.0, 1, -1, 0.3};
    Array array;
    array.shape.assign(type.getShape().begin(), type.getShape().end());
    array.data.resize(type.getNumElements());
    unsigned style = random() % 8;
    double constant = constants[random() % constants.size()];
    for (double &each : array.data) {
      if (type.getElementType().isInteger(1)) {
        each = style == 0 ? 0 : random() % 2;
        continue;
      }
      if (type.getElementType().isInteger(8)) {
        each = double(random() % 256) -
               (type.getElementType().isUnsignedInteger() ? 0 : 128);
        continue;
      }
      if (type.getElementType().isInteger(64)) {
        each = random() % bound;
        continue;
      }
      double any = std::ldexp(double(random()), -30) - 2;
      double half = double(random() % 13) / 2 - 3;
      double near = kNear[random() % std::size(kNear)];
      each = style == 0   ? any
             : style == 1 ? 0.0
             : style == 2 ? any * 1000
             : style == 3 ? any / 1000
             : style == 4 ? constant + near
             : style == 5 ? constant + any
                          : half + (random() % 4 == 0 ? near : 0);
      if (isArgument && style == 7 && random() % 16 == 0)
        each = std::array{NAN, INFINITY, -INFINITY}[random() % 3];
    }
    return array;
  }

  std::vector<Values> drawInputs(func::FuncOp function, int64_t bound) {
    std::mt19937 random(1);
    std::vector<Values> inputs(400);
    std::vector<double> constants = {0};
    function.walk([&](nn::ConstantOp op) {
      if (auto dense = dyn_cast<DenseFPElementsAttr>(op.getValue()))
        for (const APFloat &each : dense)
          if (each.isFinite())
            constants.push_back(each.convertToDouble());
    });
    for (Values &values : inputs) {
      for (Type type : function.getArgumentTypes())
        values.arguments.push_back(
            draw(cast<RankedTensorType>(type), bound, true, constants, random));
      function.walk([&](nn::ParameterOp op) {
        values.parameters[op.getFqn().str()] =
            draw(op.getType(), bound, false, constants, random);
      });
    }
    return inputs;
  }
};

INSTANTIATE_TEST_SUITE_P(All, MutantsTest,
                         testing::Range<unsigned>(0, std::size(kModels)),
                         [](const auto &info) {
                           std::string name = kModels[info.param].name;
                           llvm::replace(name, ' ', '_');
                           return name;
                         });

TEST_P(MutantsTest, AreNotAccepted) {
  const Model &each = kModels[GetParam()];
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  auto model = parseSourceString<ModuleOp>(
      std::string("tp.mesh @mesh(tp = 2)\n") + each.text, &context);
  ASSERT_TRUE(model);
  OwningOpRef<ModuleOp> ranks = parallelize(*model);
  auto reference = *model->getOps<func::FuncOp>().begin();
  std::vector<Values> inputs = drawInputs(reference, each.bound);
  std::vector<std::optional<std::vector<Array>>> expected;
  for (const Values &values : inputs)
    expected.push_back(test::evaluate(reference, values));

  auto isWrong = [&](const Programs &programs) {
    for (auto [values, results] : llvm::zip_equal(inputs, expected)) {
      if (!results)
        continue;
      auto found = test::evaluateRanks(programs.functions, programs.mesh,
                                       reference, values);
      if (!found || !test::areEqual(*found, *results))
        return true;
    }
    return false;
  };
  auto check = [&](const Programs &programs, bool prove, std::string &reason) {
    EquivalenceOptions options;
    options.prove = prove;
    auto result =
        checkEquivalence(reference, programs.programs, programs.mesh, options);
    reason = result.reason;
    if (result.difference && result.verdict == Verdict::Refuted)
      reason += "found " + result.difference->found + ", not " +
                result.difference->expected;
    return result.verdict;
  };
  std::string reason;
  auto unchanged = getPrograms(*ranks);
  ASSERT_TRUE(unchanged);
  ASSERT_FALSE(isWrong(*unchanged));
  EXPECT_EQ(check(*unchanged, true, reason), Verdict::Proven) << reason;
  EXPECT_EQ(check(*unchanged, false, reason), Verdict::Tested) << reason;

  int64_t numWrong = 0, numRefuted = 0, numHarmless = 0, numRejected = 0;
  std::map<std::string, int64_t> notRefuted, rejected;
  SmallVector<Operation *> ops;
  ranks->walk([&](Operation *op) { ops.push_back(op); });
  for (auto [index, op] : llvm::enumerate(ops)) {
    if (isa<ModuleOp, MeshOp, func::FuncOp>(op))
      continue;
    std::vector<Fault> faults = test::getFaults(op, unchanged->mesh);
    llvm::append_range(faults, test::getValueFaults(op, unchanged->mesh));
    for (const Fault &fault : faults) {
      OwningOpRef<ModuleOp> copy = ranks->clone();
      SmallVector<Operation *> copies;
      copy->walk([&](Operation *op) { copies.push_back(op); });
      fault.plant(copies[index]);
      if (failed(verify(*copy)))
        continue;
      auto programs = getPrograms(*copy);
      if (!programs)
        continue;
      std::string text;
      llvm::raw_string_ostream os(text);
      os << fault.kind << " at ";
      op->print(os, OpPrintingFlags().skipRegions());
      os << " in\n" << *copy;
      // Both with and without rules.
      Verdict all = check(*programs, true, reason);
      Verdict executed = check(*programs, false, reason);
      auto isAccepted = [](Verdict verdict) {
        return verdict == Verdict::Proven || verdict == Verdict::Tested;
      };
      if (isWrong(*programs)) {
        ++numWrong;
        numRefuted += executed == Verdict::Refuted;
        if (executed != Verdict::Refuted)
          ++notRefuted[fault.kind];
        EXPECT_FALSE(isAccepted(all)) << text;
        EXPECT_FALSE(isAccepted(executed)) << text;
        continue;
      }
      ++numHarmless;
      numRejected += !isAccepted(all);
      if (!isAccepted(all))
        ++rejected[fault.kind];
      EXPECT_NE(executed, Verdict::Refuted)
          << "refuted, but it computes the same: " << text << ": " << reason;
    }
  }
  llvm::outs() << each.name << ": " << numWrong
               << " mutants are wrong, of which " << numRefuted
               << " are refuted and none is accepted; " << numHarmless
               << " compute the same, of which " << numRejected
               << " aren't accepted\n";
  for (auto &[kind, count] : notRefuted)
    llvm::outs() << "  wrong, not refuted: " << count << " " << kind << "\n";
  for (auto &[kind, count] : rejected)
    llvm::outs() << "  harmless, not accepted: " << count << " " << kind
                 << "\n";
  EXPECT_GE(numWrong, 20);
}

} // namespace
