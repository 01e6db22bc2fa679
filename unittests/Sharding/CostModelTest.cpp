//===- CostModelTest.cpp - Costs against formulas by hand -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Cost/CostModel.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "tp/Dialect/NN/NN.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::tp;

namespace {

class CostModelTest : public testing::Test {
protected:
  CostModelTest() {
    context.loadDialect<TPDialect, nn::NNDialect, func::FuncDialect>();
    machine.flopsF64 = 1e9;
    machine.flopsF32 = 2e9;
    machine.flopsF16 = machine.flopsBF16 = 4e9;
    machine.elementwise = 1e9;
    machine.memoryBandwidth = 1e9;
    machine.memoryCapacity = 1;
    machine.links = {{"inner", 4, 1e-6, 4e9, LinkAlgorithm::Ring, {}},
                     {"outer", 0, 1e-5, 1e9, LinkAlgorithm::Ring, {}}};
  }

  /// Parses a function over a mesh of `dp` x 4 ranks; its ops, but for the
  /// terminator.
  SmallVector<Operation *> parse(StringRef body, int64_t dp = 2) {
    std::string text = "tp.mesh @mesh(dp = " + std::to_string(dp) +
                       ", tp = 4)\nfunc.func @main(" + body.str() +
                       "\n  return\n}\n";
    module = parseSourceString<ModuleOp>(text, &context);
    SmallVector<Operation *> ops;
    if (!module) {
      ADD_FAILURE() << text;
      return ops;
    }
    function = *module->getOps<func::FuncOp>().begin();
    mesh = *module->getOps<MeshOp>().begin();
    for (Operation &op : function.getBody().front().without_terminator())
      ops.push_back(&op);
    return ops;
  }

