//===- TPDialect.td - the tp dialect -----------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_TPDIALECT_TD
#define TP_DIALECT_TP_TPDIALECT_TD

include "mlir/IR/DialectBase.td"

def TP_Dialect : Dialect {
  let name = "tp";
  let cppNamespace = "::mlir::tp";
  // Partition hooks build ops of these dialects. They can't be loaded where the hooks are attached,
  // because an extension may be applied in the middle of another dialect's constructor.
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
  let summary = "DeviceMesh, placements, redistribution and collectives";
  let description = [{
    The dialect says *where* tensors live. A `tp.mesh` names the dimensions of a grid of ranks; a
    `#tp.sharding` places a value on it; `tp.redistribute` changes a value's placement; in a
    per-rank program, collectives take its place.

    Discardable attributes annotate ops and functions of any dialect:

    | attribute | on | meaning |
    |---|---|---|
    | `tp.sharding` | a function argument or result, or an op with one result | the value's placement |
    | `tp.shardings` | an op with several results | an array, one `#tp.sharding` per result |
    | `tp.fqn` | any op | FQN of the `nn.module` that the op comes from |
    | `tp.global_type` | per-rank function arguments, results, `nn.parameter` | the type before partitioning |
    | `tp.open` | function arguments and results without `tp.sharding` | the propagation chooses the placement instead of replicating the value |
    | `tp.batch` | function arguments with `tp.sharding` | the mesh dimensions over which the sharding splits the batch, such as `["dp"]`; each op that depends on the batch is split along it |
    | `tp.name` | function arguments and results | the name that users know the tensor by |
    | `tp.arena_bytes` | a per-rank module | the size of its programs' arena, from `tp-predict-memory` |

    The IR before `tp-partition` keeps global semantics: erasing every sharding and every
    `tp.redistribute` leaves the original model.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

#endif // TP_DIALECT_TP_TPDIALECT_TD
