//===- Passes.td - per-rank IR to code ---------------------*- tablegen -*-===//

#ifndef TP_CONVERSION_PASSES_TD
#define TP_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertNNToLinalg : Pass<"convert-nn-to-linalg"> {
  let summary = "Express nn ops by linalg ops on tensors";
  let description = [{
    Every nn op but `nn.parameter` becomes `linalg.generic` ops with scalar bodies of arith and math ops, and
    reshapes, slices and insertions of the tensor dialect. Everything else (functions, parameters,
    collectives) stays as it is.

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

    - f16 and bf16 compute, and accumulate, in f32; each nn op rounds its result once.
    - Broadcast operands are read through their indexing maps, and splat constants are scalars in the bodies.
    - A contraction reads its operands in the layout they have: no operand is transposed in memory.
    - Float reductions may be reassociated (`fastmath<reassoc>`), which lets them be vectorised.
    - An integer division by zero gives 0, as does the remainder. PyTorch raises an error.
    - An index that is out of range ends the program: each op that looks up by index checks all of its indices
      first with `tprt.check_index`, which carries the FQN from `tp.fqn`, and reads row 0 in place of those.

    Fails where an `nn.module` is left (`tp-partition` inlines them).
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::tprt::TPRTDialect"];
}

def FoldTransposeIntoContraction : Pass<"fold-transpose-into-contraction"> {
  let summary = "Read and write contractions in the layout of their neighbours";
  let description = [{
    A transpose that feeds a contraction, or that alone uses its result, only changes the indexing map of the
    contraction: GEMM takes strides, so that moving the data is a waste. Transposes move across the reshapes between
    them and the contraction.

    ```mlir
    %t = linalg.generic {… (b, h, t, d) -> (b, t, h, d) …} ins(%q : tensor<2x64x12x32xf32>) …
    %s = linalg.generic {indexing_maps = [(b, h, m, n, k) -> (b, h, m, k), …]} ins(%t, …) …
    ```

    becomes

    ```mlir
    %s = linalg.generic {indexing_maps = [(b, h, m, n, k) -> (b, m, h, k), …]} ins(%q, …) …
    ```

    A transpose is a `linalg.transpose`, or a `linalg.generic` that yields its one input with permuted maps.
    A result is written permuted where its one user, a transpose or another elementwise op, reads it permuted.
  }];
  let dependentDialects = [
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

#endif // TP_CONVERSION_PASSES_TD
