//===- PlanTest.cpp - Plan files, patterns, placements --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "tp/Plan/Pattern.h"
#include "tp/Plan/Placement.h"
#include "tp/Plan/PlanFile.h"
#include "tp/Plan/Style.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

struct Match {
  const char *pattern, *name;
  bool matches;
};

// Expected values are those of Python's fnmatch.fnmatchcase.
TEST(Pattern, TokensMatchAsInPython) {
  const Match table[] = {
      {"w1", "w1", true},
      {"w1", "W1", false},
      {"w1", "w12", false},
      {"", "", true},
      {"", "x", false},
      {"*", "", true},
      {"*", "anything", true},
      {"w*", "w", true},
      {"*_norm", "ffn_norm", true},
      {"*_norm", "norm", false},
      {"a*b*c", "aXbYbZc", true},
      {"w?", "w1", true},
      {"w?", "w", false},
      {"w?", "w12", false},
      {"w[123]", "w2", true},
      {"w[123]", "w4", false},
      {"net[1-2]", "net2", true},
      {"net[1-2]", "net3", false},
      {"net[2-1]", "net1", false},
      {"w[!12]", "w3", true},
      {"w[!12]", "w1", false},
      {"w[!12]", "w!", true},
      {"w[a-]", "w-", true},
      {"w[-a]", "w-", true},
      {"w[]a]", "w]", true},
      {"w[!]a]", "wb", true},
      {"w[!]a]", "w]", false},
      // A bracket that isn't closed is itself.
      {"w[1", "w[1", true},
      {"w[1", "w1", false},
      {"w[", "w[", true},
      // What POSIX has beyond Python.
      {"w[^1]", "w^", true},
      {"w[^1]", "w1", true},
      {"w[^1]", "w2", false},
      {"w\\*", "w\\x", true},
      {"w\\*", "w*", false},
      {"w[\\]", "w\\", true},
      {"w[[:digit:]]", "w1", false},
      {"w[[:digit:]]", "wd]", true},
      {"{a,b}", "a", false},
      {"{a,b}", "{a,b}", true},
      {".x", ".x", true},
      {"*", ".x", true},
  };
  for (const Match &row : table)
    EXPECT_EQ(matchToken(row.pattern, row.name), row.matches)
        << row.pattern << " on " << row.name;
}

TEST(Pattern, FqnsMatchTokenByToken) {
  const Match table[] = {
      {"", "", true},
      {"", "net1", false},
      {"*", "", false},
      {"*", "layers.0", false},
      {"layers.*", "layers.0", true},
      {"layers.*", "layers.0.wq", false},
      {"layers.*.w[qkv]", "layers.11.wk", true},
      {"layers.*.w[qkv]", "layers.11.wo", false},
      {"*.*", "layers.0", true},
      {"layers*", "layers.0", false},
      {"a.b", "axb", false},
  };
  for (const Match &row : table)
    EXPECT_EQ(matchFqn(row.pattern, row.name), row.matches)
        << row.pattern << " on " << row.name;
}

TEST(Pattern, NearestName) {
  EXPECT_EQ(findNearest("atention", {"norm", "attention"}), "attention");
  EXPECT_EQ(findNearest("plna", {"mesh", "plan"}), "plan");
  EXPECT_EQ(findNearest("NET1", {"net2", "net1"}), "net1");
  EXPECT_EQ(findNearest("w", {"wq"}), "wq");
  EXPECT_EQ(findNearest("w", {"wqkv"}), "");
  EXPECT_EQ(findNearest("attention", {"mlp", "norm"}), "");
  EXPECT_EQ(findNearest("x", {}), "");
}

TEST(Placement, Spellings) {
  struct Row {
    const char *text, *expected;
  };
  const Row table[] = {
      {"Shard(1)", "Shard(1)"},
      {"Shard(-1)", "Shard(-1)"},
      {" Shard ( dim = 2 ) ", "Shard(2)"},
      {"Replicate", "Replicate"},
      {"Replicate()", "Replicate"},
      {"Partial", "Partial(sum)"},
      {"Partial()", "Partial(sum)"},
      {"Partial(max)", "Partial(max)"},
      {"Partial(reduce_op='avg')", "Partial(avg)"},
      {"S(2)", "Shard(2)"},
      {"R", "Replicate"},
      {"P(max)", "Partial(max)"},
      {"_Partial(reduce_op='min')", "Partial(min)"},
      {"_StridedShard(dim=0, sf=2)", "_StridedShard(0, split_factor=2)"},
      {"_StridedShard(1, split_factor=4)", "_StridedShard(1, split_factor=4)"},
      {"_S(-1, 3)", "_StridedShard(-1, split_factor=3)"},
  };
  for (const Row &row : table) {
    std::string error;
    std::optional<Placement> placement = parsePlacement(row.text, error);
    ASSERT_TRUE(placement) << row.text << ": " << error;
    EXPECT_EQ(placement->str(), row.expected);
  }
  for (const char *text :
       {"", "Shard", "Shard()", "Shard(x)", "Shard(1", "Shard(1, 2)",
        "Replicate(1)", "Partial(mean)", "shard(1)",
        "Shard(99999999999999999999)", "_StridedShard(0)",
        "_StridedShard(0, 0)", "Partial(sum, avg)", "_MaskPartial()"}) {
    std::string error;
    EXPECT_FALSE(parsePlacement(text, error)) << text;
    EXPECT_FALSE(error.empty()) << text;
  }
}

