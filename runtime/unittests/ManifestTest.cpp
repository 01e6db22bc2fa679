//===- ManifestTest.cpp ---------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Manifest.h"

#include "ToyManifest.h"

#include <nlohmann/json.hpp>

using namespace tprt;
using namespace tprt::test;
using nlohmann::json;

static json makeValid() {
  return json::parse(R"json({
    "schema": 5, "producer": "tp-mlir 0.1.0",
    "target": {"triple": "x86_64-pc-linux-gnu", "cpu": "x86-64", "features": ["+sse2"]},
    "mesh": {"name": "mesh", "axes": [{"name": "dp", "size": 1}, {"name": "tp", "size": 2}]},
    "world_size": 2,
    "parameters": [{"name": "s", "dtype": "bf16", "shape": [], "shards": [[], []]}],
    "programs": [{
    "name": "main", "entries": ["tpx_main"], "arena_bytes": 64, "parameters": [0],
    "inputs": [{"name": "x", "dtype": "f32", "shape": [2, 4], "placements": ["Replicate", "Shard(1)"],
                "shards": [[[0, 2], [0, 2]], [[0, 2], [2, 2]]]}],
    "outputs": [{"name": "y", "dtype": "f32", "shape": [2], "shards": [[[0, 2]], [[0, 2]]]}],
    "collectives": [
      {"kind": "all_gather", "dtype": "f32", "operand_shapes": [[2, 2], [2, 2]], "result_shapes": [[2, 4], [2, 4]], "dim": 1,
       "groups": [[0, 1]], "bytes_by_rank": [16, 16], "fqn": "mlp", "reason": "plan.yaml:3:5"},
      {"kind": "reduce_scatter", "reduction": "avg", "dtype": "f32", "operand_shapes": [[4], [4]], "result_shapes": [[2], [2]],
       "dim": 0, "groups": [[0, 1]], "bytes_by_rank": [8, 8]},
      {"kind": "all_reduce", "reduction": "max", "dtype": "i1", "operand_shapes": [[], []], "result_shapes": [[], []],
       "groups": [[0, 1]], "bytes_by_rank": [1, 1]},
      {"kind": "all_to_all", "dtype": "f16", "operand_shapes": [[2, 2], [2, 2]], "result_shapes": [[1, 4], [1, 4]],
       "split_dim": 0, "concat_dim": 1, "groups": [[0, 1]], "bytes_by_rank": [4, 4]},
      {"kind": "permute", "dtype": "f64", "operand_shapes": [[1], [1]], "result_shapes": [[1], [1]], "source": [1, 0],
       "groups": [[0, 1]], "bytes_by_rank": [8, 8]},
      {"kind": "broadcast", "dtype": "i64", "operand_shapes": [[1], [1]], "result_shapes": [[1], [1]], "root": 1,
       "groups": [[0, 1]], "bytes_by_rank": [8, 0]},
      {"kind": "all_to_all", "dtype": "f32", "operand_shapes": [[3, 2], [3, 1]], "result_shapes": [[2, 3], [1, 3]],
       "split_dim": 0, "concat_dim": 1, "groups": [[0, 1]], "bytes_by_rank": [8, 8]},
      {"kind": "exchange", "dtype": "f32", "operand_shapes": [[2, 3], [1, 3]], "result_shapes": [[3, 2], [3, 1]],
       "transfers": [[{"from": 0, "src": [0, 0], "dst": [0, 0], "size": [2, 2]},
                      {"from": 1, "src": [0, 0], "dst": [2, 0], "size": [1, 2]}],
                     [{"from": 0, "src": [0, 2], "dst": [0, 0], "size": [2, 1]},
                      {"from": 1, "src": [0, 2], "dst": [2, 0], "size": [1, 1]}]],
       "groups": [[0, 1]], "bytes_by_rank": [8, 8]}],
    "ops": [{"fqn": "mlp", "op": "linear", "kind": "gemm", "flops": 64, "bytes": 96, "dtype": "f32",
              "product": {"sizes": [8, 4, 2], "batch": [1, 1], "a": [2, 1, 0, 0], "b": [1, 2, 0, 0], "c": [4, 0, 0],
                          "weight": true}},
            {"fqn": "", "op": "add+relu", "kind": "kernel", "flops": 8, "bytes": 24}]}]
})json");
}

