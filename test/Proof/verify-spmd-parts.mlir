// A reduction inside a norm may become a reduce-scatter, its statistics blocks; and before what a hook reduces at last, other ops
// may go on with blocks. Wrong groups, dimensions, counts and places aren't proven.
//
// RUN: tp-opt %s --tp-parallelize=sequence-parallel -o %t.mlir
// RUN: FileCheck %s --check-prefix=RANKS --input-file=%t.mlir
// RANKS-LABEL: func.func @norm
// RANKS: tp.reduce_scatter sum {{.*}} : tensor<4x1xf32> -> tensor<2x1xf32>
// RANKS: nn.rsqrt {{.*}} : tensor<2x1xf32>
// RANKS-LABEL: func.func @lookup
// RANKS: nn.exp

// RUN: %python %S/Inputs/mutants.py %t.mlir reference=%s \
// RUN:   "reduce_scatter sum (%\w+) dim 0" "reduce_scatter max \1 dim 0" "reduce_scatter (\w+ %\w+) dim 0 over @mesh {tp}" "reduce_scatter \1 dim 0 over @mesh {dp}" \
// RUN:   "all_gather (%\w+) dim 0 over @mesh {tp}" "all_gather \1 dim 0 over @mesh {dp}" "dense<6.0" "dense<3.0" "dense<1.000000e-01>" "dense<2.000000e-01>" \
// RUN:   "compare ge" "compare gt" "compare lt" "compare le" "shard_offset of 6" "shard_offset of 4" \
// RUN:   "start 1.000000e\+00 step 2.0" "start 1.000000e+00 step 3.0" "start 5.000000e\+00 step 2.0" "start 3.000000e+00 step 2.0" | FileCheck %s
// CHECK-NOT: proven with
// CHECK: {{[0-9]+}} mutants aren't proven

// Calls that are left are followed into.
// RUN: tp-opt %s --tp-propagate --tp-partition -o %t.calls.mlir
// RUN: FileCheck %s --check-prefix=CALLS --input-file=%t.calls.mlir
// CALLS: call @square
// RUN: %python %S/Inputs/mutants.py %t.calls.mlir reference=%s "nn.mul (%arg0), %arg0" "nn.add \1, \1" | FileCheck %s

tp.mesh @mesh(dp = 2, tp = 2)

func.func @norm(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}]>} : tensor<6xf32>
  %0 = nn.rms_norm %x weight %w over 1 eps 0.1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

func.func @lookup(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, %i: tensor<4x1xi64>)
    -> tensor<4x1xf32> {
  %0 = nn.gather %x, %i dim 1 : (tensor<4x6xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  %1 = nn.exp %0 : tensor<4x1xf32>
  return %1 : tensor<4x1xf32>
}

func.func @positions() -> (tensor<4xi64> {tp.sharding = #tp.sharding<@mesh, [{tp | 2, 2}]>}) {
  %0 = nn.iota dim 0 start 1.0 step 2.0 {tp.sharding = #tp.sharding<@mesh, [{tp | 2, 2}]>} : tensor<4xi64>
  return %0 : tensor<4xi64>
}

func.func @calls(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %0 = call @square(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = nn.exp %0 : tensor<4x6xf32>
  %2 = call @square(%1) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}

func.func private @square(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = nn.mul %x, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
