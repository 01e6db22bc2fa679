//===- TPRTOps.td - Calls of the runtime -------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TPRT_TPRTOPS_TD
#define TP_DIALECT_TPRT_TPRTOPS_TD

include "tp/Dialect/TPRT/TPRTBase.td"
include "tp/Dialect/TPRT/TPRTComputeOps.td"

def TPRT_CheckIndexOp : TPRT_Op<"check_index", [
    MemoryEffects<[MemWrite<TPRT_StatusResource>]>, TPRT_Bufferizable<>]> {
  let summary = "Fail unless every index is in range";
  let description = [{
    Ends the program with `tprt_index_error` at the first element of `indices`, in row-major order,
    that is outside `[0, bound)` and isn't `ignored`. `what` is the text of the error: the module's
    FQN and the op.

    ```mlir
    tprt.check_index %ids below 100 what "embeddings.word: embedding" : tensor<2x8xi64>
    tprt.check_index %t below 16 except -100 what "loss: cross_entropy" : tensor<8xi64>
    ```

    The ops that use the indices always read a row that exists, so they may run before or after the
    check. Canonicalization drops checks of constants that are in range, and those of a tensor whose
    indices an earlier op of the block has checked.

    **Constraints:** (C1) `bound` is not negative.
  }];
  let arguments = (ins Arg<TPRT_IndexBuffer, "the indices", [MemRead]>:$indices,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$bound,
                       OptionalAttr<I64Attr>:$ignored,
                       StrAttr:$what);
  let assemblyFormat = [{
    $indices `below` $bound (`except` $ignored^)? `what` $what attr-dict `:` type($indices)
  }];
  let hasCanonicalizeMethod = 1;
}