  double getSeconds(Operation *op, int64_t rank) {
    return CostModel(machine, mesh)
        .getSeconds(cast<CollectiveOpInterface>(op), rank);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  MeshOp mesh;
  Machine machine;
};

TEST_F(CostModelTest, ContractionsFollowFromTheRule) {
  auto ops = parse(R"(%x: tensor<2x3x5xf32>, %w: tensor<7x5xf32>,
      %q: tensor<2x3x8x4xf32>, %k: tensor<2x3x6x4xf32>, %v: tensor<2x3x6x9xf32>, %m: tensor<8x6xf32>) {
    %0 = nn.linear %x, %w : (tensor<2x3x5xf32>, tensor<7x5xf32>) -> tensor<2x3x7xf32>
    %1 = nn.attention %q, %k, %v mask %m scale 1.0 : (tensor<2x3x8x4xf32>, tensor<2x3x6x4xf32>, tensor<2x3x6x9xf32>, tensor<8x6xf32>) -> tensor<2x3x8x9xf32>
    %2:3 = nn.attention_gradient %q, %k, %v gradient %1 scale 1.0 : (tensor<2x3x8x4xf32>, tensor<2x3x6x4xf32>, tensor<2x3x6x9xf32>, tensor<2x3x8x9xf32>) -> (tensor<2x3x8x4xf32>, tensor<2x3x6x4xf32>, tensor<2x3x6x9xf32>))");
  ASSERT_EQ(ops.size(), 3u);
  OpWork linear = getWork(ops[0]);
  EXPECT_EQ(linear.flops, 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(linear.bytes, 4 * (2 * 3 * 5 + 7 * 5 + 2 * 3 * 7));
  // Scores and what they weigh; the mask brings no factor of its own.
  EXPECT_EQ(getWork(ops[1]).flops, 2 * 6 * 8 * 6 * 4 + 2 * 6 * 8 * 6 * 9);
  // Three products over depth, two over width: its rule says so.
  EXPECT_EQ(getWork(ops[2]).flops, 2 * 6 * 8 * 6 * (3 * 4 + 2 * 9));
}

TEST_F(CostModelTest, LookupsTouchWhatTheySelect) {
  auto ops = parse(R"(%i: tensor<5xi64>, %w: tensor<1000x8xf32>) {
    %0 = nn.embedding %i, %w : (tensor<5xi64>, tensor<1000x8xf32>) -> tensor<5x8xf32>)");
  ASSERT_EQ(ops.size(), 1u);
  OpWork work = getWork(ops[0]);
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.elements, 40);
  EXPECT_EQ(work.bytes, 5 * 8 + 160 + 160);
}

TEST_F(CostModelTest, RelabellingsAreFreeAndMapsFuse) {
  auto ops = parse(R"(%x: tensor<4x6xf32>) {
    %0 = nn.exp %x : tensor<4x6xf32>
    %1 = nn.reshape %0 : tensor<4x6xf32> -> tensor<24xf32>
    %2 = nn.neg %1 : tensor<24xf32>)");
  ASSERT_EQ(ops.size(), 3u);
  OpWork first = getWork(ops[0]), view = getWork(ops[1]),
         last = getWork(ops[2]);
  EXPECT_TRUE(first.isFree);
  EXPECT_EQ(first.elements, 24);
  EXPECT_EQ(first.bytes, 96);
  EXPECT_TRUE(view.isFree);
  EXPECT_EQ(view.elements, 0);
  EXPECT_FALSE(last.isFree);
  EXPECT_EQ(last.bytes, 96); // the result; the operand never was in memory
}

TEST_F(CostModelTest, Roofline) {
  parse("%x: tensor<2xf32>) {", 1);
  CostModel model(machine, mesh);
  Type f32 = Float32Type::get(&context), f64 = Float64Type::get(&context);
  EXPECT_DOUBLE_EQ(model.getSeconds({1000, 0, 10, f32, false}), 5e-7);
  EXPECT_DOUBLE_EQ(model.getSeconds({1000, 0, 10, f64, false}), 1e-6);
  EXPECT_DOUBLE_EQ(model.getSeconds({1000, 0, 1000, f32, false}), 1e-6);
  EXPECT_DOUBLE_EQ(model.getSeconds({0, 100, 10, f32, false}), 1e-7);
  // Four ranks on two devices, which share 2 GB/s; a launch on top.
  machine.nodeDevices = 2;
  machine.nodeMemoryBandwidth = 2e9;
  machine.launch = 1e-6;
  CostModel shared(machine, mesh);
  EXPECT_DOUBLE_EQ(shared.getSeconds({1000, 0, 10, f32, false}), 1e-6 + 2e-6);
  EXPECT_DOUBLE_EQ(shared.getSeconds({0, 0, 1000, f32, false}), 2e-6 + 2e-6);
  EXPECT_DOUBLE_EQ(shared.getSeconds({1000, 0, 10, f32, true}), 1e-6);
}

TEST_F(CostModelTest, Efficiency) {
  auto ops =
      parse(R"(%x: tensor<2x3x5xf32>, %w: tensor<7x5xf32>, %e: tensor<4x6xf32>,
      %q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>, %v: tensor<2x3x8x9xf32>) {
    %0 = nn.linear %x, %w : (tensor<2x3x5xf32>, tensor<7x5xf32>) -> tensor<2x3x7xf32>
    %1 = nn.attention causal %q, %k, %v scale 1.0 : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x9xf32>) -> tensor<2x3x8x9xf32>
    %2 = nn.exp %e : tensor<4x6xf32>
    %3 = nn.neg %2 : tensor<4x6xf32>)",
            1);
  ASSERT_EQ(ops.size(), 4u);
  OpWork linear = getWork(ops[0]), attention = getWork(ops[1]);
  EXPECT_EQ(linear.smallestExtent, 5);
  EXPECT_FALSE(linear.isChain);
  EXPECT_TRUE(attention.isChain);
  EXPECT_DOUBLE_EQ(attention.maskedShare, 28.0 / 64);
  linear.bytes = attention.bytes = 0;
  double full = attention.flops / 2e9;
  EXPECT_DOUBLE_EQ(CostModel(machine, mesh).getSeconds(attention), full);
  machine.efficiency = {0.5, 15, 0, 0.25};
  CostModel model(machine, mesh);
  EXPECT_DOUBLE_EQ(model.getSeconds(linear), 420 / 2e9 / 0.5 * 4);
  EXPECT_DOUBLE_EQ(model.getSeconds({0, 0, 1000, linear.element, false}), 4e-6);
  machine.efficiency.attention = 0.2;
  EXPECT_DOUBLE_EQ(model.getSeconds(attention), full * (36.0 / 64) / 0.2);
  // Without fusion, both ops read and write.
  EXPECT_TRUE(getWork(ops[2]).isFree);
  EXPECT_FALSE(getWork(ops[2], /*fuses=*/false).isFree);
  EXPECT_EQ(getWork(ops[2], /*fuses=*/false).bytes, 192);
  EXPECT_EQ(getWork(ops[3], /*fuses=*/false).bytes, 192);
}

