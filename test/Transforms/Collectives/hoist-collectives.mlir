// RUN: tp-opt %s --tp-optimize-collectives | FileCheck %s
// Collectives of loop-invariant operands are hoisted.

tp.mesh @mesh(tp = 2)

// The gather of the weight, with what leads to it; not the one of what the loop carries.
// CHECK-LABEL: func.func @for
func.func @for(%x: tensor<4x8xf32>, %n: index) -> tensor<4x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: nn.parameter
  // CHECK-NEXT: %[[T:.*]] = nn.transpose
  // CHECK-NEXT: %[[W:.*]] = tp.all_gather %[[T]]
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: nn.linear %{{.*}}, %[[W]]
  // CHECK-NEXT: tp.reduce_scatter
  // CHECK-NEXT: nn.relu
  // CHECK-NEXT: tp.all_gather
  %w = nn.parameter "w" {tp.global_type = tensor<8x8xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<8x4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<4x8xf32> {
    %t = nn.transpose %w [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
    %g = tp.all_gather %t dim 0 over @mesh {tp} : tensor<4x8xf32> -> tensor<8x8xf32>
    %z = nn.linear %y, %g : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %s = tp.reduce_scatter sum %z dim 0 over @mesh {tp} : tensor<4x8xf32> -> tensor<2x8xf32>
    %e = nn.relu %s : tensor<2x8xf32>
    %a = tp.all_gather %s dim 0 over @mesh {tp} : tensor<2x8xf32> -> tensor<4x8xf32>
    %b = tp.all_gather %e dim 0 over @mesh {tp} : tensor<2x8xf32> -> tensor<4x8xf32>
    %c = nn.add %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    scf.yield %c : tensor<4x8xf32>
  }
  return %r : tensor<4x8xf32>
}

// Out of both loops; not out of a branch, which may not be taken.
// CHECK-LABEL: func.func @nested
func.func @nested(%x: tensor<4xf32>, %p: i1, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %init = nn.constant dense<0.0> : tensor<8xf32>
  // CHECK: tp.all_gather
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: scf.for
  // CHECK-NOT: tp.all_gather
  // CHECK: scf.if
  // CHECK-NEXT: tp.all_reduce
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %init) -> tensor<8xf32> {
    %q = scf.for %j = %c0 to %n step %c1 iter_args(%z = %y) -> tensor<8xf32> {
      %g = tp.all_gather %x dim 0 over @mesh {tp} : tensor<4xf32> -> tensor<8xf32>
      %s = scf.if %p -> tensor<8xf32> {
        %a = tp.all_reduce sum %init over @mesh {tp} : tensor<8xf32>
        scf.yield %a : tensor<8xf32>
      } else {
        scf.yield %z : tensor<8xf32>
      }
      %t = nn.add %s, %g : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      scf.yield %t : tensor<8xf32>
    }
    scf.yield %q : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func @while
func.func @while(%x: tensor<4xf32>, %y: tensor<8xf32>, %p: i1) -> tensor<8xf32> {
  // CHECK: tp.all_gather
  // CHECK-NEXT: scf.while
  %r = scf.while (%z = %y) : (tensor<8xf32>) -> tensor<8xf32> {
    scf.condition(%p) %z : tensor<8xf32>
  } do {
  ^bb0(%z: tensor<8xf32>):
    %g = tp.all_gather %x dim 0 over @mesh {tp} : tensor<4xf32> -> tensor<8xf32>
    %s = nn.add %z, %g : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
