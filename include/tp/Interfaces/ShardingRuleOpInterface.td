//===- ShardingRuleOpInterface.td - Sharding rules of ops --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_INTERFACES_SHARDINGRULEOPINTERFACE_TD
#define TP_INTERFACES_SHARDINGRULEOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let description = [{
    The one place where propagation, partitioning, the verifier, the explanations, the cost model
    and the planner learn how an op may be split. See `ShardingRule.h` for the vocabulary.
  }];
  let cppNamespace = "::mlir::tp";
  let methods = [
    InterfaceMethod<[{
      The op's rule, for its current (global) operand and result types.
    }], "::mlir::tp::ShardingRule", "getShardingRule">,
    InterfaceMethod<[{
      Builds the op's per-rank form: `operands` are the local operands, placed as
      `split` says; the returned values must have the types `resultTypes`
      (local shapes). The default clones the op with new operands and types,
      which is right wherever the op's shape is carried by its types alone. An op
      that needs more (a masked lookup, an offset) overrides it.
    }], "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "partition",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
         "::mlir::TypeRange":$resultTypes, "const ::mlir::tp::OpSplit &":$split),
    [{}], [{
      return ::mlir::tp::clonePartitioned($_op, builder, operands, resultTypes);
    }]>,
  ];
}

#endif // TP_INTERFACES_SHARDINGRULEOPINTERFACE_TD