TEST_F(CostModelTest, RingsAndTheHierarchy) {
  auto ops = parse(R"(%x: tensor<800xf32>) {
    %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<800xf32>
    %1 = tp.all_reduce sum %x over @mesh {dp} : tensor<800xf32>
    %2 = tp.all_gather %x dim 0 over @mesh {dp, tp} : tensor<800xf32> -> tensor<6400xf32>)");
  ASSERT_EQ(ops.size(), 3u);
  // Within a node: two phases of three steps, each of a quarter of 3200 bytes.
  EXPECT_NEAR(getSeconds(ops[0], 5), 2 * 3 * (1e-6 + 800 / 4e9), 1e-15);
  // Across: two phases of one step, each of half.
  EXPECT_NEAR(getSeconds(ops[1], 5), 2 * (1e-5 + 1600 / 1e9), 1e-15);
  // 3200 bytes across, then 6400 from each of three neighbors: 7 blocks.
  EXPECT_NEAR(getSeconds(ops[2], 5),
              1e-5 + 3200 / 1e9 + 3 * (1e-6 + 6400 / 4e9), 1e-15);
  machine.links[0].algorithm = LinkAlgorithm::Direct;
  EXPECT_NEAR(getSeconds(ops[0], 5), 2 * (1e-6 + 3 * 800 / 4e9), 1e-15);
}

TEST_F(CostModelTest, PointToPoint) {
  auto ops = parse(R"(%x: tensor<8x100xf32>) {
    %0 = tp.all_to_all %x split 0 concat 1 over @mesh {dp, tp} : tensor<8x100xf32> -> tensor<1x800xf32>
    %1 = tp.permute %x from [1, 0] over @mesh {dp} : tensor<8x100xf32> -> tensor<8x100xf32>
    %2 = tp.permute %x from [0, 1] over @mesh {dp} : tensor<8x100xf32> -> tensor<8x100xf32>
    %3 = tp.broadcast %x root 1 over @mesh {tp} : tensor<8x100xf32>)");
  ASSERT_EQ(ops.size(), 4u);
  // 400 bytes from each of three on the node and four on the other one.
  EXPECT_NEAR(getSeconds(ops[0], 0), 1e-6 + 1200 / 4e9 + 1e-5 + 1600 / 1e9,
              1e-15);
  EXPECT_NEAR(getSeconds(ops[1], 0), 1e-5 + 3200 / 1e9, 1e-15);
  EXPECT_EQ(getSeconds(ops[2], 0), 0);
  // A broadcast goes along the chain; its root has the data.
  EXPECT_NEAR(getSeconds(ops[3], 0), 3 * 1e-6 + 3200 / 4e9, 1e-15);
  EXPECT_NEAR(getSeconds(ops[3], 1), 3 * 1e-6, 1e-15);
}

TEST_F(CostModelTest, MeasurementsReplaceFormulas) {
  auto ops = parse(R"(%x: tensor<800xf32>) {
    %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<800xf32>)");
  ASSERT_EQ(ops.size(), 1u);
  machine.links[0].collectives = {{"all_gather", 4, 1, 1},
                                  {"all_reduce", 2, 1, 1},
                                  {"all_reduce", 4, 3e-6, 1e9}};
  EXPECT_NEAR(getSeconds(ops[0], 0), 3e-6 + 4800 / 1e9, 1e-15);
}

TEST_F(CostModelTest, Predict) {
  parse(R"(%x: tensor<100x100xf32>) {
    %0 = nn.exp %x {tp.fqn = "a"} : tensor<100x100xf32>
    %1 = tp.all_reduce sum %0 over @mesh {tp} {fqn = "b"} : tensor<100x100xf32>
    %2 = nn.exp %1 {tp.fqn = "a"} : tensor<100x100xf32>)");
  Prediction prediction = *predict(function, mesh, machine);
  ASSERT_EQ(prediction.programs.size(), 1u);
  const ProgramPrediction &program = prediction.programs.front();
  EXPECT_EQ(program.compute.count, 2);
  EXPECT_DOUBLE_EQ(program.compute.seconds, 160e-6);
  EXPECT_DOUBLE_EQ(program.byModule.lookup("a").seconds, 160e-6);
  EXPECT_EQ(program.collectivesByModule.lookup("b").bytes, 60000);
  double collective = 2 * 3 * (1e-6 + 10000 / 4e9);
  ASSERT_EQ(prediction.classes.size(), 1u);
  EXPECT_NEAR(prediction.ofRank(7).collectives, collective, 1e-12);
  EXPECT_NEAR(prediction.getSeconds(), 160e-6 + collective, 1e-12);
  EXPECT_EQ(prediction.ofRank(0).waiting, 0);
}

