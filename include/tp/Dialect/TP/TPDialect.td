//===- TPDialect.td - The tp dialect -----------------------*- tablegen -*-===//
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

    | attribute | on | meaning | set by | read by |
    |---|---|---|---|---|
    | `tp.sharding` | a function argument or result, or an op with one result | the value's placement | `tp-apply-plan`, `tp-propagate` | `tp-propagate` and the passes after it |
    | `tp.shardings` | an op with several results | an array, one `#tp.sharding` per result | `tp-propagate` | `tp-partition` |
    | `tp.fqn` | any op | FQN of the `nn.module` that the op comes from | `nn-inline-modules`; passes that replace the op | reports, error messages |
    | `tp.global_type` | per-rank function arguments and results, `nn.parameter` | the type before partitioning | `tp-partition` | `tp-report`, `tp-verify-spmd`, `tp-create-entry-point` |
    | `tp.open` | function arguments and results without `tp.sharding` | the propagation chooses the placement instead of replicating the value | the model's author | `tp-propagate`, which removes it |
    | `tp.batch` | function arguments with `tp.sharding` | the mesh dimensions over which the sharding splits the batch, such as `["dp"]`; each op that depends on the batch is split along it | `tp-apply-plan` | `tp-propagate`, which removes it |
    | `tp.sequence` | function arguments with `tp.sharding` | the same for the sequence of context parallelism | `tp-apply-plan` | `tp-propagate`, which removes it |
    | `tp.name` | function arguments and results | the name that users know the tensor by | importers, `tp-add-loss`, `tp-grad` | reports, `tp-create-entry-point` |
    | `tp.symbolic_shape` | function arguments and results | the sizes of the global tensor as the model knows them: numbers, and expressions of the symbols that became numbers, such as `["1", "s0", "2*s0+1"]` | importers | `tp-create-entry-point`, for the padding of inputs |
    | `tp.loss` | a function result; a function argument | the loss of a training step; its target | `tp-add-loss` | `tp-grad`, which removes it from arguments |
    | `tp.ranks` | a function | the ranks that run it, if not all ranks run the same function | `tp-partition` | the passes after it |
    | `tp.copy_of` | a function with `tp.ranks` | the function that this one is a copy of, for ranks whose blocks have other shapes | `tp-partition` | the passes after it |
    | `tp.stage` | any op; a function | the stage of a pipeline that the op belongs to; of a function, the index along the pipeline's mesh dimension of the ranks that run it | `tp-apply-plan`, `tp-grad`; `tp-cut-stages` | `tp-cut-stages`, which removes it from ops; the passes after it |
    | `tp.stage_of` | a function with `tp.ranks` | the function of index 0 along the pipeline's mesh dimension, on the function of a further index | `tp-cut-stages` | the passes after it |
    | `tp.absent` | arguments and results of a stage's program | the stage doesn't have it; its type is empty | `tp-cut-stages` | reports, `tp-create-entry-point`, `tp-verify-spmd` |
    | `tp.redistributions` | a function | the costs of its redistributions | `tp-partition` | `tp-report` |
    | `tp.constants` | a module | FQNs of the buffers that are constants in it, because the model's `state_dict` doesn't have them and the program doesn't write them | importers | `tp-compile`, which refuses other programs that update them |
    | `tp.arena_bytes` | a per-rank module | the size of its programs' arena | `tp-predict-memory` | `tp-report` |
    | `tp.arena_use` | a per-rank module | what lives in the largest arena over time | `tp-predict-memory` | `tp-report` |
    | `tp.reshard` | `tp.redistribute` | the backward pass redistributes again instead of keeping the forward pass's result | `tp-apply-plan` | `tp-grad` |
    | `tp.fsdp_group` | `nn.parameter` | FQN of the module that PyTorch's `fully_shard` would be called on; FSDP gathers and reduces the parameters of a group together | `tp-apply-plan` | `tp-grad`, `tp-optimize-collectives` |
    | `tp.pass` | `nn.recompute`; with a pipeline, any op | the pass over the model in which it reads or runs: 2k is the forward pass of the step's batch k, 2k + 1 its backward pass | `tp-grad`, `tp-split-batch` | `tp-cut-stages`, which removes it from other ops than `nn.recompute`; `tp-optimize-collectives` |
    | `tp.buffer` | `nn.parameter` | it is a buffer, which FSDP doesn't split | importers | `tp-apply-plan` |
    | `tp.sparse_rows` | `tp.all_to_all` | many rows of the operand, its elements along the last dimension, are 0 and needn't move; the result is the same, and `bytes` is a bound | `tp-partition` | `tp-compile`, the runtime |
    | `tp.index_bound` | an op that looks up a rank's rows | the number of rows of the global table, against which out-of-range indices are reported | `tp-partition` | `convert-nn-to-linalg`, `tp-verify-spmd` |

    While `tp-optimize-collectives` runs, `tp.origins` numbers the collectives that a collective
    replaces.

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