TEST(Manifest, HasLimits) {
  auto errorOfText = [](const std::string &text) {
    return errorOf([&] { Manifest::parse(text); });
  };
  EXPECT_TRUE(contains(errorOfText(std::string(1000000, '[')),
                       "manifest: malformed JSON: nested more deeply"));
  EXPECT_TRUE(contains(errorOfText(R"({"schema": 5, "schema": 3})"),
                       "'schema' is listed twice"));
  // As many ranks as there may be, each with a part of all others' blocks.
  constexpr int64_t numRanks = 4096;
  json manifest = makeValid();
  manifest["mesh"]["axes"] = {{{"name", "tp"}, {"size", numRanks}}};
  manifest["world_size"] = numRanks;
  json &program = manifest["programs"][0];
  manifest["parameters"] = json::array();
  for (const char *key : {"inputs", "parameters", "collectives", "ops"})
    program[key] = json::array();
  json &output = program["outputs"][0];
  auto setShards = [&](int64_t dims, int64_t size, int64_t step) {
    output["shape"] = Shape(dims, (numRanks - 1) * step + size);
    output["shards"] = json::array();
    for (int64_t rank = 0; rank < numRanks; ++rank)
      output["shards"].push_back(
          std::vector<Shape>(dims, Shape{rank * step, size}));
  };
  setShards(1, 3, 1); // a stencil's
  EXPECT_EQ(Manifest::parse(manifest.dump()).worldSize, numRanks);
  setShards(2, numRanks, 1);
  EXPECT_TRUE(contains(errorOfText(manifest.dump()),
                       "the shards of output 'y': the blocks overlap in "
                       "more ways than can be checked"));
}

