//===- AtenGrouped.cpp - products of groups of rows -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

/// Where the groups begin and end. PyTorch only has their ends.
static Value getBounds(AtenCall &call, ImportBuilder &b) {
  Value ends = call.tensor("offs");
  Value zero = b.splat({1}, elementOf(ends), Scalar::of(int64_t(0)));
  return b.concat({zero, ends}, 0);
}

static LogicalResult groupedMm(AtenCall &call, ImportBuilder &b) {
  Value self = call.tensor("self"), other = call.tensor("mat2");
  Value result;
  if (!call.has("offs")) {
    result = matmul(b, self, other);
  } else {
    Value bounds = getBounds(call, b);
    if (rankOf(self) == 2 && rankOf(other) == 3)
      result = nn::GroupedMatmulOp::create(b, self, other, bounds);
    else if (rankOf(self) == 2 && rankOf(other) == 2)
      result = nn::GroupedOuterSumOp::create(b, b.transpose(self, {1, 0}),
                                             other, bounds);
    else
      return call.unsupported("of groups of columns: expected groups of rows "
                              "of a matrix, or a sum over groups");
  }
  return call.result(castTo(b, result, call.resultElement()));
}

/// How transformers computes experts on a CPU.
static LogicalResult groupedMmFallback(AtenCall &call, ImportBuilder &b) {
  return call.result(nn::GroupedMatmulOp::create(
      b, call.tensor("input"), call.tensor("weight"), getBounds(call, b)));
}

void mlir::tp::addGroupedOps(AtenTable &table) {
  table["_grouped_mm"] = {.run = groupedMm,
                          .reads = "self mat2 offs",
                          .inType = "out_dtype",
                          .refuses = "bias"};
  table["transformers::grouped_mm_fallback"] = {groupedMmFallback,
                                                "input weight offs"};
}