def TPRT_OpaqueOp : TPRT_Op<"opaque", [
    MemoryEffects<[MemWrite<TPRT_StatusResource>]>, SameOperandsAndResultType,
    TPRT_Bufferizable<>]> {
  let summary = "The same tensor, of which nothing is known";
  let description = [{
    Ops that read the result aren't merged with ops that read the operand. Bufferization may give
    both the same buffer.

    ```mlir
    %1 = tprt.opaque %0 : tensor<8x4xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$input);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

/// The operands of a collective, of its start and of its wait.
class TPRT_CollectiveBase<string mnemonic, string readsOutput, string relation = "Equivalent",
                          list<string> overridden = []>
    : TPRT_DestinationOp<mnemonic, readsOutput, relation, [TPRT_CollectiveCallInterface],
                         overridden> {
  let arguments = (ins I64Attr:$id, Arg<Optional<TPRT_Buffer>, "the operand", [MemRead]>:$input,
                       Arg<TPRT_Buffer, "where the result goes", [MemRead, MemWrite]>:$output);
  let assemblyFormat = [{
    $id ($input^ `:` type($input))? `into` $output `:` type($output) attr-dict (`->`
    type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
  }];
}

def TPRT_CollectiveOp : TPRT_CollectiveBase<"collective", "!getInput()"> {
  let summary = "Run a collective of the artifact's manifest";
  let description = [{
    Collective `id` of the module's `tprt.manifest`: reads `input`, writes `output`. Without an
    input it runs in place: `output` holds the operand.

    ```mlir
    %1 = tprt.collective 0 %0 : tensor<8x4xf32> into %init : tensor<8x16xf32> -> tensor<8x16xf32>
    %2 = tprt.collective 1 into %1 : tensor<8x16xf32> -> tensor<8x16xf32>
    tprt.collective 0 %a : memref<8x4xf32> into %b : memref<8x16xf32>
    ```
  }];
}

def TPRT_CollectiveStartOp : TPRT_CollectiveBase<"collective_start", "!getInput()"> {
  let summary = "Start a collective of the artifact's manifest";
  let description = [{
    Starts the collective, which runs beside the ops that follow until the `tprt.collective_wait`
    with the same `id`: `input` is read and `output` written until then. Without an input it runs in
    place: `output` holds the operand. Only the wait may use the result, because the data aren't
    there yet.

    ```mlir
    %1 = tprt.collective_start 0 %0 : tensor<8x4xf32> into %init : tensor<8x16xf32> -> tensor<8x16xf32>
    // What is computed here runs beside it.
    %2 = tprt.collective_wait 0 of %0 : tensor<8x4xf32> into %1 : tensor<8x16xf32> -> tensor<8x16xf32>
    ```

    **Constraints:** (C1) on tensors, the result has one use: as the `output` of a
    `tprt.collective_wait` with the same `id` and the same `input`.
  }];
  let hasVerifier = 1;
}

// The wait still reads the input and writes the output: between start and wait, no op may overwrite
// the input or use the output. The result is the same buffer, but this doesn't say so. Otherwise
// bufferization could let the collective write into a buffer that must be computed first, and the
// collective would have to start later.
def TPRT_CollectiveWaitOp : TPRT_CollectiveBase<"collective_wait", "true", "Unknown",
                                                ["mustBufferizeInPlace"]> {
  let summary = "Wait for a collective that was started";
  let description = [{
    Waits until collective `id` is done. Then `output` holds its result, and `input` may be
    overwritten. Both operands are those of the `tprt.collective_start`, so lifetime analyses see
    that these buffers are in use from the start to the wait.

    ```mlir
    tprt.collective_start 0 %a : memref<8x4xf32> into %b : memref<8x16xf32>
    func.call @kernel_0(%c, %d) : (memref<8xf32>, memref<8xf32>) -> ()
    tprt.collective_wait 0 of %a : memref<8x4xf32> into %b : memref<8x16xf32>
    ```
  }];
  let assemblyFormat = [{
    $id (`of` $input^ `:` type($input))? `into` $output `:` type($output) attr-dict (`->`
    type($results)^)?
  }];
}

def TPRT_CallOp : TPRT_DestinationOp<"call", "isUpdated(operand)", "Equivalent", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Call a function that a program repeats";
  let description = [{
    Calls a function that holds ops which the program repeats, such as a layer. The function takes
    the rank and a buffer for each other operand, in their order. It reads `inputs`, reads and
    overwrites `updated`, and writes `outputs`. Each operand is a tensor or a buffer. The results are
    what the tensors among `updated` and `outputs` then hold.

    ```mlir
    %y, %v = tprt.call @layer_0 rank %rank ins(%x, %w : tensor<8x4xf32>, tensor<4x4xf32>)
      updates(%u : tensor<4x4xf32>) outs(%init : tensor<8x4xf32>)
      origins ["layers.3.linear", "layers.3.add"] collectives [6] -> tensor<4x4xf32>, tensor<8x4xf32>
    ```

    The attributes are what differs between two calls of a function:

    | attribute | meaning |
    |---|---|
    | `origins` | the FQN of each op that the function's locations name, by the position there |
    | `collectives` | the id of each collective of the function, by its number there |
    | `offsets` | the offset in the arena of each buffer of the function; set by `tp-plan-arena` |
    | `marks` | the index of each `tprt.mark` of the function; set by `tp-insert-profile-marks` |

    The `id` of a collective in the function, and the `index` of a mark, are positions in these
    lists.

    **Constraints:** (C1) `callee` has the attribute `tprt.repeated`; (C2) its first arguments are an
    index and buffers of the operands' shapes and element types; (C3) it contains no `tprt.call`;
    (C4) `updated` are all tensors or all buffers.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Index:$rank,
                       Arg<Variadic<TPRT_Buffer>, "only read", [MemRead]>:$inputs,
                       Arg<Variadic<TPRT_Buffer>, "overwritten", [MemRead, MemWrite]>:$updated,
                       Arg<Variadic<TPRT_Buffer>, "where the results go", [MemWrite]>:$outputs,
                       StrArrayAttr:$origins,
                       DenseI64ArrayAttr:$collectives,
                       OptionalAttr<DenseI64ArrayAttr>:$offsets,
                       OptionalAttr<DenseI64ArrayAttr>:$marks);
  let assemblyFormat = [{
    $callee `rank` $rank (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    (`updates` `(` $updated^ `:` type($updated) `)`)? (`outs` `(` $outputs^ `:` type($outputs) `)`)?
    `origins` $origins `collectives` $collectives (`offsets` $offsets^)? (`marks` $marks^)?
    attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      unsigned count = getOutputs().size() + (updatesBuffers() ? 0 : getUpdated().size());
      return ::mlir::MutableOperandRange(getOperation(), getNumOperands() - count, count);
    }
    /// Whether `updated` are buffers, so no results stand for them.
    bool updatesBuffers() {
      return !getUpdated().empty() &&
             ::llvm::isa<::mlir::MemRefType>(getUpdated().front().getType());
    }
    /// Whether `operand` is read and overwritten.
    bool isUpdated(::mlir::OpOperand &operand) {
      unsigned first = 1 + getInputs().size(), number = operand.getOperandNumber();
      return number >= first && number < first + getUpdated().size();
    }
  }];
  let hasVerifier = 1;
}

def TPRT_ParallelOp : TPRT_Op<"parallel", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Call a kernel for a range of iterations, in parts";
  let description = [{
    Calls `kernel` with `arguments`, followed by the begin and the end of a range. The ranges of all
    calls together cover each iteration of `[0, count)` once; the calls may run at the same time.
    `nanoseconds` estimates the time of a single call for all of `[0, count)`; from it, the runtime
    decides how many threads to use.

    ```mlir
    tprt.parallel @kernel_0(%a, %b) count 1024 nanoseconds 200000 : memref<1024x64xf32>, memref<1024x64xf32>
    ```

    **Constraints:** (C1) `kernel` is a function of the arguments' types and two of type `index`,
    without results; (C2) `count` and `nanoseconds` are not negative.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel,
                       Variadic<AnyType>:$arguments,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$count,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$nanoseconds);
  let assemblyFormat = [{
    $kernel `(` $arguments `)` `count` $count `nanoseconds` $nanoseconds attr-dict (`:`
    type($arguments)^)?
  }];
}

def TPRT_MarkOp : TPRT_Op<"mark", [MemoryEffects<[MemWrite<TPRT_StatusResource>]>]> {
  let summary = "Say what the ops that follow belong to";
  let description = [{
    The ops that follow, up to the next mark or collective, belong to entry `index` of the `ops` in
    the module's `tprt.manifest`. A traced or profiled run takes the time here; any other run loses
    a few nanoseconds.

    ```mlir
    tprt.mark 3
    func.call @kernel_0(%a, %b) : (memref<8xf32>, memref<8xf32>) -> ()
    ```
  }];
  let arguments = (ins I64Attr:$index);
  let assemblyFormat = "$index attr-dict";
}

def TPRT_FillOp : TPRT_Op<"fill", [
    MemoryEffects<[MemWrite<TPRT_StatusResource>]>,
    TypesMatchWith<"the buffer holds numbers of this type", "output", "value",
                   "::llvm::cast<::mlir::MemRefType>($_self).getElementType()">]> {
  let summary = "Store a number in a device's memory";
  let description = [{
    A program for a device can't access the device's memory itself, so the runtime stores the number
    there.

    ```mlir
    tprt.fill %v into %b : memref<i64>
    ```
  }];
  let arguments = (ins AnyTypeOf<[AnySignlessInteger, AnyFloat]>:$value,
                       Arg<MemRefRankOf<[AnySignlessInteger, AnyFloat], [0]>, "where it goes",
                           [MemWrite]>:$output);
  let assemblyFormat = "$value `into` $output attr-dict `:` type($output)";
}

def TPRT_ErrorRecordOp : TPRT_Op<"error_record", [Pure]> {
  let summary = "Where kernels report errors";
  let description = [{
    The address of the rank's `tprt_device_error`, in the device's memory.

    ```mlir
    %r = tprt.error_record : !llvm.ptr
    ```
  }];
  let results = (outs AnyType:$record);
  let assemblyFormat = "attr-dict `:` type($record)";
}

def TPRT_SiteOp : TPRT_Op<"site", [Pure]> {
  let summary = "The number of the text of an index check";
  let description = [{
    The number by which a kernel names the text of an index check that has failed (`what` of
    `tprt.check_index`). In a function that a program repeats, each call has its own, since the text
    begins with the module's FQN.

    ```mlir
    %n = tprt.site "embeddings.word: embedding"
    ```
  }];
  let arguments = (ins StrAttr:$what);
  let results = (outs I32:$number);
  let assemblyFormat = "$what attr-dict";
}

#endif // TP_DIALECT_TPRT_TPRTOPS_TD
