//===- PrintShardingRules.cpp - Sharding rules as text --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Advice/Passes.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"

namespace mlir::tp {
#define GEN_PASS_DEF_PRINTSHARDINGRULES
#include "tp/Advice/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {
struct PrintShardingRules
    : tp::impl::PrintShardingRulesBase<PrintShardingRules> {
  void runOnOperation() override {
    getOperation()->walk<WalkOrder::PreOrder>([](ShardingRuleOpInterface op) {
      std::string text;
      llvm::raw_string_ostream os(text);
      op.getShardingRule().print(os);
      op->emitRemark() << text;
      // Ops in the body of an op aren't ops of the program.
      return WalkResult::skip();
    });
    markAllAnalysesPreserved();
  }
};
} // namespace
