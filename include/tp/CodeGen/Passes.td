//===- Passes.td - per-rank IR to code ---------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CONVERSION_PASSES_TD
#define TP_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttentionToTPRT : Pass<"convert-attention-to-tprt"> {
  let summary = "Leave attention to the runtime";
  let description = [{
    `nn.attention` becomes `tprt.attention`, which never holds the scores of all rows in memory. The
    heads of grouped-query attention are split into two batch loops, and key and value are indexed
    by the first one only. A mask is read through its broadcast.

    ```mlir
    %r = nn.attention causal %q, %k, %v scale 0.125 : (…) -> tensor<2x12x64x32xf32>
    ```

    becomes

    ```mlir
    %init = tensor.empty() : tensor<2x12x64x32xf32>
    %r = tprt.attention causal %q, %k, %v into %init scale 0.125 maps [(b, h, t, s, d, e) -> (b, h, t, d), …] : …
    ```

    `nn.attention_gradient` becomes `tprt.attention_gradient` in the same way. Attention with more
    than eight batch dimensions is left to `--convert-nn-to-linalg`, which expands it into linalg
    ops.
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect", "::mlir::tprt::TPRTDialect"];
}

def ConvertNNToLinalg : Pass<"convert-nn-to-linalg"> {
  let summary = "Express nn ops by linalg ops on tensors";
  let description = [{
    Every nn op except `nn.parameter` becomes `linalg.generic` ops, whose scalar bodies consist of
    arith and math ops, and reshapes, slices and insertions of the tensor dialect. Everything else
    (functions, parameters, collectives) stays as it is.

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

    - f16 and bf16 ops compute and accumulate in f32; each nn op rounds its result once. A
      contraction of f16 or bf16 keeps its element type, for `convert-linalg-to-gemm`; the GEMM or
      loop that it becomes accumulates in f32.
    - Broadcast operands are read through their indexing maps, and splat constants are scalars in
      the bodies.
    - A contraction reads its operands in their layout; no operand is transposed in memory.
    - Float reductions may be reassociated (`fastmath<reassoc>`), which lets them be vectorised.
    - An integer division by zero gives 0, as does the remainder. PyTorch raises an error.
    - An index that is out of range ends the program. Each op that looks up by index first checks
      all of its indices with `tprt.check_index`, which carries the FQN from `tp.fqn`. The lookup
      itself reads row 0 for an index that is out of range.

    Fails if an `nn.module` is left (`tp-partition` inlines them).
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
    A transpose that feeds a contraction or `tprt.attention`, or that is the only user of its
    result, is folded into the indexing map of the contraction. GEMM and attention take strides, so
    there is no need to move the data. Transposes move across the reshapes between them and the
    contraction.

    ```mlir
    %t = linalg.generic {… (b, h, t, d) -> (b, t, h, d) …} ins(%q : tensor<2x64x12x32xf32>) …
    %s = linalg.generic {indexing_maps = [(b, h, m, n, k) -> (b, h, m, k), …]} ins(%t, …) …
    ```

    becomes

    ```mlir
    %s = linalg.generic {indexing_maps = [(b, h, m, n, k) -> (b, m, h, k), …]} ins(%q, …) …
    ```

    A transpose is a `linalg.transpose`, or a `linalg.generic` that yields its one input with
    permuted maps. A result is written permuted if its only user, a transpose or another elementwise
    op, reads it permuted.
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
    A program becomes straight-line code, in which buffers' lifetimes are intervals, and all ranks
    run the same collectives in the same order. An `scf.for` with constant bounds is unrolled. Both
    branches of an `scf.if` run, and the results are selected, so ranks that take different branches
    can't wait for each other's collectives.

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

    Fails at a loop whose number of iterations isn't known; if all loops together have more than
    4096 iterations; at a branch with an op that mustn't run if the condition is false; at any other
    op with control-flow regions; and at a call, which only the inliner can remove. Scalar loops and
    branches in the bodies of linalg ops stay.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def FormEntry : Pass<"tp-form-entry", "::mlir::ModuleOp"> {
  let summary = "Give programs the signature of an artifact's entry";
  let description = [{
    A per-rank program takes tensors, names its parameters and returns tensors. In an artifact it
    gets its rank and one buffer for every input, parameter and output. This pass turns the first
    form into the second. It describes the buffers in the module's attribute `tprt.manifest`
    (docs/Artifact.md), using `tp.name`, `tp.sharding` and `tp.global_type`.

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

    Parameters with the same FQN become one argument. The programs are the functions with
    `tp.ranks`, which lists the ranks that run them. Without `tp.ranks`, the program is `@main` or
    the only function, and all ranks run it. Several programs have the same interface: each gets all
    parameters that any of them reads.

    Fails if a rank has no program or more than one, if programs differ in names, types or
    shardings, if a program still has global shapes (a sharding without `tp.global_type`, a
    `tp.redistribute`), or if its local types aren't those of its ranks' blocks.
  }];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect", "::mlir::tensor::TensorDialect"];
}

def LocateOrigins : Pass<"tp-locate-origins", "::mlir::ModuleOp"> {
  let summary = "Keep the ops' origins in their locations";
  let description = [{
    Adds each op's `tp.fqn` and name to its location: `loc(fused<{fqn = "net.1", op = "relu",
    position = 4}>[…])`. Lowering and fusion keep locations, so `tp-mark-ops` can tell at the end
    which ops the code comes from. Nothing else changes.
  }];
}

def ConvertTPToTPRT : Pass<"convert-tp-to-tprt", "::mlir::ModuleOp"> {
  let summary = "Turn collectives into runtime calls and rank queries into look-ups";
  let description = [{
    Each collective becomes `tprt.collective` with the next id, and an entry in the `collectives` of
    `tprt.manifest`. An all-reduce runs in place if nothing else uses its operand. `tp.shard_offset`
    becomes a look-up by rank in a constant, and `tp.local_slice` becomes a slice at such an offset.

    Programs of different ranks must run the same collectives in the same order, and the blocks of
    each group must fit together, because one entry describes a collective for all ranks. Otherwise
    the ranks would wait for each other forever; the error names the first difference.

    ```mlir
    %1 = tp.all_reduce sum %0 over @mesh {tp} : tensor<8x16xf32>
    ```

    becomes

    ```mlir
    %1 = tprt.collective 0 into %0 : tensor<8x16xf32> -> tensor<8x16xf32>
    ```

    A collective in a `tp.start` becomes `tprt.collective_start` and `tprt.collective_wait`, and is
    `started` in the manifest. Other ranks' programs may still run the same collective as a single
    `tprt.collective`.

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
    `ui8` becomes `i8` in the types of all values and functions. `convert-nn-to-linalg` has already
    rewritten the ops that depend on the sign as ops on signless integers, between casts; this pass
    removes the casts. All other ops only move elements.

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
    Reports, at its location, each op of the programs that isn't a runtime, linalg, tensor, arith or
    math op, or that works on tensors and can't be bufferized. The following passes would only
    report the first such op. The IR doesn't change.
  }];
}

//===----------------------------------------------------------------------===//
// Tensors: fusion
//===----------------------------------------------------------------------===//

def FuseElementwise : Pass<"tp-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Fuse elementwise ops where that repeats no work worth naming";
  let description = [{
    Fuses the producer of an operand into the op that reads it if each element is still computed
    once, or if recomputing it costs almost nothing (copies, casts, comparisons of indices). Only
    copies are fused into contractions, because contractions become GEMM calls. If the only use of a
    contraction adds a bias, the bias becomes the contraction's initial value.

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
    A reduction over several dimensions to a few elements, such as the norm of a gradient, would run
    in equally few blocks of a device. If the result has fewer than 128 elements, and each reduces
    16384 elements or more, the reduction is split: the first op keeps the outermost reduced
    dimension of size 32 or more, and a second op reduces that dimension.

    ```mlir
    %1 = linalg.generic {… "reduction", "reduction"} ins(%x : tensor<4096x512xf32>) outs(%0 : tensor<f32>) { addf }
    ```

    becomes

    ```mlir
    %p = linalg.generic {… "parallel", "reduction"} ins(%x : tensor<4096x512xf32>) outs(%zeros : tensor<4096xf32>) { addf }
    %1 = linalg.generic {… "reduction"} ins(%p : tensor<4096xf32>) outs(%0 : tensor<f32>) { addf }
    ```

    Only reductions that may be reassociated are split: float sums that allow it, integer
    reductions, maxima.
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
    operand (such as a bias for each row), and equal `tensor.insert_slice` ops (with which
    concatenations begin). Bufferization then has to copy the value for every op that overwrites it.
    This pass clones these ops, one per use, right before the op that uses the clone. Two
    concatenations that begin with the same operand must not share a `tensor.insert_slice`: if both
    are outputs, `eliminate-empty-tensors` would build the first part of the second one in the first
    one's buffer.
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
    A `linalg.generic` that sums products of two operands becomes a GEMM if its loops, by the
    strides of the buffers, are rows, columns, a summed dimension and batches. Loops that walk
    memory like a single loop are merged first. If C is written column by column, C^T = B^T·A^T is
    computed instead. Batch dimensions beyond two become loops around the call. An initial value of
    zero is dropped, a bias becomes the call's bias, and the product is added to any other initial
    value.

    An elementwise op that is the only reader of the product's buffer becomes the epilogue of the
    call if it computes `activation(product (+ addend)) (* factor)`. The activations are relu, gelu
    (by erf or by tanh) and silu; they are recognised by the formulas that the nn ops become.
    `addend` is a residual, `factor` the operand of a gate. The call then stands at the op's
    position and writes the op's result. This requires that the operands of the product don't change
    in between, that no collective stands in between, and that the product's rows, columns and
    batches are strides in all of the op's buffers.

    ```mlir
    linalg.generic {indexing_maps = [(b, m, n, k) -> (b, m, k), (b, m, n, k) -> (n, k), (b, m, n, k) -> (b, m, n)], …}
      ins(%x, %w : memref<8x128x64xf32>, memref<384x64xf32>) outs(%y : memref<8x128x384xf32>) { mulf, addf }
    ```

    becomes

    ```mlir
    tprt.gemm %x, %w into %y accumulate sizes [1024, 384, 64] batch [1, 1]
      a [64, 1, 0, 0] b [1, 64, 0, 0] c [384, 0, 0] : …
    ```

    If `linalg.generic ins(%y, %up) outs(%z) { silu(y) * up }` follows, and nothing else reads `%y`,
    both become

    ```mlir
    tprt.gemm %x, %w into %z activation silu factor %up [384, 0, 0] sizes [1024, 384, 64] …
    ```

    A program that updates parameters has no epilogue whose result could differ in any bit from that
    of the separate ops, because the backward pass may compute those. This excludes gelu and silu,
    and in f16 and bf16 also an addend or a factor.

    Integer contractions, and those whose strides GEMM can't express, stay loops. In f16 and bf16,
    these loops accumulate in a buffer of f32 and round once, as GEMM does.
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
    Softmax, normalisations and losses are chains of elementwise ops and reductions over rows. If
    the ops run one after the other, each row moves through memory many times. This pass puts
    consecutive ops into one nest of loops over the leading parallel dimensions that they have in
    common. Two ops may share a nest if, in every buffer that one of them writes and the other
    touches, both access only the row of the current iteration. A sum over rows doesn't share a loop
    over columns: it walks memory in order, and adds one row at a time.

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

    A buffer that only these ops use shrinks to one row, as long as the rows of the nest take no
    more than `max-row-bytes` together. If sharing a nest leaves an op fewer iterations than it has
    by itself, the nest must have at least `min-rows` iterations.
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
    kernel, which is compiled once. Kernels take whole buffers, which don't overlap, and take views
    of them inside. A buffer of at most 64 KiB that only the kernel uses is allocated on the
    kernel's stack.

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
    Every `memref.alloc` of a program lives from its first to its last use. Buffers that are live at
    the same time get disjoint ranges of one arena, whose sizes are multiples of 64 bytes. The pass
    places them one by one, each into the tightest gap that fits it. It tries several orders
    (largest first, first used first, largest product of size and lifetime first) and keeps the one
    with the smallest arena. A program gets the arena as its last argument, and `tprt.manifest` gets
    the size of the largest arena as `arena_bytes`. A remark (`--remarks-filter=tp-plan-arena`)
    compares this size with the most bytes that are live at one time, which is a lower bound.

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
    the arena's size on the module as `tp.arena_bytes`, for `tp-report`. This is exactly the size
    that `tp-compile` writes into the artifact and that each rank allocates, because the same passes
    compute it. The program isn't changed.

    ```mlir
    module attributes {tp.arena_bytes = 4096 : i64} { … }
    ```

    Fails if the program can't be lowered.
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
    A kernel that takes long enough, estimated from the floating-point operations and bytes of the
    mark before its call, becomes a function of a range of its iterations. Its calls become
    `tprt.parallel`, and the runtime decides how many threads share the range.

    The iterations are those of a nest that `tp-fuse-rows` made, or of the outer parallel loops of a
    linalg op. If these are too few, as in a sum over rows, the contiguous loop is cut into blocks
    as well. An iteration runs the same code in every range, and nothing is summed across
    iterations, so results don't depend on the number of threads.

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
    that the nest writes. Buffers on the stack that an iteration writes before it reads them are
    allowed, because every part has its own. Other kernels stay calls. A kernel also stays a call if
    it has any use other than calls at the top level of entry programs, each after a mark for which
    the manifest has flops and bytes.
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
    The innermost loop is the one along which most operands are contiguous. The loops around it keep
    their order, with reductions inside parallel loops. A reduction of 32 elements or more in the
    innermost loop, if it may be reassociated, becomes 16 partial reductions, joined in pairs at the
    end. LLVM vectorises them, and their order doesn't depend on what else the loop computes. In
    f32, exp, log, tanh and erf become polynomials, so LLVM can vectorise the loops around them.
    Other functions stay calls of the C library.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def MarkOps : Pass<"tp-mark-ops", "::mlir::ModuleOp"> {
  let summary = "Say of each part of a program which of the model's ops it is";
  let description = [{
    Puts a `tprt.mark` before each kernel and library call. The manifest's `ops` describe the calls:
    the module and the ops that they come from, their floating-point operations, and the bytes that
    they read and write. Equal entries are merged. Traces and profiles name their parts after these
    entries.

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
    becomes a call of its C function (docs/Artifact.md). If the call's status isn't 0, the program
    returns it immediately.

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
    Lowers the remaining ops (func, cf, arith, math, memref) to the LLVM dialect; buffers become
    bare pointers. Adds the exported entry `tpx_main`, which reads the pointers from its tables and
    calls the rank's program. `convert-tprt-to-calls` has declared the functions that
    `tprt_parallel` calls; here they get bodies, which read a kernel's arguments from their table.
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
    `gpu.launch_func` with as many blocks and threads as its iterations need. Ids, blocks and grids
    only use dimension x.

    - A thread of an elementwise op computes as many elements as 128 bits hold, at most 8, if the
      buffers are contiguous and aligned for that. Loops that walk all buffers like a single loop
      are merged. If operands are contiguous along a different loop than the results (transposes), a
      block computes a tile of up to 64 × 64 elements, and loads those operands through shared
      memory.
    - A nest of loops over rows, and a reduction, gets a team of 1 to 1024 threads per row. Within a
      row, the threads divide each op's elements among themselves. A reduction ends with shuffles,
      and beyond a warp in shared memory. One-element results are kept in the registers of all
      threads, row buffers in shared memory. There is a barrier only where one thread reads what
      another has written.
    - If memory is contiguous across iterations rather than within one (sums over the rows of a
      matrix), consecutive threads take consecutive iterations.
    - Loops that aren't linalg ops (scattered sums) keep their order. The longest loop of such a
      nest whose iterations write disjoint elements is spread over threads.

    Sums are computed in the same order on every run. `tprt.check_index` becomes a kernel that
    reports to the rank's error record; the error's text is entry `site` of the module's attribute
    `tprt.sites`. A store of a number into a buffer by the program becomes `tprt.fill`.

    ```mlir
    func.call @kernel_0(%a, %b) : (memref<1024xf32>, memref<1024xf32>) -> ()
    ```

    becomes

    ```mlir
    gpu.launch_func @kernels::@kernel_0 blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1) args(%a : memref<1024xf32>, %b : memref<1024xf32>)
    ```

    Fails at an op with an index that isn't linear in the loops, at a nest whose row buffers take
    more than 48 KiB of shared memory, and at loops none of which is known to be parallel.
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
    Runs after `tp-map-kernels-to-gpu`. For each kernel that the module launches, executes the index
    arithmetic of all threads, and counts the 32-byte sectors that its loads and stores touch.
    Nothing is measured. The device is a model with a cache of 25 MiB for data that is read again,
    and 132 processors of 2048 threads.

    - `LeastBytes`: the data that the kernel reads before it writes it, counted once, and the data
      that it writes, counted once.
    - `MovedBytes`: the sectors that come from memory or go to it. A sector is loaded again if the
      blocks that run at the same time have since touched more than the cache holds.
    - `RequestedBytes`: the sectors of every access of a warp, including those that are in the
      cache.
    - `SharedPasses`, `LeastSharedPasses`: how often shared memory's banks are accessed, and how
      often they would be without conflicts.

    An index that is loaded from memory is assumed to equal its own position there, as in lookups
    without repeats. A condition that depends on floats is assumed to be true. Each kernel gets a
    remark of the category `tp-predict-traffic`, with its `Blocks`, `Threads` and `Launches`. A
    kernel without a known one-dimensional grid and block size is an error.

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
    Kernels take bare pointers. Indices have 32 bits if these suffice for every buffer. Vectors are
    loaded and stored at their own alignment. Functions of the math dialect become functions of
    CUDA's device library.

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
    Turns the kernels of a GPU module into host functions, to check kernels without a GPU. Each
    function runs as one thread: it takes a description of that thread and the kernel's parameters,
    and calls the emulator at barriers and shuffles.

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
