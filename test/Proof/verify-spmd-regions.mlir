// Values that a loop carries are proven by induction; a wrong loop is reported at the op in it.
//
// RUN: tp-opt %s --tp-parallelize -o %t.mlir
// RUN: tp-opt %t.mlir --tp-verify-spmd="reference=%s always-execute" -o /dev/null 2>&1 | FileCheck %s
// CHECK: remark: 'loop' is proven for 2 ranks
// CHECK: remark: 'loop' is executed for 2 ranks on {{[0-9]+}} inputs
// CHECK: remark: 'called' is proven for 2 ranks
// CHECK: remark: 'upstream' is proven for 2 ranks

// RUN: sed -e 's/tp.all_reduce sum/tp.all_reduce max/' %t.mlir > %t.bad.mlir
// RUN: not tp-opt %t.bad.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: not proven: the operand is (Partial(sum)): its parts don't combine by max
// WRONG-NEXT: tp.all_reduce max
// WRONG: note: refuted by execution: on rank 0, element [0, 0] of result 0 isn't element [0, 0] of what the reference computes

tp.mesh @mesh(tp = 2)

func.func @loop(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w1 = nn.parameter "w1" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<8x4xf32>
  %w2 = nn.parameter "w2" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<4x8xf32>
  %lower = arith.constant 0 : index
  %upper = arith.constant 3 : index
  %step = arith.constant 1 : index
  %r = scf.for %i = %lower to %upper step %step iter_args(%h = %x) -> (tensor<3x4xf32>) {
    %0 = nn.linear %h, %w1 : (tensor<3x4xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
    %1 = nn.silu %0 : tensor<3x8xf32>
    %2 = nn.linear %1, %w2 : (tensor<3x8xf32>, tensor<4x8xf32>) -> tensor<3x4xf32>
    %3 = nn.mul %2, %h : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    scf.yield %3 : tensor<3x4xf32>
  }
  return %r : tensor<3x4xf32>
}

func.func private @layer(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.exp %x : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

func.func @called(%x: tensor<4x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<4x4xf32> {
  %0 = func.call @layer(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = func.call @layer(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

func.func @upstream(%a: tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                    %b: tensor<8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = math.exp %0 : tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}
