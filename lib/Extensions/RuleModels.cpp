//===- RuleModels.cpp - Base of external models ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RuleModels.h"

using namespace mlir;
using namespace mlir::tp;

ShardingRule tp::getConcatRule(Operation *op, unsigned along) {
  ShardingRule rule = ShardingRule::replicated(op);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  for (unsigned dim = 0; dim < type.getRank(); ++dim) {
    for (TensorFactors &operand : rule.operands)
      operand[dim].push_back(dim);
    rule.results[0][dim].push_back(dim);
    rule.factors.push_back({type.getDimSize(dim)});
  }
  int64_t start = 0;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    int64_t size = cast<RankedTensorType>(operand.getType()).getDimSize(along);
    rule.windows.push_back(
        {/*isResult=*/false, static_cast<unsigned>(index), along, start, size});
    start += size;
  }
  return rule.linear(
      {llvm::to_vector<2>(llvm::seq<unsigned>(0, op->getNumOperands()))});
}