TEST(Manifest, ParsesEveryMember) {
  Manifest manifest = Manifest::parse(makeValid().dump());
  ASSERT_EQ(manifest.programs.size(), 1u);
  const Program &program = manifest.programs[0];
  EXPECT_EQ(program.name, "main");
  EXPECT_EQ(program.entries, std::vector<std::string>{"tpx_main"});
  EXPECT_EQ(program.parameters, std::vector<int64_t>{0});
  EXPECT_EQ(program.collectives.count, 8);
  EXPECT_EQ(program.ops.count, 2);
  EXPECT_EQ(manifest.getArenaBytes(), 64);
  EXPECT_EQ(manifest.worldSize, 2);
  EXPECT_EQ(manifest.axes.size(), 2u);
  EXPECT_EQ(manifest.features, std::vector<std::string>{"+sse2"});
  ASSERT_EQ(program.inputs.size(), 1u);
  EXPECT_EQ(program.inputs[0].getTypeString(), "2x4xf32");
  EXPECT_EQ(program.inputs[0].shards[1], makeBox({0, 2}, {2, 2}));
  EXPECT_EQ(program.inputs[0].getShardBytes(1), 16);
  EXPECT_EQ(manifest.parameters[0].getShardBytes(0), 2);
  ASSERT_EQ(manifest.collectives.size(), 8u);
  EXPECT_EQ(manifest.collectives[0].kind, CollectiveKind::AllGather);
  EXPECT_EQ(manifest.collectives[0].dim, 1);
  EXPECT_EQ(manifest.collectives[1].reduction, Reduction::Avg);
  EXPECT_EQ(manifest.collectives[3].concatDim, 1);
  EXPECT_EQ(manifest.collectives[4].source, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(manifest.collectives[5].root, 1);
  EXPECT_EQ(manifest.collectives[6].resultShapes[1], (Shape{1, 3}));
  ASSERT_EQ(manifest.collectives[7].transfers[1].size(), 2u);
  EXPECT_EQ(manifest.collectives[7].transfers[1][0].src, (Shape{0, 2}));
  ASSERT_EQ(manifest.ops.size(), 2u);
  EXPECT_EQ(manifest.ops[0].dtype, Dtype::F32);
  ASSERT_TRUE(manifest.ops[0].product);
  EXPECT_EQ(manifest.ops[0].product->n, 4);
  EXPECT_EQ(manifest.ops[0].product->b_col, 2);
  EXPECT_TRUE(manifest.ops[0].isWeight);
  EXPECT_EQ(manifest.ops[1].op, "add+relu");
  EXPECT_EQ(manifest.ops[1].dtype, std::nullopt);
  EXPECT_EQ(describeCollective(manifest, 0),
            "collective 0 (all_gather of 'mlp')");
}

/// Empty pieces are dropped, adjacent ones joined.
TEST(Manifest, PiecesOfABlock) {
  json edited = makeValid();
  edited["programs"][0]["inputs"][0]["shards"] =
      json::parse("[[[0, 1, 1, 1], [0, 1, 2, 2]], [[0, 0, 2, 0], [1, 1]]]");
  Program program = Manifest::parse(edited.dump()).programs[0];
  EXPECT_EQ(program.inputs[0].shards[0], (Block{{{{0, 2}}, {{0, 1}, {2, 2}}}}));
  EXPECT_EQ(program.inputs[0].shards[1], (Block{{{}, {{1, 1}}}}));
  EXPECT_EQ(program.inputs[0].getShardBytes(0), 24);
  EXPECT_EQ(program.inputs[0].getShardBytes(1), 0);
}

TEST(Manifest, UpdatedParameters) {
  json edited = makeValid();
  EXPECT_FALSE(Manifest::parse(edited.dump()).hasState());
  EXPECT_FALSE(Manifest::parse(edited.dump()).parameters[0].init);
  edited["parameters"][0]["init"] = -0.5;
  EXPECT_EQ(Manifest::parse(edited.dump()).parameters[0].init, -0.5);
  edited["parameters"][0]["updated"] = true;
  Manifest manifest = Manifest::parse(edited.dump());
  EXPECT_TRUE(manifest.parameters[0].isUpdated);
  EXPECT_TRUE(manifest.hasState());
}

TEST(Manifest, UpdatedParametersAreWhole) {
  json edited = makeValid();
  edited["parameters"][0] = json::parse(
      R"({"name": "s", "dtype": "i32", "shape": [3], "updated": true,
          "shards": [[[0, 2]], [[1, 2]]], "init": 4})");
  EXPECT_EQ(Manifest::parse(edited.dump()).parameters[0].init, 4);
  json hole = edited, partial = edited, fraction = edited;
  hole["parameters"][0]["shards"][1] = hole["parameters"][0]["shards"][0];
  EXPECT_EQ(errorOf([&] { Manifest::parse(hole.dump()); }),
            "manifest: the shards of updated parameter 's' cover 2 elements "
            "of 3");
  partial["parameters"][0]["neutral"] = {{"element", 0}, {"ranks", {1}}};
  EXPECT_EQ(errorOf([&] { Manifest::parse(partial.dump()); }),
            "manifest: updated parameter 's' is Partial");
  fraction["parameters"][0]["init"] = 0.5;
  EXPECT_EQ(errorOf([&] { Manifest::parse(fraction.dump()); }),
            "manifest: parameters[0].init: found 0.5, which isn't of type i32");
}