class PlanFileTest : public testing::Test {
protected:
  PlanFileTest()
      : handler(&context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
            return;
          auto loc = cast<FileLineColLoc>(diagnostic.getLocation());
          messages.push_back(std::to_string(loc.getLine()) + ":" +
                             std::to_string(loc.getColumn()) + ": " +
                             diagnostic.str());
        }) {}

  LogicalResult parse(StringRef text) {
    return parsePlan(text, "plan.yaml", &context, plan);
  }

  MLIRContext context;
  PlanFile plan;
  std::vector<std::string> messages;
  ScopedDiagnosticHandler handler;
};

TEST_F(PlanFileTest, KeepsOrderAndPlaces) {
  ASSERT_TRUE(succeeded(parse("mesh: {dp: 2, tp: 4}\n"
                              "mesh_dim: dp\n"
                              "plan:\n"
                              "  z.*: ColwiseParallel\n"
                              "  a:\n"
                              "    style: PrepareModuleInput\n"
                              "    input_layouts: [Shard(1), null]\n"
                              "  \"\": RowwiseParallel()\n")));
  ASSERT_EQ(plan.mesh.size(), 2u);
  EXPECT_EQ(plan.mesh[0].name, "dp");
  EXPECT_EQ(plan.mesh[1].size, 4);
  EXPECT_EQ(plan.groups[0].axes, AxisSet{0});
  ASSERT_EQ(plan.groups[0].entries.size(), 3u);
  EXPECT_EQ(plan.groups[0].entries[0].pattern, "z.*");
  EXPECT_EQ(plan.groups[0].entries[0].loc.getLine(), 4u);
  EXPECT_EQ(plan.groups[0].entries[0].loc.getColumn(), 3u);
  EXPECT_EQ(plan.groups[0].entries[0].styleLoc.getColumn(), 8u);
  EXPECT_EQ(plan.groups[0].entries[1].style, "PrepareModuleInput");
  ASSERT_EQ(plan.groups[0].entries[1].arguments.size(), 1u);
  const PlanArgument &argument = plan.groups[0].entries[1].arguments[0];
  EXPECT_EQ(argument.name, "input_layouts");
  EXPECT_EQ(argument.loc.getLine(), 7u);
  ASSERT_TRUE(argument.value.isList());
  EXPECT_EQ(argument.value.items[0].text, "Shard(1)");
  EXPECT_TRUE(argument.value.items[1].isNull());
  EXPECT_EQ(plan.groups[0].entries[2].pattern, "");
  EXPECT_EQ(plan.groups[0].entries[2].style, "RowwiseParallel");
  EXPECT_TRUE(messages.empty());
}

TEST_F(PlanFileTest, JsonIsYaml) {
  ASSERT_TRUE(succeeded(
      parse(R"({"mesh":{"tp":2},"plan":{"a":{"style":"RowwiseParallel",)"
            R"("use_local_output":false,"input_layouts":null}}})")));
  ASSERT_EQ(plan.groups[0].entries.size(), 1u);
  ASSERT_EQ(plan.groups[0].entries[0].arguments.size(), 2u);
  EXPECT_EQ(plan.groups[0].entries[0].arguments[0].value.text, "false");
  EXPECT_TRUE(plan.groups[0].entries[0].arguments[1].value.isNull());
}

TEST_F(PlanFileTest, KeepsWhatIsRightBesideWhatIsWrong) {
  EXPECT_TRUE(failed(parse("mesh: {tp: none}\n"
                           "plan:\n"
                           "  a: ColwiseParallel\n"
                           "  b: RowwiseParallel\n"
                           "  c: [x]\n")));
  EXPECT_TRUE(plan.mesh.empty());
  ASSERT_EQ(plan.groups[0].entries.size(), 2u);
  EXPECT_EQ(plan.groups[0].entries[1].style, "RowwiseParallel");
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].substr(0, 6), "1:12: ");
  EXPECT_EQ(messages[1].substr(0, 5), "5:7: ");
}

TEST_F(PlanFileTest, EveryPrefixIsHandled) {
  StringRef text = "mesh: {dp: 2, tp: 4}\nmesh_dim: tp\nplan:\n"
                   "  a.*: {style: PrepareModuleInput, input_layouts: "
                   "[Shard(1), null], desired_input_layouts: [\"Replicate\"]}\n"
                   "  'b': |\n    ColwiseParallel\n";
  for (size_t length = 0; length <= text.size(); ++length) {
    plan = PlanFile();
    messages.clear();
    bool valid = succeeded(parse(text.take_front(length)));
    EXPECT_EQ(valid, messages.empty()) << text.take_front(length).str();
  }
}

TEST_F(PlanFileTest, ArgumentsHaveDefaults) {
  const Style *style = lookupStyle(&context, "RowwiseParallel");
  ASSERT_TRUE(style);
  ASSERT_TRUE(succeeded(parse("mesh: {tp: 2}\nplan:\n  a: {style: "
                              "RowwiseParallel, output_layouts: Shard(0)}\n")));
  Arguments arguments(plan.groups[0].entries[0].loc);
  ASSERT_TRUE(succeeded(
      arguments.read(plan.groups[0].entries[0], style->getArguments())));
  EXPECT_EQ(arguments["input_layouts"].getPlacement(), Placement::shard(-1));
  EXPECT_FALSE(arguments["input_layouts"].given);
  EXPECT_EQ(arguments["output_layouts"].getPlacement(), Placement::shard(0));
  EXPECT_TRUE(arguments["output_layouts"].given);
  EXPECT_EQ(arguments["output_layouts"].loc.getColumn(), 31u);
  EXPECT_TRUE(arguments["use_local_output"].boolean);
}

} // namespace