TEST_F(CostModelTest, Overlap) {
  parse(R"(%x: tensor<100x100xf32>, %y: tensor<1000x1000xf32>) {
    %p = tp.start {
      %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<100x100xf32> -> tensor<400x100xf32>
      tp.yield %0 : tensor<400x100xf32>
    } : !tp.pending<tensor<400x100xf32>>
    %q = tp.start {
      %1 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<100x100xf32> -> tensor<400x100xf32>
      tp.yield %1 : tensor<400x100xf32>
    } : !tp.pending<tensor<400x100xf32>>
    %2 = nn.exp %x : tensor<100x100xf32>
    %3 = tp.wait %q : !tp.pending<tensor<400x100xf32>>
    %4 = tp.wait %p : !tp.pending<tensor<400x100xf32>>
    %5 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<100x100xf32> -> tensor<400x100xf32>)");
  double gather = 3 * (1e-6 + 40000 / 4e9), compute = 80e-6;
  EXPECT_NEAR(predict(function, mesh, machine)->getSeconds(),
              3 * gather + compute, 1e-12);
  // One after the other on the link, both beside the computation.
  machine.overlap = 1;
  Prediction hidden = *predict(function, mesh, machine);
  EXPECT_NEAR(hidden.getSeconds(), compute + gather, 1e-12);
  EXPECT_NEAR(hidden.ofRank(0).collectives, gather, 1e-12);
  EXPECT_EQ(hidden.getTimeline(0).size(), 1u);
  auto expectTimes = [](const CollectiveTimes &times, size_t id, double arrival,
                        double end) {
    EXPECT_EQ(times.id, id);
    EXPECT_NEAR(times.arrival, arrival, 1e-12);
    EXPECT_EQ(times.start, times.arrival);
    EXPECT_NEAR(times.end, end, 1e-12);
  };
  machine.overlap = 0.5;
  Prediction slowed = *predict(function, mesh, machine);
  EXPECT_NEAR(slowed.getSeconds(), compute + 2 * gather, 1e-12);
  ASSERT_EQ(slowed.getTimeline(0).size(), 3u);
  expectTimes(slowed.getTimeline(0)[0], 0, 0, gather / 2);
  expectTimes(slowed.getTimeline(0)[1], 1, gather / 2, gather);
  expectTimes(slowed.getTimeline(0)[2], 2, gather + compute,
              2 * gather + compute);
  ASSERT_EQ(slowed.getOverlapped(0).size(), 2u);
  expectTimes(slowed.getOverlapped(0)[0], 0, 0, gather);
  expectTimes(slowed.getOverlapped(0)[1], 1, gather, 2 * gather);
  // What isn't hidden is waited for, and so is the link.
  machine.overlap = 1;
  machine.memoryBandwidth = 80e9;
  Prediction exposed = *predict(function, mesh, machine);
  EXPECT_NEAR(exposed.getSeconds(), 3 * gather, 1e-12);
  EXPECT_EQ(exposed.ofRank(0).waiting, 0);
  ASSERT_EQ(exposed.getTimeline(0).size(), 3u);
  expectTimes(exposed.getTimeline(0)[0], 1, 10e-6, gather);
  expectTimes(exposed.getTimeline(0)[1], 1, gather, 2 * gather);
  expectTimes(exposed.getTimeline(0)[2], 2, 2 * gather, 3 * gather);
}

TEST_F(CostModelTest, Presets) {
  for (StringRef name : getMachineNames()) {
    const Machine *preset = findMachine(name);
    ASSERT_TRUE(preset);
    // What is printed can be read again, and says the same.
    std::string text;
    llvm::raw_string_ostream(text) << toJSON(*preset);
    FailureOr<Machine> read = parseMachine(text, "preset", &context);
    ASSERT_TRUE(succeeded(read)) << name.str();
    EXPECT_EQ(toJSON(*read), toJSON(*preset)) << name.str();
  }
  EXPECT_EQ(findMachine("h300"), nullptr);
  EXPECT_EQ(findMachine("h100-nvlink")->getLink(0, 7), 0u);
  EXPECT_EQ(findMachine("h100-nvlink")->getLink(7, 8), 1u);
}

} // namespace
