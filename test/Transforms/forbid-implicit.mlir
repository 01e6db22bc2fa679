// Each implicit redistribution that moves bytes is an error with its cost, and no file is written.
// RUN: rm -rf %t && split-file %s %t
// RUN: not tp-opt %t/program.mlir --tp-propagate=forbid-implicit -o %t/out.mlir 2>&1 | FileCheck %s --implicit-check-not=error:
// RUN: not ls %t/out.mlir

// Redistributions that a plan asks for are allowed.
// RUN: tp-opt %S/Inputs/norm_mlp.mlir --tp-parallelize="plan=%t/asked.yaml forbid-implicit" -o /dev/null
// RUN: not tp-opt %S/Inputs/norm_mlp.mlir --tp-parallelize="plan=%t/implicit.yaml forbid-implicit" -o /dev/null 2>&1 | FileCheck %s --check-prefix=PLAN --implicit-check-not=error:
// PLAN: norm_mlp.mlir:{{.*}}: error: needs operand 1 as (Replicate), and it is (Partial(sum)): 1024 bytes in 1 collective that nothing asks for

//--- asked.yaml
mesh: {tp: 2}
plan:
  up: ColwiseParallel
  down: RowwiseParallel

//--- implicit.yaml
mesh: {tp: 2}
plan:
  up: ColwiseParallel

//--- program.mlir
tp.mesh @mesh(tp = 2)

// Two uses share what they need; what slices alone gives costs nothing, and a constraint asks.
// CHECK: error: needs operand 0 as (Replicate), and it is (Shard(1)): 128 bytes in 1 collective that nothing asks for; a layout in the plan or a tp.constraint must
// CHECK-NEXT: nn.argmax %{{.*}} dim 1
func.func @shared(%y: tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<4xi64>, tensor<4x1xi64>, tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %0 = nn.argmax %y dim 1 : tensor<4x8xf32> -> tensor<4xi64>
  %1 = nn.argmax %y dim 1 keepdim : tensor<4x8xf32> -> tensor<4x1xi64>
  %2 = tp.constraint %y to <@mesh, [{tp}, {}]> : tensor<4x8xf32>
  return %0, %1, %2 : tensor<4xi64>, tensor<4x1xi64>, tensor<4x8xf32>
}

// Those of other functions, and of what they call, are said as well.
// CHECK: error: needs operand 0 as (Replicate), and it is (Shard(0)): 128 bytes in 1 collective that nothing asks for
// CHECK-NEXT: nn.argmax %{{.*}} dim 0
func.func private @callee(%x: tensor<4x8xf32>) -> tensor<8xi64> {
  %0 = nn.argmax %x dim 0 : tensor<4x8xf32> -> tensor<8xi64>
  return %0 : tensor<8xi64>
}
func.func @caller(%x: tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<8xi64> {
  %0 = func.call @callee(%x) : (tensor<4x8xf32>) -> tensor<8xi64>
  return %0 : tensor<8xi64>
}
