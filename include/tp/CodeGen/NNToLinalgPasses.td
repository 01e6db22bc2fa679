//===- NNToLinalgPasses.td - Passes from nn ops to linalg --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_NNTOLINALGPASSES_TD
#define TP_CODEGEN_NNTOLINALGPASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttentionToTPRT : Pass<"convert-attention-to-tprt"> {
  let summary = "Turn attention into ops of the runtime";
  let description = [{
    `nn.attention` becomes `tprt.attention`, which never holds the scores of all rows in memory. The
    heads of grouped-query attention are split into two batch loops, and key and value are indexed
    by the first one only. So are a key and a value that repeat each head for its group. A mask is
    read through its broadcast.

    ```mlir
    %r = nn.attention causal %q, %k, %v scale 0.125 : (…) -> tensor<2x12x64x32xf32>
    ```

    becomes

    ```mlir
    %init = tensor.empty() : tensor<2x12x64x32xf32>
    %r = tprt.attention causal %q, %k, %v into %init scale 0.125 maps [(b, h, t, s, d, e) -> (b, h, t, d), …] : …
    ```

    `nn.attention_gradient`, `nn.attention_block` and `nn.attention_block_gradient` become the
    runtime's ops of the same names in the same way. Attention with more than eight batch
    dimensions, and blocks in programs for devices, are left to `--convert-nn-to-linalg`, which
    expands them into linalg ops.
  }];
  let options = [
    Option<"onDevice", "on-device", "bool", "false",
           "Leave nn.attention_block and its gradient: the runtime computes them only on the host">];
  let dependentDialects = ["::mlir::tensor::TensorDialect", "::mlir::tprt::TPRTDialect"];
}

def ConvertConvolutionToTPRT : Pass<"convert-convolution-to-tprt"> {
  let summary = "Turn convolutions and what follows them into ops of the runtime";
  let description = [{
    `nn.convolution` with up to three spatial dimensions becomes `tprt.convolution`, which reads its
    windows where they are. The ops after it become its scale, its bias, its addend and its
    activation, if nothing else reads the values in between: factors of channels, what is added to
    each channel, one tensor that is added, and an activation. So a batch normalization with known
    statistics costs a few operations per channel. Factors become a scale only in f32 and f64, and
    not in training steps, where a value needs the same bits whenever it is computed. Programs for
    devices, and depthwise convolutions, whose products would be of vectors, are left to
    `--convert-nn-to-linalg`.

    ```mlir
    %1 = nn.convolution %x, %w stride [1] padding [1] dilation [1]
       : (tensor<2x8x16xf32>, tensor<4x8x3xf32>) -> tensor<2x4x16xf32>
    %2 = nn.add %1, %bias : (tensor<2x4x16xf32>, tensor<4x1xf32>) -> tensor<2x4x16xf32>
    %3 = nn.relu %2 : tensor<2x4x16xf32>
    ```

    becomes

    ```mlir
    %v = nn.reshape %bias : tensor<4x1xf32> -> tensor<4xf32>
    %e = tensor.empty() : tensor<2x4x16xf32>
    %3 = tprt.convolution %x, %w bias %v activation relu into %e
        groups 1 stride [1] padding [1] dilation [1]
      : tensor<2x8x16xf32>, tensor<4x8x3xf32> bias tensor<4xf32>
        into tensor<2x4x16xf32> -> tensor<2x4x16xf32>
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect", "::mlir::tprt::TPRTDialect"];
}

def ConvertRoutingToTPRT : Pass<"convert-routing-to-tprt"> {
  let summary = "Turn sorts and products of groups into ops of the runtime";
  let description = [{
    `nn.sort` becomes `tprt.sort`, which sorts; `nn.grouped_matmul` and `nn.grouped_outer_sum` become
    `tprt.grouped_gemm`, which multiplies each group as one matrix. Both are for programs for the
    host. For devices, `--convert-nn-to-linalg` expands them into linalg ops.

    ```mlir
    %v, %i = nn.sort descending %0 dim 1 count 2 : tensor<4x8xf32> -> (tensor<4x2xf32>, tensor<4x2xi64>)
    ```

    becomes

    ```mlir
    %a = tensor.empty() : tensor<4x2xf32>
    %b = tensor.empty() : tensor<4x2xi64>
    %v, %i = tprt.sort descending %0 into %a, %b dim 1
      : tensor<4x8xf32> into tensor<4x2xf32>, tensor<4x2xi64> -> tensor<4x2xf32>, tensor<4x2xi64>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect", "::mlir::tprt::TPRTDialect"];
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
    - Float reductions may be reassociated (`fastmath<reassoc>`), which lets them be vectorized.
    - An integer division by zero gives 0, as does the remainder. PyTorch raises an error.
    - An index that is out of range ends the program. Each op that looks up by index first checks
      all of its indices with `tprt.check_index`, which carries the FQN from `tp.fqn`. The lookup
      itself reads row 0 for an index that is out of range.

    Fails if an `nn.module` is left (`tp-partition` inlines them).
  }];
  let options = [
    Option<"onDevice", "on-device", "bool", "false",
           "Sort the indices of scattered sums, so that each row of the result gathers what is "
           "added to it">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::tprt::TPRTDialect"];
}

def FoldTransposeIntoContraction : Pass<"fold-transpose-into-contraction"> {
  let summary = "Read and write contractions in the layout of their neighbors";
  let description = [{
    A transpose that feeds a contraction, `tprt.attention` or `tprt.grouped_gemm`, or that is the only user of its
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

#endif // TP_CODEGEN_NNTOLINALGPASSES_TD
