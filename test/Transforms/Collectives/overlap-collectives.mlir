// RUN: tp-opt %s --tp-overlap-collectives | FileCheck %s
// RUN: tp-opt %s --tp-overlap-collectives --tp-lower-start-wait | FileCheck %s --check-prefix=LOWERED
// Starts move up to the operand, waits down to the first use.

tp.mesh @mesh(tp = 2)

// CHECK-LABEL: func.func @up_and_down
// LOWERED-LABEL: func.func @up_and_down
func.func @up_and_down(%x: tensor<8x4xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[A:.*]] = nn.exp %arg0
  // CHECK-NEXT: %[[P:.*]] = tp.start {
  // CHECK-NEXT:   %[[G:.*]] = tp.all_gather %[[A]] dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x8xf32>
  // CHECK-NEXT:   tp.yield %[[G]] : tensor<8x8xf32>
  // CHECK-NEXT: } : !tp.pending<tensor<8x8xf32>>
  // CHECK-NEXT: %[[B:.*]] = nn.tanh
  // CHECK-NEXT: %[[C:.*]] = nn.relu
  // CHECK-NEXT: %[[W:.*]] = tp.wait %[[P]] : !tp.pending<tensor<8x8xf32>>
  // CHECK-NEXT: nn.add %[[C]], %[[W]]
  // LOWERED-NEXT: nn.exp
  // LOWERED-NEXT: %[[G:.*]] = tp.all_gather
  // LOWERED-NEXT: nn.tanh
  // LOWERED-NEXT: nn.relu
  // LOWERED-NEXT: nn.add %{{.*}}, %[[G]]
  %a = nn.exp %x : tensor<8x4xf32>
  %b = nn.tanh %y : tensor<8x8xf32>
  %g = tp.all_gather %a dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x8xf32>
  %c = nn.relu %b : tensor<8x8xf32>
  %d = nn.add %c, %g : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %d : tensor<8x8xf32>
}

// Nothing to do in between.
// CHECK-LABEL: func.func @at_once
func.func @at_once(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK-NEXT: nn.exp
  // CHECK-NEXT: tp.all_reduce
  // CHECK-NEXT: nn.relu
  %a = nn.exp %x : tensor<8x4xf32>
  %g = tp.all_reduce sum %a over @mesh {tp} : tensor<8x4xf32>
  %c = nn.relu %g : tensor<8x4xf32>
  return %c : tensor<8x4xf32>
}

// The second start stays behind the first, though its operand is there; and behind a branch that issues one.
// CHECK-LABEL: func.func @order
func.func @order(%x: tensor<8xf32>, %y: tensor<8xf32>, %p: i1) -> tensor<8xf32> {
  // CHECK-NEXT: nn.exp
  // CHECK-NEXT: tp.start
  // CHECK-NEXT: tp.all_reduce sum
  // CHECK: tp.start
  // CHECK-NEXT: tp.all_reduce max
  // CHECK: nn.tanh
  // CHECK-NEXT: tp.wait
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: tp.all_reduce min
  // CHECK: tp.start
  // CHECK-NEXT: tp.all_reduce prod
  %a = nn.exp %x : tensor<8xf32>
  %t = nn.tanh %y : tensor<8xf32>
  %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<8xf32>
  %1 = tp.all_reduce max %y over @mesh {tp} : tensor<8xf32>
  %2 = scf.if %p -> tensor<8xf32> {
    %3 = tp.all_reduce min %1 over @mesh {tp} : tensor<8xf32>
    scf.yield %3 : tensor<8xf32>
  } else {
    scf.yield %t : tensor<8xf32>
  }
  %e = nn.exp %2 : tensor<8xf32>
  %4 = tp.all_reduce product %y over @mesh {tp} : tensor<8xf32>
  %5 = nn.add %4, %e : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %6 = nn.add %5, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %6 : tensor<8xf32>
}

// A reduction of a gradient keeps all of the gradient until it is waited for: one at a time.
// CHECK-LABEL: func.func @gradients
func.func @gradients(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK-NEXT: nn.exp %arg0
  // CHECK-NEXT: %[[P:.*]] = tp.start {
  // CHECK-NEXT:   tp.reduce_scatter
  // CHECK:      nn.exp %arg1
  // CHECK-NEXT: %[[G0:.*]] = tp.wait %[[P]]
  // CHECK-NEXT: %[[Q:.*]] = tp.start {
  // CHECK-NEXT:   tp.reduce_scatter
  // CHECK:      nn.tanh %arg2
  // CHECK-NEXT: %[[G1:.*]] = tp.wait %[[Q]]
  // CHECK-NEXT: nn.add %{{.*}}, %[[G1]]
  // CHECK-NEXT: nn.add %arg2, %[[G0]]
  %0 = nn.exp %a : tensor<8x4xf32>
  %g0 = tp.reduce_scatter sum %0 dim 0 over @mesh {tp} : tensor<8x4xf32> -> tensor<4x4xf32>
  %1 = nn.exp %b : tensor<8x4xf32>
  %g1 = tp.reduce_scatter sum %1 dim 0 over @mesh {tp} : tensor<8x4xf32> -> tensor<4x4xf32>
  %t = nn.tanh %w : tensor<4x4xf32>
  %r1 = nn.add %t, %g1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r0 = nn.add %w, %g0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r0, %r1 : tensor<4x4xf32>, tensor<4x4xf32>
}
