//===- PipelineOps.td - Pipelines and their transfers ------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_PIPELINEOPS_TD
#define TP_DIALECT_TP_PIPELINEOPS_TD

include "tp/Dialect/TP/TPOpBase.td"

def TP_PipelineOp : TP_Op<"pipeline", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A mesh dimension whose ranks run the stages of a pipeline";
  let description = [{
    The module's entry point consists of `stages` stages, by default one for each index of `axis`.
    Of n indices, the ranks at index i run the stages i, i + n, i + 2n, …. `tp.stage` says which ops
    belong to which stage. Over this mesh dimension every value is replicated until
    `tp-cut-stages` gives the ranks at each index a program of their own.

    The batch consists of `microbatches` microbatches. `schedule` is the order in which ranks run
    their forward and backward passes, by the names of torch.distributed.pipelining: `"GPipe"` runs
    all forward passes first; `"1F1B"` runs the backward pass of a microbatch as soon as it can;
    `"Interleaved1F1B"` does so with several stages per rank; `"InterleavedZeroBubble"` computes the
    gradients of weights later than those that other stages wait for.

    ```mlir
    tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 4
    tp.pipeline @mesh over "pp" schedule "Interleaved1F1B" microbatches 4 stages 8
    ```

    **Constraints:** (C1) the mesh exists and has the dimension; (C2) the schedule is one of the
    above; (C3) there are 1 to 1024 microbatches; (C4) a module has one pipeline; (C5) the
    number of stages is a multiple of the number of indices: one per index with `"GPipe"` and
    `"1F1B"`, 2 to 1024 with `"Interleaved1F1B"`, 1 to 1024 with `"InterleavedZeroBubble"`; (C6)
    with several stages per index, the number of rounds, which is microbatches / indices rounded
    down and at least 1, divides the number of microbatches.
  }];
  let arguments = (ins FlatSymbolRefAttr:$mesh,
                       StrAttr:$axis,
                       StrAttr:$schedule,
                       I64Attr:$microbatches,
                       OptionalAttr<I64Attr>:$stages);
  let assemblyFormat = [{
    $mesh `over` $axis `schedule` $schedule `microbatches` $microbatches (`stages` $stages^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The number of all stages.
    int64_t getNumStages(::mlir::tp::MeshOp mesh);
    /// Verifies (C5) and (C6).
    ::mlir::LogicalResult verifyStages(::mlir::tp::MeshOp mesh);
  }];
}

def TP_TransferOp : TP_CollectiveOp<"transfer"> {
  let summary = "Pass a value from one stage of a pipeline to another";
  let description = [{
    A group's rank at index `from` of the pipeline's mesh dimension sends its operand to the one at
    index `to`, whose result it is. The programs of both stages have the op: in the sender's, the
    result is empty, and in the receiver's the operand: all of its sizes are 0. The first transfer
    from one stage to another that the sender's program has meets the first one that the receiver's
    has, and so on.

    `varying` are the mesh dimensions along which the ranks of a stage may have different values, as
    found by `tp-cut-stages`, before collectives are optimized.

    ```mlir
    %1 = tp.transfer %0 from 0 to 1 over @mesh {pp} : tensor<8x4xf32> -> tensor<0x0xf32> // stage 0
    %1 = tp.transfer %0 from 0 to 1 over @mesh {pp} : tensor<0x0xf32> -> tensor<8x4xf32> // stage 1
    ```

    **Constraints:** (C4) `from` and `to` are different indices along the group's only mesh
    dimension; (C5) operand and result have the same number of dimensions, at least one; (C6) all
    ranks that run the program are at one of the two indices; (C7) what they don't send or receive
    is empty.
  }] # baseDescription;
  let arguments = !con((ins AnyRankedTensor:$input,
                            I64Attr:$from,
                            I64Attr:$to,
                            OptionalAttr<TP_AxisListAttr>:$varying), base, provenance);
  let assemblyFormat = [{
    $input `from` $from `to` $to (`varying` custom<Axes>($varying)^)? `over` $mesh
    custom<Axes>($axes) attr-dict `:` type($input) `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::tp::Transfer> getTransfers(int64_t rank, ::mlir::tp::MeshOp &mesh);
    ::llvm::SmallVector<int64_t> getSources(int64_t rank, ::mlir::tp::MeshOp &mesh);
    bool isRelayed() { return false; }
    /// Whether the program that the op is in sends the value, rather than receives it.
    bool isSent();
  }];
}

#endif // TP_DIALECT_TP_PIPELINEOPS_TD
