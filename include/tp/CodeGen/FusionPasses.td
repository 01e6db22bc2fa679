//===- FusionPasses.td - Fused ops and GEMM calls ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_FUSIONPASSES_TD
#define TP_CODEGEN_FUSIONPASSES_TD

include "mlir/Pass/PassBase.td"

def FuseElementwise : Pass<"tp-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Fuse elementwise ops unless that repeats costly work";
  let description = [{
    Fuses the producer of an operand into the op that reads it if each element is still computed
    once, or if recomputing it costs almost nothing (copies, casts, comparisons of indices). Only
    copies are fused into contractions, because contractions become GEMM calls. If the only use of a
    contraction adds a bias along the last dimension, the bias becomes the contraction's initial
    value. In f16 and bf16 so does a bias along another dimension, that of a convolution's channels,
    so that the sum is rounded once; GEMM's epilogue adds one along the last dimension. Other sums
    that are rounded to f16 or bf16, those of a depthwise convolution, are rounded after their bias
    is added.

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

def SinkConcatenations : Pass<"tp-sink-concatenations", "::mlir::func::FuncOp"> {
  let summary = "Move elementwise ops before the concatenations that they read";
  let description = [{
    Rotary position embeddings concatenate halves of a vector in a new order, and multiply and add
    the result. The concatenation would go through memory, because fusion handles only ops in
    which the index of each result element determines the elements that are read by one affine map. If an elementwise op is the only reader of a
    concatenation of at most four pieces, this pass splits the op: each piece gets an op on the
    piece and on slices of the other operands, and the results are concatenated. A second
    `tp-fuse-elementwise` then fuses these ops with what computes the pieces.

        If only elementwise ops read a slice of a transpose, copy or broadcast, the pass slices the
    operand instead.

    ```mlir
    %0 = tensor.insert_slice %a into %empty[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x4xf32>
    %1 = tensor.insert_slice %b into %0[0, 2] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x4xf32>
    %2 = linalg.generic … ins(%1, %sin) outs(%init) { mulf }
    ```

    becomes

    ```mlir
    %sin0 = tensor.extract_slice %sin[0, 0] [4, 2] [1, 1]
    %sin1 = tensor.extract_slice %sin[0, 2] [4, 2] [1, 1]
    %0 = linalg.generic … ins(%a, %sin0) { mulf }
    %1 = tensor.insert_slice %0 into %init[0, 0] [4, 2] [1, 1]
    %2 = linalg.generic … ins(%b, %sin1) { mulf }
    %3 = tensor.insert_slice %2 into %1[0, 2] [4, 2] [1, 1]
    ```
  }];
  let statistics = [Statistic<"numSunk", "sunk", "Ops that were split at a concatenation">];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def JoinInsertions : Pass<"tp-join-insertions", "::mlir::func::FuncOp"> {
  let summary = "Turn long chains of insertions into concatenations";
  let description = [{
    A loop over time steps, once unrolled, stacks or writes its results one by one: a chain of
    `tensor.insert_slice`. The analysis of bufferization needs time that grows faster than the square
    of a chain's length. A chain of more than 16 insertions along one dimension becomes one
    `tensor.concat`, which copies each piece once. Reads of a chain read the piece, or the tensor
    before the chain, that holds their elements.

    ```mlir
    %0 = tensor.insert_slice %a into %init[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<20x4xf32>
    %1 = tensor.insert_slice %b into %0[1, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<20x4xf32>
    …
    ```

    becomes

    ```mlir
    %19 = tensor.concat dim(0) %a, %b, …
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
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
    one's buffer. For the same reason, a computed tensor that an `insert_slice` or a loop writes is
    copied if it has other uses.

    An output that is a concatenation begins with the output's buffer, and one that is a reshape is
    written in the shape that is computed. `eliminate-empty-tensors` looks through neither.

    ```mlir
    %e = tensor.empty() : tensor<4x4xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    %0 = linalg.matmul ins(%a, %b : …) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = linalg.matmul ins(%0, %b : …) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
    ```

    becomes

    ```mlir
    %e = tensor.empty() : tensor<4x4xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    %0 = linalg.matmul ins(%a, %b : …) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
    %e2 = tensor.empty() : tensor<4x4xf32>
    %init2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = linalg.matmul ins(%0, %b : …) outs(%init2 : tensor<4x4xf32>) -> tensor<4x4xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
}

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
    (by erf or by tanh) and silu; they are recognized by the formulas that the nn ops become.
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

    A training step, that is, a program that updates parameters and has an output `loss`, has no
    epilogue whose result could differ in any bit from that of the separate ops, because the
    backward pass may compute those. This excludes gelu and silu, and in f16 and bf16 also an addend
    or a factor.

    Integer contractions, and those whose strides GEMM can't express, stay loops. In f16 and bf16,
    these loops accumulate in a buffer of f32 and round once, as GEMM does.
  }];
  let options = [Option<"cudaEpilogues", "cuda-epilogues", "bool", "false",
                        "Form only epilogues that CUDA devices have: all for products that own "
                        "kernels compute, those of up to 8 contiguous rows that aren't batched or "
                        "of f64; for others those of cuBLASLt, which are sums, relu, and gelu by "
                        "tanh, and in f64 only one sum">];
  let statistics = [
    Statistic<"numGemms", "gemms", "Contractions turned into GEMM calls">,
    Statistic<"numLoops", "loops", "Contractions left as loops">,
    Statistic<"numEpilogues", "epilogues", "Elementwise ops turned into epilogues of GEMM calls">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tprt::TPRTDialect"];
}

def FuseSiblings : Pass<"tp-fuse-siblings", "::mlir::func::FuncOp"> {
  let summary = "Fuse elementwise ops that read the same buffers";
  let description = [{
    Joins an elementwise op with the next op if both have the same loops, read some of the same
    elements and write different ones: to different buffers, or to disjoint subviews of one. What
    both read then moves through memory once. Ops whose only common operands are broadcast stay
    apart, and so do ops that would have more than 12 operands together.

    ```mlir
    linalg.generic … ins(%low, %high, %cos0, %sin0) outs(%y[:, 0 to 64]) { … }
    linalg.generic … ins(%high, %low, %cos1, %sin1) outs(%y[:, 64 to 128]) { … }
    ```

    becomes

    ```mlir
    linalg.generic … ins(%low, %high, %cos0, %sin0, %cos1, %sin1) outs(%y[:, 0 to 64], %y[:, 64 to 128]) { … }
    ```
  }];
  let statistics = [Statistic<"numFused", "fused", "Ops that were joined with an earlier one">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def FuseRows : Pass<"tp-fuse-rows", "::mlir::func::FuncOp"> {
  let summary = "Run chains of ops row by row";
  let description = [{
    Softmax, normalizations and losses are chains of elementwise ops and reductions over rows. If
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
    by itself, the nest must have at least `min-rows` iterations. This requirement
    is waived if every op has at most `small-op` iterations. Ops share a nest of a single row only
    if each has at most `max-single-row` iterations.
  }];
  let options = [
    Option<"maxRowBytes", "max-row-bytes", "int64_t", "std::numeric_limits<int64_t>::max()",
           "Limit, in bytes, for the rows that the buffers of one nest shrink to; a buffer "
           "that would exceed it keeps its size">,
    Option<"minRows", "min-rows", "int64_t", "0",
           "Iterations that a nest must have if sharing it leaves an op fewer iterations than "
           "it has by itself">,
    Option<"smallOp", "small-op", "int64_t", "0",
           "Number of iterations up to which ops share a nest with fewer than 'min-rows' rows "
           "(0: never)">,
    Option<"maxSingleRow", "max-single-row", "int64_t", "std::numeric_limits<int64_t>::max()",
           "Maximum number of iterations of an op in a nest of a single row">];
  let statistics = [Statistic<"numFused", "fused", "Ops that share a nest of loops">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

#endif // TP_CODEGEN_FUSIONPASSES_TD
