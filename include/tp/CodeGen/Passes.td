//===- Passes.td - per-rank IR to code ---------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CONVERSION_PASSES_TD
#define TP_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttentionToTPRT : Pass<"convert-attention-to-tprt"> {
  let summary = "Leave attention to the runtime";
  let description = [{
    `nn.attention` becomes `tprt.attention`, which never has the scores of all rows in memory. The
    heads of grouped-query attention are split in two batches, of which key and value have the
    first. A mask is read as it broadcasts.

    ```mlir
    %r = nn.attention causal %q, %k, %v scale 0.125 : (…) -> tensor<2x12x64x32xf32>
    ```

    becomes

    ```mlir
    %init = tensor.empty() : tensor<2x12x64x32xf32>
    %r = tprt.attention causal %q, %k, %v into %init scale 0.125 maps [(b, h, t, s, d, e) -> (b, h, t, d), …] : …
    ```

    `nn.attention_gradient` becomes `tprt.attention_gradient` in the same way. Attention of more
    than eight batch dimensions is left to `--convert-nn-to-linalg`, which spells it out.
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect", "::mlir::tprt::TPRTDialect"];
}

def ConvertNNToLinalg : Pass<"convert-nn-to-linalg"> {
  let summary = "Express nn ops by linalg ops on tensors";
  let description = [{
    Every nn op but `nn.parameter` becomes `linalg.generic` ops with scalar bodies of arith and math
    ops, and reshapes, slices and insertions of the tensor dialect. Everything else (functions,
    parameters, collectives) stays as it is.

    ```mlir
    %0 = nn.linear %x, %w : (tensor<8x16xf32>, tensor<4x16xf32>) -> tensor<8x4xf32>
    %1 = nn.relu %0 : tensor<8x4xf32>
    ```

    becomes

    ```mlir
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x4xf32>) -> tensor<8x4xf32>
    %0 = linalg.generic {indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (n, k), (m, n, k) -> (m, n)],
                         iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : …) outs(%init : …) { … mulf, addf … }
    %1 = linalg.generic {… "parallel", "parallel"} ins(%0 : …) outs(%empty : …) { … maximumf … }
    ```

    - f16 and bf16 compute, and accumulate, in f32; each nn op rounds its result once. A contraction
      of f16 or bf16 stays one of that type, for `convert-linalg-to-gemm`: what it becomes
      accumulates in f32.
    - Broadcast operands are read through their indexing maps, and splat constants are scalars in
      the bodies.
    - A contraction reads its operands in the layout they have: no operand is transposed in memory.
    - Float reductions may be reassociated (`fastmath<reassoc>`), which lets them be vectorised.
    - An integer division by zero gives 0, as does the remainder. PyTorch raises an error.
    - An index that is out of range ends the program: each op that looks up by index checks all of
      its indices first with `tprt.check_index`, which carries the FQN from `tp.fqn`, and reads row
      0 in place of those.

    Fails where an `nn.module` is left (`tp-partition` inlines them).
  }];
  let options = [
    Option<"onDevice", "on-device", "bool", "false",
           "Scattered sums sort their indices, so that each row of the result gathers what is "
           "added to it">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::tprt::TPRTDialect"];
}

def FoldTransposeIntoContraction : Pass<"fold-transpose-into-contraction"> {
  let summary = "Read and write contractions in the layout of their neighbours";
  let description = [{
    A transpose that feeds a contraction or `tprt.attention`, or that alone uses its result, only
    changes the indexing map of the contraction: GEMM and attention take strides, so that moving the
    data is a waste. Transposes move across the reshapes between them and the contraction.

    ```mlir
    %t = linalg.generic {… (b, h, t, d) -> (b, t, h, d) …} ins(%q : tensor<2x64x12x32xf32>) …
    %s = linalg.generic {indexing_maps = [(b, h, m, n, k) -> (b, h, m, k), …]} ins(%t, …) …
    ```

    becomes

    ```mlir
    %s = linalg.generic {indexing_maps = [(b, h, m, n, k) -> (b, m, h, k), …]} ins(%q, …) …
    ```

    A transpose is a `linalg.transpose`, or a `linalg.generic` that yields its one input with
    permuted maps. A result is written permuted where its one user, a transpose or another
    elementwise op, reads it permuted.
  }];
  let dependentDialects = [
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// Per-rank program to runtime ops
//===----------------------------------------------------------------------===//

def FlattenControlFlow : Pass<"tp-flatten-control-flow", "::mlir::func::FuncOp"> {
  let summary = "Turn loops and branches into straight-line code";
  let description = [{
    A program is straight-line code: its buffers' lives are intervals, and all ranks run the same
    collectives in the same order. An `scf.for` whose bounds are constants is unrolled. Of an
    `scf.if` both branches are run, and the results selected: no rank can take another branch than
    the one that it would wait for.

    ```mlir
    %0 = scf.if %c -> tensor<8xf32> {
      %1 = math.exp %x : tensor<8xf32>
      scf.yield %1 : tensor<8xf32>
    } else {
      scf.yield %x : tensor<8xf32>
    }
    ```

    becomes

    ```mlir
    %1 = math.exp %x : tensor<8xf32>
    %0 = arith.select %c, %1, %x : tensor<8xf32>
    ```

    Fails at a loop whose number of iterations isn't known, or exceeds 4096 altogether; at a branch
    with an op that mustn't be run where the condition doesn't hold; at any other op with regions of
    control flow; and at a call, which only the inliner can remove. Loops and branches in the bodies
    of linalg ops, over scalars, stay.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def FormEntry : Pass<"tp-form-entry", "::mlir::ModuleOp"> {
  let summary = "Give programs the signature of an artifact's entry";
  let description = [{
    A per-rank program takes tensors, names its parameters and returns tensors. In an artifact it
    gets its rank and one buffer for every input, parameter and output. This pass turns one into the
    other, and describes the buffers in the module's attribute `tprt.manifest` (docs/Artifact.md),
    from `tp.name`, `tp.sharding` and `tp.global_type`.

    ```mlir
    func.func @main(%x: tensor<8x4xf32> {tp.name = "x"}) -> tensor<8x2xf32> {
      %w = nn.parameter "w" : tensor<2x4xf32>
      …
      return %y : tensor<8x2xf32>
    }
    ```

    becomes

    ```mlir
    func.func @main(%rank: index {tprt.role = "rank"}, %x: memref<8x4xf32> {tp.name = "x", tprt.role = "input"},
                    %w: memref<2x4xf32> {tprt.role = "parameter"}, %out: memref<8x2xf32> {tprt.role = "output"}) {
      %0 = bufferization.to_tensor %x restrict : …
      %1 = bufferization.to_tensor %w restrict : …
      …
      bufferization.materialize_in_destination %y in restrict writable %out : …
      return
    }
    ```

    Parameters with one FQN become one argument. The programs are the functions with `tp.ranks`,
    which say who runs them; else `@main`, or the only function, which all ranks run. Several have
    one interface: all get the parameters that one of them reads. Fails where there is no program
    for a rank or more than one, where programs differ in names, types or shardings, where a program
    still has global shapes (a sharding without `tp.global_type`, a `tp.redistribute`), and where
    its local types aren't those of its ranks' blocks.
  }];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect", "::mlir::tensor::TensorDialect"];
}

def LocateOrigins : Pass<"tp-locate-origins", "::mlir::ModuleOp"> {
  let summary = "Keep the ops' origins in their locations";
  let description = [{
    Adds each op's `tp.fqn` and name to its location:
    `loc(fused<{fqn = "net.1", op = "relu", position = 4}>[…])`. Lowering and fusion hand locations
    on, so that `tp-mark-ops` knows in the end what code is for. Nothing else changes.
  }];
}

def ConvertTPToTPRT : Pass<"convert-tp-to-tprt", "::mlir::ModuleOp"> {
  let summary = "Turn collectives into runtime calls and rank queries into look-ups";
  let description = [{
    Each collective becomes `tprt.collective` with the next id, and an entry in the `collectives` of
    `tprt.manifest`. An all-reduce runs in place where nothing else uses the operand.
    `tp.shard_offset` becomes a look-up by rank in a constant, `tp.local_slice` a slice at such an
    offset.

    Programs of different ranks must run the same collectives in the same order, and the blocks of
    each group must fit together: one entry describes a collective of all of them. The error names
    the first difference; the ranks would wait for each other forever.

    ```mlir
    %1 = tp.all_reduce sum %0 over @mesh {tp} : tensor<8x16xf32>
    ```

    becomes

    ```mlir
    %1 = tprt.collective 0 into %0 : tensor<8x16xf32> -> tensor<8x16xf32>
    ```

    One that is started becomes `tprt.collective_start` and `tprt.collective_wait`, and is `started`
    in the manifest: other ranks' programs may still run it where it stands.

    ```mlir
    %p = tp.start {
      %g = tp.all_gather %0 dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x8xf32>
      tp.yield %g : tensor<8x8xf32>
    } : !tp.pending<tensor<8x8xf32>>
    %1 = math.exp %y : tensor<8x8xf32>
    %2 = tp.wait %p : !tp.pending<tensor<8x8xf32>>
    ```

    becomes

    ```mlir
    %init = tensor.empty() : tensor<8x8xf32>
    %p = tprt.collective_start 0 %0 : tensor<8x4xf32> into %init : tensor<8x8xf32> -> tensor<8x8xf32>
    %1 = math.exp %y : tensor<8x8xf32>
    %2 = tprt.collective_wait 0 of %0 : tensor<8x4xf32> into %p : tensor<8x8xf32> -> tensor<8x8xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect",
    "::mlir::tprt::TPRTDialect"];
}

def MakeIntegersSignless : Pass<"make-integers-signless", "::mlir::ModuleOp"> {
  let summary = "Drop the signs of integer types";
  let description = [{
    In the types of all values and functions `ui8` becomes `i8`. `convert-nn-to-linalg` has already
    expressed the ops that depend on the sign on signless integers, between casts, which this pass
    removes; the other ops only move elements.

    ```mlir
    ^bb0(%x: ui8, %out: f32):
      %0 = builtin.unrealized_conversion_cast %x : ui8 to i8
      %1 = arith.extui %0 : i8 to i32
    ```

    becomes

    ```mlir
    ^bb0(%x: i8, %out: f32):
      %1 = arith.extui %x : i8 to i32
    ```
  }];
}

def ExpandTensorOps : Pass<"tp-expand-tensor-ops", "::mlir::func::FuncOp"> {
  let summary = "Express ops on tensors by structured ops and slices";
  let description = [{
    Rewrites ops that bufferization or the fusion of linalg ops doesn't support. Elementwise `arith`
    and `math` ops on tensors become `linalg.generic`; `linalg.softmax`, `linalg.pack` and
    `linalg.unpack` become the ops that they are made of; `tensor.concat` and `tensor.pad` become
    insertions; `tensor.gather`, and `tensor.scatter` at constant indices, become a `linalg.generic`
    that reads the source at the indices. A slice of a `linalg.fill` or of a `tensor.empty` becomes
    a smaller `linalg.fill` or `tensor.empty`.

    ```mlir
    %0 = arith.addf %a, %b : tensor<8xf32>
    ```

    becomes

    ```mlir
    %0 = linalg.generic {…} ins(%a, %b : tensor<8xf32>, tensor<8xf32>) outs(%a : tensor<8xf32>) { addf }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect", "::mlir::tprt::TPRTDialect"];
}

def CheckLowered : Pass<"tp-check-lowered", "::mlir::ModuleOp"> {
  let summary = "Fail where ops are left that code generation doesn't know";
  let description = [{
    Lists all ops of the programs that aren't runtime, linalg, tensor, arith or math ops, or that
    work on tensors and can't be bufferized, each at its location, before the passes that follow
    would stumble over the first. The IR doesn't change.
  }];
}

//===----------------------------------------------------------------------===//
// Tensors: fusion
//===----------------------------------------------------------------------===//

def FuseElementwise : Pass<"tp-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Fuse elementwise ops where that repeats no work worth naming";
  let description = [{
    Fuses the producer of an operand into the op that reads it where each element is still computed
    once, or where computing it again costs next to nothing (copies, casts, comparisons of indices).
    Contractions take in copies only: they become GEMM calls. A bias added to a contraction's only
    use becomes the contraction's initial value.

    ```mlir
    %0 = linalg.generic … ins(%a, %w) outs(%zeros) { mulf, addf }     // contraction
    %1 = linalg.generic … ins(%0, %bias) { addf }
    %2 = linalg.generic … ins(%x) { exp }
    %3 = linalg.generic … ins(%2) { negf }
    ```

    becomes

    ```mlir
    %init = linalg.generic … ins(%bias) { yield }
    %1 = linalg.generic … ins(%a, %w) outs(%init) { mulf, addf }
    %3 = linalg.generic … ins(%x) { exp, negf }
    ```
  }];
  let dependentDialects = [
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def SplitReductions : Pass<"tp-split-reductions", "::mlir::func::FuncOp"> {
  let summary = "Reduce in two steps where one has too few rows";
  let description = [{
    A reduction over several dimensions to a few elements, as in the norm of a gradient, would run
    in as few blocks of a device. Where a result's element takes 16384 elements or more, and there
    are fewer than 128 elements, the outermost of these dimensions that has 32 or more is kept at
    first, and reduced by an op of its own.

    ```mlir
    %1 = linalg.generic {… "reduction", "reduction"} ins(%x : tensor<4096x512xf32>) outs(%0 : tensor<f32>) { addf }
    ```

    becomes

    ```mlir
    %p = linalg.generic {… "parallel", "reduction"} ins(%x : tensor<4096x512xf32>) outs(%zeros : tensor<4096xf32>) { addf }
    %1 = linalg.generic {… "reduction"} ins(%p : tensor<4096xf32>) outs(%0 : tensor<f32>) { addf }
    ```

    Only what may be reassociated is split: float sums that allow it, integers, maxima.
  }];
  let statistics = [Statistic<"numSplit", "split", "Reductions in two steps">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
        "::mlir::tensor::TensorDialect"];
}

def SplitSharedInits : Pass<"tp-split-shared-inits", "::mlir::func::FuncOp"> {
  let summary = "Give each op its own initial value";
  let description = [{
    CSE merges equal `tensor.empty` and `linalg.fill` ops, equal ops that only copy or repeat an
    operand, such as a bias for each row, and equal `tensor.insert_slice` ops, which concatenations
    begin with; bufferization then has to copy the value for every op that overwrites it. This pass
    clones them, one per use, right before the op that uses it. Two concatenations that begin alike
    must not share a slice: where both are outputs, `eliminate-empty-tensors` would build the first
    part of the second one in the first one's buffer.
  }];
  let dependentDialects = [
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// Buffers: GEMM, kernels, arena
//===----------------------------------------------------------------------===//

def ConvertLinalgToGemm : Pass<"convert-linalg-to-gemm", "::mlir::func::FuncOp"> {
  let summary = "Turn contractions into GEMM calls";
  let description = [{
    A `linalg.generic` that adds up products of two operands is a GEMM where its loops, seen through
    the strides of the buffers, are rows, columns, a summed dimension and batches: loops that walk
    memory as one are merged first. Where C is written column by column, C^T = B^T·A^T is computed
    instead. More than two batch dimensions become loops around the call. An initial zero is
    dropped, an initial bias becomes the call's, any other is added to.

    An elementwise op that is the only reader of the product's buffer becomes the end of the call if
    it computes `activation(product (+ addend)) (* factor)`. The activations are relu, gelu, its
    form by tanh, and silu; they are recognised by the formulas that nn's ops become. `addend` is a
    residual, `factor` the operand of a gate. The call then takes the op's place and writes its
    result. For this, the operands of the product must not change in between, no collective may
    stand in between, and the product's rows, columns and batches must be strides in all of the op's
    buffers.

    ```mlir
    linalg.generic {indexing_maps = [(b, m, n, k) -> (b, m, k), (b, m, n, k) -> (n, k), (b, m, n, k) -> (b, m, n)], …}
      ins(%x, %w : memref<8x128x64xf32>, memref<384x64xf32>) outs(%y : memref<8x128x384xf32>) { mulf, addf }
    ```

    becomes

    ```mlir
    tprt.gemm %x, %w into %y accumulate sizes [1024, 384, 64] batch [1, 1]
      a [64, 1, 0, 0] b [1, 64, 0, 0] c [384, 0, 0] : …
    ```

    And `linalg.generic ins(%y, %up) outs(%z) { silu(y) * up }`, if nothing else reads `%y`, makes
    of it

    ```mlir
    tprt.gemm %x, %w into %z activation silu factor %up [384, 0, 0] sizes [1024, 384, 64] …
    ```

    In a program that updates parameters a product doesn't end so where that would have other bits
    than the ops one by one, which the backward pass may compute: with gelu or silu, and in f16 and
    bf16 with an addend or a factor.

    Integer contractions, and those whose strides GEMM can't express, stay loops; of f16 and bf16
    they add up in a buffer of f32 and round once, as GEMM does.
  }];
  let options = [Option<"cublasltEpilogues", "cublaslt-epilogues", "bool", "false",
                        "End products only as cuBLASLt can: sums, relu and gelu by tanh; of f64 "
                        "one sum">];
  let statistics = [
    Statistic<"numGemms", "gemms", "Contractions turned into GEMM calls">,
    Statistic<"numLoops", "loops", "Contractions left as loops">,
    Statistic<"numEpilogues", "epilogues", "Elementwise ops that products end with">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tprt::TPRTDialect"];
}

def FuseRows : Pass<"tp-fuse-rows", "::mlir::func::FuncOp"> {
  let summary = "Run chains of ops row by row";
  let description = [{
    Softmax, normalisations and losses are chains of elementwise ops and reductions over rows. Run
    one op at a time, each row goes through memory many times. This pass puts consecutive ops into
    one nest of loops over the leading parallel dimensions they have in common. Two ops may share
    the nest if, in every buffer that one of them writes and the other touches, both see nothing but
    the row of the current iteration. A sum over rows shares no loop over columns: it goes along
    memory, and adds a row at a time.

    ```mlir
    linalg.generic … {parallel, reduction} ins(%x : memref<8x16xf32>) outs(%max : memref<8xf32>)
    linalg.generic … {parallel, parallel} ins(%x, %max) outs(%e : memref<8x16xf32>)
    ```

    becomes

    ```mlir
    scf.for %i = 0 to 8 {
      linalg.generic … {reduction} ins(%x[%i, :]) outs(%max_row : memref<f32>)
      linalg.generic … {parallel} ins(%x[%i, :], %max_row) outs(%e[%i, :])
    }
    ```

    A buffer that only these ops use shrinks to one row, as long as rows take no more than
    `max-row-bytes` altogether. Ops of which one has more rows by itself than all have together
    share no nest of fewer than `min-rows`.
  }];
  let options = [
    Option<"maxRowBytes", "max-row-bytes", "int64_t", "std::numeric_limits<int64_t>::max()",
           "Bytes of the rows that buffers of one nest may shrink to; a larger one keeps its size">,
    Option<"minRows", "min-rows", "int64_t", "0",
           "Iterations of a nest that are enough to run them all at a time">];
  let statistics = [Statistic<"numFused", "fused", "Ops that share a nest of loops">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def OutlineKernels : Pass<"tp-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Move loops into kernels, equal ones into one";
  let description = [{
    Each linalg op, and each nest of loops over linalg ops, in a program becomes a call of a private
    function. A model repeats its layers, and ranks' programs are alike, so most calls share a
    kernel and it is compiled once. Kernels take whole buffers, which don't overlap; views are taken
    inside. Buffers of at most 64 KiB that only the kernel uses become its stack.

    ```mlir
    linalg.generic … ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) {…}
    linalg.generic … ins(%c : memref<8xf32>) outs(%d : memref<8xf32>) {…}   // the same
    ```

    becomes

    ```mlir
    func.call @kernel_0(%a, %b) : …
    func.call @kernel_0(%c, %d) : …
    ```
  }];
  let options = [
    Option<"wholeOnly", "whole-only", "bool", "false",
           "Only buffers that a kernel takes no views of become its stack: those of one row">];
  let statistics = [Statistic<"numKernels", "kernels", "Distinct kernels">,
                    Statistic<"numCalls", "calls", "Calls of kernels">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect"];
}

def PlanArena : Pass<"tp-plan-arena", "::mlir::ModuleOp"> {
  let summary = "Place all buffers in one arena";
  let description = [{
    Every `memref.alloc` of a program lives from its first to its last use. Buffers that live at the
    same time get disjoint ranges of one arena, multiples of 64 bytes. They are placed one by one,
    each into the tightest gap that it fits: largest first, first used first, or largest product of
    size and life first, whichever gives the smallest arena. A program gets the arena as its last
    argument, and `tprt.manifest` the size of the largest as `arena_bytes`. A remark
    (`--remarks-filter=tp-plan-arena`) compares it with the most bytes that live at one time: no
    arena is smaller.

    ```mlir
    %0 = memref.alloc() : memref<8x16xf32>
    ```

    becomes

    ```mlir
    %0 = memref.view %arena[%c512][] : memref<4096xi8> to memref<8x16xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def PredictMemory : Pass<"tp-predict-memory", "::mlir::ModuleOp"> {
  let summary = "Record the size of the arena that a per-rank program will have";
  let description = [{
    Runs the steps of `tp-lower-to-llvm` up to `tp-plan-arena` on a copy of the module, and leaves
    the arena's size on the module as `tp.arena_bytes`, for `tp-report`. It is the very size that
    `tp-compile` writes into the artifact and that each rank allocates: the same passes decide it.
    The program isn't changed.

    ```mlir
    module attributes {tp.arena_bytes = 4096 : i64} { … }
    ```

    Fails where the program can't be lowered.
  }];
  let options = [
    Option<"onDevice", "on-device", "bool", "false", "The program is for CUDA devices">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
        "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect", "::mlir::tprt::TPRTDialect"];
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

def ShareKernels : Pass<"tp-share-kernels", "::mlir::ModuleOp"> {
  let summary = "Let the runtime run large kernels in parts, on several threads";
  let description = [{
    A kernel that takes long enough, by the floating-point operations and bytes of the mark before
    its call, becomes a function of a range of its iterations, and its calls `tprt.parallel`: the
    runtime decides how many threads share the range. Those are the rows of a nest that
    `tp-fuse-rows` made, or of a linalg op, down to its contiguous loop; where only that one is
    parallel, as in a sum over rows, blocks of it. An iteration's code is the same in whatever range
    it is run, and nothing is summed across iterations: results don't depend on the number of
    threads.

    ```mlir
    tprt.mark 0    // {flops = 1048576, bytes = 8388608, …}
    func.call @kernel_0(%a, %b) : (memref<1024x1024xf32>, memref<1024x1024xf32>) -> ()

    func.func private @kernel_0(%a: memref<1024x1024xf32>, %b: memref<1024x1024xf32>) {
      linalg.generic {parallel, parallel} ins(%a) outs(%b)
      return
    }
    ```

    becomes

    ```mlir
    tprt.parallel @kernel_0(%a, %b) count 1024 nanoseconds 655360 : memref<1024x1024xf32>, memref<1024x1024xf32>

    func.func private @kernel_0(%a: memref<1024x1024xf32>, %b: memref<1024x1024xf32>, %begin: index, %end: index) {
      scf.for %i = %begin to %end {
        linalg.generic {parallel, parallel} ins(%a[%i, :]) outs(%b[%i, :])
      }
      return
    }
    ```

    A nest of loops is shared if each of its iterations touches only its own rows of the buffers
    that the nest writes. Buffers on the stack that it writes before it reads them are allowed;
    every part has its own. Other kernels stay calls, as do kernels that have uses other than calls
    at the top level of entry programs, behind marks for which the manifest has flops and bytes.
  }];
  let options = [
    Option<"minNanoseconds", "min-nanoseconds", "int64_t", "50000",
           "Kernels that take less by estimate, on one core, stay calls">];
  let statistics = [Statistic<"numShared", "shared", "Kernels that run in parts">];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::tprt::TPRTDialect"];
}

def LowerKernels : Pass<"tp-lower-kernels", "::mlir::func::FuncOp"> {
  let summary = "Turn linalg ops on buffers into loops that vectorise";
  let description = [{
    The innermost loop is the one along which most operands are contiguous; the loops around it keep
    their order, reductions inside of parallel loops. A reduction of 32 elements or more in the
    innermost loop, if it may be done in any order, becomes 16 partial ones, joined in pairs at the
    end: LLVM vectorises them, and the order is the same whatever else the loop computes. exp, log,
    tanh and erf in f32 become polynomials, so that LLVM vectorises the loops around them; other
    functions stay calls of the C library.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def MarkOps : Pass<"tp-mark-ops", "::mlir::ModuleOp"> {
  let summary = "Say of each part of a program which of the model's ops it is";
  let description = [{
    Puts a `tprt.mark` before each kernel and library call, and lists in the manifest's `ops` what
    they do: the module and the ops they stem from, floating-point operations, and the bytes that
    they read and write. Equal entries are one. That is what traces and profiles name their parts
    by.

    ```mlir
    func.call @kernel_0(%a, %b) : (memref<8x4xf32>, memref<8x4xf32>) -> () loc(…)
    ```

    becomes

    ```mlir
    tprt.mark 0    // {fqn = "net.1", op = "relu", kind = "kernel", flops = 32, bytes = 256}
    func.call @kernel_0(%a, %b) : (memref<8x4xf32>, memref<8x4xf32>) -> ()
    ```
  }];
  let dependentDialects = ["::mlir::tprt::TPRTDialect"];
}

def ConvertTPRTToCalls : Pass<"convert-tprt-to-calls", "::mlir::ModuleOp"> {
  let summary = "Call the runtime's C functions";
  let description = [{
    A program gets the runtime's context as its first argument and returns a status. Each tprt op
    becomes a call of its C function (docs/Artifact.md); where the status isn't 0, the program
    returns it at once.

    ```mlir
    tprt.collective 3 into %0 : memref<8x16xf32>
    ```

    becomes

    ```mlir
    %s = func.call @tprt_collective(%ctx, %c3, %p, %p) : (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> i32
    %failed = arith.cmpi ne, %s, %c0 : i32
    cf.cond_br %failed, ^exit(%s : i32), ^next
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def ConvertProgramToLLVM : Pass<"convert-program-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Lower a program to the LLVM dialect";
  let description = [{
    Lowers what is left (func, cf, arith, math, memref) to the LLVM dialect, buffers as bare
    pointers, and adds the exported entry `tpx_main`, which reads the pointers out of its tables and
    calls the rank's program. The functions that `tprt_parallel` calls, which
    `convert-tprt-to-calls` has declared, get bodies that read a kernel's arguments out of their
    table.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

//===----------------------------------------------------------------------===//
// CUDA
//===----------------------------------------------------------------------===//

def MapKernelsToGPU : Pass<"tp-map-kernels-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Spread kernels over the threads of a GPU";
  let description = [{
    Each kernel becomes a `gpu.func` of the module `@kernels`, and each call of it a
    `gpu.launch_func` of as many blocks and threads as its iterations take. Ids, blocks and grids
    have the dimension x alone.

    - An elementwise op has one thread for as many elements as 128 bits hold, where the buffers are
      contiguous and aligned for that. Loops that walk all buffers as one are one. Where operands
      are contiguous along another loop than the results (transposes), a block has a tile of up to
      64 × 64 elements, and loads those operands through shared memory.
    - A nest of loops over rows, and a reduction, has a team of 1 to 1024 threads per row. Inside of
      a row the threads share each op's elements; a reduction ends with shuffles, and beyond a warp
      in shared memory. Results of one element are in the registers of all threads, buffers of a row
      in shared memory. A barrier is where one thread reads what another has written, and nowhere
      else.
    - Where consecutive rows are what is contiguous (sums over the rows of a matrix), consecutive
      threads have consecutive rows.
    - Loops that aren't linalg ops (scattered sums) keep their order; the loops inside that write
      disjoint elements are spread over threads.

    Sums are added up in one order on every run. `tprt.check_index` becomes a kernel that reports to
    the rank's error record; its text is number `site` of the module's attribute `tprt.sites`. A
    number that the program stores in a buffer becomes `tprt.fill`.

    ```mlir
    func.call @kernel_0(%a, %b) : (memref<1024xf32>, memref<1024xf32>) -> ()
    ```

    becomes

    ```mlir
    gpu.launch_func @kernels::@kernel_0 blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1) args(%a : memref<1024xf32>, %b : memref<1024xf32>)
    ```

    Fails, at the op, where an index isn't linear in the loops, where a row's buffers take more than
    48 KiB of shared memory, and at loops around which there is no parallel one to be found.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
        "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::tprt::TPRTDialect",
        "::mlir::vector::VectorDialect"];
}

def PredictTraffic : Pass<"tp-predict-traffic", "::mlir::ModuleOp"> {
  let summary = "Count the bytes that kernels move through a device's memory";
  let description = [{
    For each kernel that the module launches, after `tp-map-kernels-to-gpu`, executes its index
    arithmetic for all threads, and counts what its loads and stores touch, in sectors of 32 bytes.
    Nothing is measured: the device is a model, a cache of 25 MiB for what is read again, and 132
    processors of 2048 threads.

    - `LeastBytes`: what the kernel reads that it hasn't written, once, and what it writes, once.
    - `MovedBytes`: what comes from memory or goes there. A sector comes again if more than the
      cache holds was touched since by all blocks that run at one time.
    - `RequestedBytes`: the sectors of every access of a warp, also those that a cache has.
    - `SharedPasses`, `LeastSharedPasses`: how often shared memory's banks are accessed, and how
      often they would be without conflicts.

    An index that comes from memory is taken for its own position there: lookups without repeats.
    What depends on floats is taken as true. Each kernel is a remark of the category
    `tp-predict-traffic`, with its `Blocks`, `Threads` and `Launches`. One without known sizes of
    its grid and its blocks, of one dimension, is an error.

    ```
    $ tp-opt ranks.mlir --tp-lower-to-kernels --tp-predict-traffic --remarks-filter=tp-predict-traffic --remark-format=emitRemark -o /dev/null
    remark: [Analysis] kernel_0 | Category:tp-predict-traffic | Blocks=96, Launches=2, LeastBytes=1179648, …
    ```
  }];
  let options = [
    Option<"maxBlocks", "max-blocks", "int64_t", "65536",
           "Blocks of a kernel that are counted, in groups all over the grid; the others are "
           "taken to be like these">];
}

def ConvertKernelsToNVVM : Pass<"convert-kernels-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower the kernels of a GPU module to NVVM";
  let description = [{
    Kernels take bare pointers, indices have 32 bits where no buffer has more elements than that,
    vectors are loaded and stored at their own alignment, and functions of the math dialect become
    those of CUDA's device library.

    ```mlir
    gpu.func @kernel_0(%a: memref<1024xf32>) kernel { %t = gpu.thread_id x … }
    ```

    becomes

    ```mlir
    llvm.func @kernel_0(%a: !llvm.ptr) attributes {nvvm.kernel} { %t = nvvm.read.ptx.sreg.tid.x : i32 … }
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::cf::ControlFlowDialect",
        "::mlir::memref::MemRefDialect"];
}

def EmulateKernels : Pass<"tp-emulate-kernels", "::mlir::ModuleOp"> {
  let summary = "Turn kernels into functions that a CPU runs as a thread of a GPU";
  let description = [{
    What checks kernels where there is no GPU: the bodies of a GPU module as functions of the host.
    Each takes a description of the thread that it is and the kernel's parameters, and calls the
    emulator where threads meet.

    ```c
    struct tp_emulated_thread { uint32_t thread, block, block_size, grid_size; void *shared; };
    void kernel_0(const struct tp_emulated_thread *self, void *const *arguments);
    extern const int32_t kernel_0_num_arguments, kernel_0_shared_bytes; // of the block, aligned to 64
    // The emulator's:
    void tp_emulated_barrier(const struct tp_emulated_thread *self);
    uint32_t tp_emulated_shuffle_xor(const struct tp_emulated_thread *self, uint32_t value, uint32_t mask);
    ```

    ```mlir
    gpu.func @kernel_0(%a: memref<1024xf32>) kernel { %t = gpu.thread_id x … }
    ```

    becomes

    ```mlir
    llvm.func @kernel_0(%self: !llvm.ptr, %arguments: !llvm.ptr) { … }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::func::FuncDialect"];
}

#endif // TP_CONVERSION_PASSES_TD