/// Its lists of collectives and ops follow each other, and the parameters are
/// listed once.
TEST(Manifest, SeveralPrograms) {
  Manifest manifest = Manifest::parse(makeToyBuckets().dump());
  ASSERT_EQ(manifest.programs.size(), 2u);
  const Program &first = manifest.programs[0], &second = manifest.programs[1];
  EXPECT_EQ(manifest.parameters.size(), 2u);
  EXPECT_EQ(second.parameters, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(manifest.getArenaBytes(), 128);
  EXPECT_EQ(first.collectives.first, 0);
  EXPECT_EQ(second.collectives.first, 2);
  EXPECT_EQ(second.collectives.count, 2);
  EXPECT_EQ(describeCollective(manifest, 3),
            "collective 1 of 'long' (all_reduce of 'mlp.up')");
  EXPECT_EQ(manifest.collectives[2].operandShapes[0], (Shape{4, 3}));
  EXPECT_EQ(second.ops.first, 1);
  EXPECT_EQ(manifest.ops.size(), 2u);
  EXPECT_EQ(first.symbols, (std::map<std::string, int64_t>{{"s0", 2}}));
  EXPECT_EQ(second.symbols, (std::map<std::string, int64_t>{{"s0", 4}}));
}

TEST(Manifest, ProgramsDiffer) {
  json same = makeToyBuckets(), twice = same;
  same["programs"][1] = same["programs"][0];
  same["programs"][1]["name"] = "long";
  EXPECT_EQ(errorOf([&] { Manifest::parse(same.dump()); }),
            "manifest: programs[1]: 'long' takes the same inputs as 'short'");
  twice["programs"][1]["name"] = "short";
  EXPECT_EQ(errorOf([&] { Manifest::parse(twice.dump()); }),
            "manifest: programs[1]: 'short' is listed twice");
}

/// A parameter is only a right operand if it is one in all programs.
TEST(Manifest, RightOperands) {
  json edited = makeToyBuckets();
  auto isRightOperand = [&](int64_t parameter) {
    return Manifest::parse(edited.dump()).parameters[parameter].isRightOperand;
  };
  EXPECT_FALSE(isRightOperand(0));
  edited["programs"][0]["right_operands"] = {0, 1};
  EXPECT_FALSE(isRightOperand(0));
  edited["programs"][1]["right_operands"] = {0};
  EXPECT_TRUE(isRightOperand(0));
  EXPECT_FALSE(isRightOperand(1));
  edited["programs"][1]["parameters"] = {1, 0};
  EXPECT_FALSE(isRightOperand(0));
  EXPECT_TRUE(isRightOperand(1));
  edited["programs"].erase(1);
  EXPECT_TRUE(isRightOperand(0));
  edited["parameters"][0]["updated"] = true;
  EXPECT_FALSE(isRightOperand(0));
}

TEST(SymbolicSize, ReadsLinearExpressions) {
  auto check = [](const char *text, int64_t factor, const char *symbol,
                  int64_t offset) {
    SymbolicSize size = SymbolicSize::parse(text);
    EXPECT_TRUE(size.isLinear) << text;
    EXPECT_EQ(size.factor, factor) << text;
    EXPECT_EQ(size.symbol, symbol) << text;
    EXPECT_EQ(size.offset, offset) << text;
  };
  check("16", 0, "", 16);
  check("s0", 1, "s0", 0);
  check("2*s0", 2, "s0", 0);
  check("s_1-3", 1, "s_1", -3);
  check("12*batch+1", 12, "batch", 1);
  for (const char *text :
       {"", "s0+s1", "2*s0+s1", "s0*2", "s0+", "-s0", "0*s0", "2*", "s0+-1",
        "FloorDiv(s0, 2)", "99999999999999999999", "s0**2"})
    EXPECT_FALSE(SymbolicSize::parse(text).isLinear) << text;
}

TEST(SymbolicSize, EvaluatesAndSolves) {
  SymbolicSize size = SymbolicSize::parse("2*s0-1");
  EXPECT_EQ(size.evaluate(3), 5);
  EXPECT_EQ(size.evaluate(0), std::nullopt);
  EXPECT_EQ(size.evaluate(INT64_MAX), std::nullopt);
  EXPECT_EQ(size.solve(5), 3);
  EXPECT_EQ(size.solve(4), std::nullopt);
  EXPECT_EQ(SymbolicSize::parse("7").evaluate(0), 7);
  EXPECT_EQ(SymbolicSize::parse("7").solve(7), std::nullopt);
}

TEST(Manifest, MalformedJson) {
  EXPECT_TRUE(contains(errorOf([] { Manifest::parse("{"); }),
                       "manifest: malformed JSON"));
  EXPECT_TRUE(
      contains(errorOf([] { Manifest::parse("[]"); }), "expected an object"));
}

TEST(Manifest, EveryMissingMemberIsNamed) {
  json valid = makeValid();
  for (const auto &[key, value] : valid.items()) {
    json broken = valid;
    broken.erase(key);
    EXPECT_TRUE(contains(errorOf([&] { Manifest::parse(broken.dump()); }),
                         "missing '" + key + "'"));
  }
  for (const auto &[key, value] : valid["programs"][0].items()) {
    json broken = valid;
    broken["programs"][0].erase(key);
    EXPECT_TRUE(contains(errorOf([&] { Manifest::parse(broken.dump()); }),
                         "missing 'programs[0]." + key + "'"));
  }
}

struct Edit {
  const char *name;
  const char *pointer; ///< JSON pointer of the member
  const char *value;
  const char *error;
};

class ManifestInvalid : public testing::TestWithParam<Edit> {};

TEST_P(ManifestInvalid, IsRejected) {
  json broken = makeValid();
  broken[json::json_pointer(GetParam().pointer)] =
      json::parse(GetParam().value);
  EXPECT_TRUE(contains(errorOf([&] { Manifest::parse(broken.dump()); }),
                       GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    Manifest, ManifestInvalid,
    testing::Values(
        Edit{"schema", "/schema", "1", "schema 1, expected 5"},
        Edit{"world", "/world_size", "3",
             "world_size: found 3, but the mesh's axes hold 2 ranks"},
        Edit{"world_zero", "/world_size", "0", "world_size: found 0"},
        Edit{"axis_zero", "/mesh/axes/1/size", "0",
             "mesh.axes[1].size: found 0"},
        Edit{"entries", "/programs/0/entries", "[1]",
             "programs[0].entries[0]: expected a string, found 1"},
        Edit{"entries_count", "/programs/0/entries", "[\"a\", \"b\"]",
             "programs[0].entries: has 2 functions, expected one for each of "
             "1 CPUs"},
        Edit{"no_program", "/programs", "[]", "programs: is empty"},
        Edit{"right_operand", "/programs/0/right_operands", "[1]",
             "programs[0].right_operands[0]: found 1, expected 0"},
        Edit{"program_parameter", "/programs/0/parameters", "[1]",
             "programs[0].parameters[0]: found 1, expected 0"},
        Edit{"symbols", "/programs/0/inputs/0/symbolic_shape", "[\"2\"]",
             "inputs[0].symbolic_shape: has 1 sizes, expected 2"},
        Edit{"symbol_number", "/programs/0/inputs/0/symbolic_shape",
             "[\"2\", \"5\"]",
             "inputs[0].symbolic_shape[1]: found '5' for a size of 4"},
        Edit{"symbol_value", "/programs/0/inputs/0/symbolic_shape",
             "[\"s0\", \"s0+1\"]",
             "inputs[0].symbolic_shape[1]: found 's0+1' for a size of 4, where "
             "s0 is 2"},
        Edit{"features", "/target/features", "\"+avx\"",
             "target.features: expected an array"},
        Edit{"arena", "/programs/0/arena_bytes", "-1",
             ".arena_bytes: found -1"},
        Edit{"arena_huge", "/programs/0/arena_bytes", "18446744073709551615",
             ".arena_bytes: found 18446744073709551615"},
        Edit{"arena_float", "/programs/0/arena_bytes", "1.5",
             "expected an integer"},
        Edit{"dtype", "/programs/0/inputs/0/dtype", "\"f31\"",
             "inputs[0].dtype: unknown dtype 'f31'"},
        Edit{"shape", "/programs/0/inputs/0/shape", "[4611686018427387904, 4]",
             "inputs[0].shape: shape [4611686018427387904,4] is too large"},
        Edit{"shards", "/programs/0/inputs/0/shards", "[[[0, 2], [0, 2]]]",
             "inputs[0].shards: has 1 entries, expected one for each of 2"},
        Edit{"shard_rank", "/programs/0/inputs/0/shards/0", "[[0, 2]]",
             "inputs[0].shards[0]: has 1 dimensions, expected 2"},
        Edit{"shard_range", "/programs/0/inputs/0/shards/1/1", "[3, 2]",
             "inputs[0].shards[1][1]: [3, 2] exceeds the dimension's size 4"},
        Edit{"shard_pair", "/programs/0/inputs/0/shards/1/1", "[3]",
             "has 1 entries, expected pairs of offset and size"},
        Edit{"shard_none", "/programs/0/inputs/0/shards/1/1", "[]",
             "has 0 entries, expected pairs of offset and size"},
        Edit{"shard_order", "/programs/0/inputs/0/shards/1/1", "[2, 2, 1, 1]",
             "inputs[0].shards[1][1]: [1, 1] begins before the end of the "
             "piece before it, 4"},
        Edit{"output_hole", "/programs/0/outputs/0/shards",
             "[[[0, 1]], [[0, 1]]]",
             "the shards of output 'y' cover 1 elements of 2"},
        Edit{
            "twice", "/programs/0/inputs/1",
            R"({"name": "x", "dtype": "f32", "shape": [], "shards": [[], []]})",
            ".inputs[1]: 'x' is listed twice"},
        Edit{"op_flops", "/programs/0/ops/1/flops", "-1",
             "ops[1].flops: found -1"},
        Edit{"op_dtype", "/programs/0/ops/0/dtype", "\"f31\"",
             "ops[0].dtype: unknown dtype 'f31'"},
        Edit{"op_sizes", "/programs/0/ops/0/product/sizes", "[2, 3]",
             "ops[0].product.sizes: found 2 numbers, expected 3"},
        Edit{"op_stride", "/programs/0/ops/0/product/b",
             "[1, 2147483648, 0, 0]",
             "ops[0].product: found 2147483648 as a size or stride"},
        Edit{"op_weight", "/programs/0/ops/0/product/weight", "1",
             "ops[0].product.weight: "},
        Edit{"kind", "/programs/0/collectives/0/kind", "\"gather\"",
             "collectives[0].kind: found 'gather', expected one of"},
        Edit{"reduction", "/programs/0/collectives/1/reduction", "\"mean\"",
             "collectives[1].reduction: found 'mean', expected one of"},
        Edit{"bool_sum", "/programs/0/collectives/2/reduction", "\"sum\"",
             "i1 has max, min and product, found 'sum'"},
        Edit{"dim", "/programs/0/collectives/0/dim", "2",
             "collectives[0].dim: found 2, expected 0 to 1"},
        Edit{"result", "/programs/0/collectives/0/result_shapes/1", "[4, 2]",
             "collectives[0].result_shapes[1]: found [4,2], expected [2,4] "
             "for all_gather among ranks [0,1]"},
        Edit{"shapes", "/programs/0/collectives/0/operand_shapes", "[[2, 2]]",
             "collectives[0].operand_shapes: has 1 entries, expected one for "
             "each of 2 ranks"},
        Edit{"dims", "/programs/0/collectives/0/operand_shapes/1", "[2]",
             "operand_shapes[1]: has 1 dimensions, the first shape has 2"},
        Edit{"result_dims", "/programs/0/collectives/0/result_shapes",
             "[[2], [2]]",
             "result_shapes: have 1 dimensions, the operands have 2"},
        Edit{"gather", "/programs/0/collectives/0/operand_shapes/1", "[1, 2]",
             "operand_shapes[1]: found [1,2], expected [2,2]"},
        Edit{"scatter", "/programs/0/collectives/1/result_shapes/1", "[1]",
             "collectives[1].result_shapes: the blocks of ranks [0,1] have 3 "
             "indices along dimension 0, expected the operands' 4"},
        Edit{"reduce_shape", "/programs/0/collectives/2/result_shapes",
             "[[1], [1]]", "have 1 dimensions, the operands have 0"},
        Edit{"permute_shape", "/programs/0/collectives/4/result_shapes/0",
             "[2]", "found [2], expected [1] for permute"},
        Edit{"broadcast_shape", "/programs/0/collectives/5/operand_shapes/1",
             "[2]", "result_shapes[0]: found [1], expected [2] for broadcast"},
        Edit{"same_dims", "/programs/0/collectives/6/concat_dim", "0",
             "found 0, expected another dimension than split_dim"},
        Edit{"all_to_all_split", "/programs/0/collectives/6/result_shapes/0",
             "[1, 3]",
             "have 2 indices along dimension 0, expected the operands' 3"},
        Edit{"all_to_all_concat", "/programs/0/collectives/6/result_shapes/0",
             "[2, 2]",
             "result_shapes[0]: found [2,2], expected [2,3] for all_to_all"},
        Edit{"transfers", "/programs/0/collectives/7/transfers", "[[]]",
             "transfers: has 1 entries, expected one for each of 2 ranks"},
        Edit{"transfer_from", "/programs/0/collectives/7/transfers/0/1/from",
             "2", "transfers[0][1].from: rank 2 is not in the group of rank 0"},
        Edit{"transfer_dims", "/programs/0/collectives/7/transfers/0/1/size",
             "[1]", "transfers[0][1].size: has 1 entries, expected 2"},
        Edit{"transfer_size", "/programs/0/collectives/7/transfers/1/1/size/1",
             "2", "transfers[1][1].size[1]: found 2, expected 0 to 1"},
        Edit{"transfer_src", "/programs/0/collectives/7/transfers/0/0/src/1",
             "2", "transfers[0][0].src[1]: found 2, expected 0 to 1"},
        Edit{"transfer_dst", "/programs/0/collectives/7/transfers/0/0/dst/0",
             "2", "transfers[0][0].dst[0]: found 2, expected 0 to 1"},
        Edit{"transfer_hole", "/programs/0/collectives/7/transfers/0/1/size",
             "[0, 2]", "collectives[7].transfers[0]: fill 4 of 6 elements"},
        Edit{"transfer_twice", "/programs/0/collectives/7/transfers/0/1/dst",
             "[1, 0]", "collectives[7].transfers[0]: fill 4 of 6 elements"},
        Edit{"transfer_surplus", "/programs/0/collectives/7/transfers/1/2",
             R"({"from": 1, "src": [0, 0], "dst": [0, 0], "size": [1, 1]})",
             "transfers[1][2]: the transfers so far hold 4 elements, the "
             "result has 3"},
        Edit{"updated", "/parameters/0/updated", "1",
             "parameters[0].updated: expected true or false, found 1"},
        Edit{"init", "/parameters/0/init", "\"0\"",
             "parameters[0].init: expected a number, found \"0\""},
        Edit{"root", "/programs/0/collectives/5/root", "2",
             "collectives[5].root: found 2, expected 0 to 1"},
        Edit{"source", "/programs/0/collectives/4/source", "[0]",
             "collectives[4].source: has 1 entries, expected the group's size"},
        Edit{"source_range", "/programs/0/collectives/4/source/0", "2",
             "collectives[4].source[0]: found 2"},
        Edit{"no_group", "/programs/0/collectives/0/groups", "[]",
             "collectives[0].groups: is empty"},
        Edit{"empty_group", "/programs/0/collectives/0/groups/0", "[]",
             "collectives[0].groups[0]: is empty"},
        Edit{"group_rank", "/programs/0/collectives/0/groups/0/1", "2",
             "collectives[0].groups[0][1]: found 2, expected 0 to 1"},
        Edit{"group_twice", "/programs/0/collectives/0/groups", "[[0], [0]]",
             "collectives[0].groups[1]: rank 0 is in two groups"},
        Edit{"group_sizes", "/programs/0/collectives/2/groups", "[[0, 1], [1]]",
             "has another size than the first group"},
        Edit{"bytes", "/programs/0/collectives/0/bytes_by_rank", "[16]",
             "has 1 entries, expected one for each of 2 ranks"},
        Edit{"bytes_wrong", "/programs/0/collectives/6/bytes_by_rank/1", "12",
             "collectives[6].bytes_by_rank[1]: found 12, expected 8"}),
    [](const auto &info) { return info.param.name; });
