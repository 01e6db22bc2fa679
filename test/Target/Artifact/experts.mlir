// Rows that no expert has keep what the ops after a product give them: here a bias of each row. With and without
// expert_parallel, the results are equal.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && split-file %s %t && cd %t
// RUN: %python make.py
// RUN: tp-opt model.mlir --tp-parallelize=plan=whole.yaml | tp-compile - -o whole.tpx
// RUN: tp-run whole.tpx --weights w.safetensors --input x=x.npy --input ids=ids.npy --output y=y.npy
// RUN: tp-opt model.mlir --tp-parallelize=plan=plan.yaml -o ranks.mlir
// RUN: tp-opt ranks.mlir --tp-verify-spmd="reference=model.mlir max-operations=0" -o /dev/null 2>&1 | FileCheck %s
// RUN: tp-compile ranks.mlir -o ranks.tpx
// RUN: tp-run ranks.tpx --weights w.safetensors --input x=x.npy --input ids=ids.npy --expect y=y.npy --atol 1e-6

// CHECK: 'main' is proven for 2 ranks

//--- make.py
import numpy as np
from safetensors.numpy import save_file
rng = np.random.default_rng(0)
save_file({"w": rng.normal(size=(4, 8, 8)).astype("f4"), "b": rng.normal(size=(8, 8)).astype("f4")}, "w.safetensors")
np.save("x", rng.normal(size=(4, 8)).astype("f4"))
np.save("ids", rng.integers(0, 4, size=(8,)))

//--- whole.yaml
mesh: {ep: 2}
plan: {w: Replicate}

//--- plan.yaml
mesh: {ep: 2}
expert_parallel: {ep: all_to_all}

//--- model.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}, %ids: tensor<8xi64> {tp.name = "ids"}) -> (tensor<4x8xf32> {tp.name = "y"}) {
  %sorted, %order = nn.sort %ids dim 0 count 8 : tensor<8xi64> -> (tensor<8xi64>, tensor<8xi64>)
  %k = nn.constant dense<2> : tensor<i64>
  %token = nn.floor_div %order, %k : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
  %rows = nn.index_select %x, %token dim 0 : (tensor<4x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  // The rows 6 and 7 are of no expert.
  %ends = nn.constant dense<[1, 1, 5, 6]> : tensor<4xi32>
  %zero = nn.constant dense<0> : tensor<1xi32>
  %bounds = nn.concat %zero, %ends dim 0 : (tensor<1xi32>, tensor<4xi32>) -> tensor<5xi32>
  %w = nn.parameter "w" : tensor<4x8x8xf32>
  %y = nn.grouped_matmul %rows, %w bounds %bounds : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<5xi32>) -> tensor<8x8xf32>
  %b = nn.parameter "b" : tensor<8x8xf32>
  %biased = nn.add %y, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %none = nn.constant dense<0> : tensor<8xi64>
  %places = nn.iota dim 0 start 0.000000e+00 step 1.000000e+00 : tensor<8xi64>
  %inverse = nn.scatter copy %none, %order, %places dim 0 : (tensor<8xi64>, tensor<8xi64>, tensor<8xi64>)
  %back = nn.index_select %biased, %inverse dim 0 : (tensor<8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %by = nn.reshape %back : tensor<8x8xf32> -> tensor<4x2x8xf32>
  %sum = nn.reduce sum %by dims [1] : tensor<4x2x8xf32> -> tensor<4x8xf32>
  return %sum : tensor<4x8xf32>
}
