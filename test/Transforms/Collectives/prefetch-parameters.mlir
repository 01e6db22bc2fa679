// Gathered parameters come one module ahead: their gathers are issued when the module before first uses its own, also where
// a reduction stood in between.
// RUN: tp-opt %s --tp-overlap-collectives | FileCheck %s

tp.mesh @mesh(dp = 2)

// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // One module's gathers stay together.
  // CHECK: tp.start
  // CHECK-NEXT: tp.all_gather {{.*}}fqn = "a"
  // CHECK: tp.start
  // CHECK-NEXT: tp.all_gather {{.*}}fqn = "a"
  // CHECK: tp.start
  // CHECK-NEXT: tp.all_gather {{.*}}fqn = "b"
  // CHECK: tp.wait
  // CHECK-NEXT: nn.linear
  // CHECK: tp.wait
  // CHECK-NEXT: nn.add
  %a = nn.parameter "a.weight" : tensor<4x8xf32>
  %0 = tp.all_gather %a dim 0 over @mesh {dp} {fqn = "a"} : tensor<4x8xf32> -> tensor<8x8xf32>
  %bias = nn.parameter "a.bias" : tensor<4xf32>
  %1 = tp.all_gather %bias dim 0 over @mesh {dp} {fqn = "a"} : tensor<4xf32> -> tensor<8xf32>
  %2 = nn.linear %x, %0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %3 = nn.add %2, %1 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // The third waits for the second module.
  // CHECK: tp.start
  // CHECK-NEXT: tp.all_gather {{.*}}fqn = "c"
  // CHECK: tp.wait
  // CHECK-NEXT: nn.linear
  %b = nn.parameter "b.weight" : tensor<4x8xf32>
  %4 = tp.all_gather %b dim 0 over @mesh {dp} {fqn = "b"} : tensor<4x8xf32> -> tensor<8x8xf32>
  %5 = nn.linear %3, %4 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %c = nn.parameter "c.weight" : tensor<4x8xf32>
  %6 = tp.all_gather %c dim 0 over @mesh {dp} {fqn = "c"} : tensor<4x8xf32> -> tensor<8x8xf32>
  %7 = nn.linear %5, %6 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %7 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @backward
func.func @backward(%g: tensor<4x8xf32>, %x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: tp.all_gather {{.*}}fqn = "b"
  // CHECK: nn.recompute
  // CHECK: tp.all_gather {{.*}}fqn = "a"
  // CHECK: tp.reduce_scatter
  // CHECK: tp.wait
  // CHECK-NEXT: nn.linear
  %b = nn.parameter "b.weight" : tensor<4x8xf32>
  %0 = tp.all_gather %b dim 0 over @mesh {dp} {fqn = "b"} : tensor<4x8xf32> -> tensor<8x8xf32>
  %1 = nn.linear %g, %0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = nn.outer_sum %g, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %3 = tp.reduce_scatter sum %2 dim 0 over @mesh {dp} : tensor<8x8xf32> -> tensor<4x8xf32>
  %a = nn.parameter "a.weight" : tensor<4x8xf32>
  %again = nn.recompute %a : tensor<4x8xf32>
  %4 = tp.all_gather %again dim 0 over @mesh {dp} {fqn = "a"} : tensor<4x8xf32> -> tensor<8x8xf32>
  %5 = nn.linear %1, %4 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %5, %3 : tensor<4x8xf32>, tensor<4x8xf32>
}

// Gathers of other values don't move above their operands.
// CHECK-LABEL: func.func @activation
func.func @activation(%x: tensor<2x8xf32>) -> tensor<4x8xf32> {
  // CHECK: nn.linear
  // CHECK-NEXT: tp.all_gather {{.*}}fqn = "a"
  %a = nn.parameter "a.weight" : tensor<4x8xf32>
  %0 = tp.all_gather %a dim 0 over @mesh {dp} {fqn = "w"} : tensor<4x8xf32> -> tensor<8x8xf32>
  %1 = nn.linear %x, %0 : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %2 = tp.all_gather %1 dim 0 over @mesh {dp} {fqn = "a"} : tensor<2x8xf32> -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
