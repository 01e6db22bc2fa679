// RUN: tp-opt %s --tp-check-lowered --verify-diagnostics

// All ops without a lowering are listed.
func.func @main(%x: tensor<4xf32>, %y: memref<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tp.propagation_barrier' isn't partitioned: this is a program over global shapes; make the ranks' program of it: tp-opt MODEL --tp-parallelize}}
  %b = tp.propagation_barrier %x : tensor<4xf32>
  // expected-error @+1 {{'nn.relu' can't be compiled: no lowering}}
  %0 = nn.relu %x : tensor<4xf32>
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'memref.load' can't be compiled: no lowering}}
  %1 = memref.load %y[%c0] : memref<4xf32>
  %i = arith.constant dense<0> : tensor<4x1xindex>
  // expected-error @+1 {{'tensor.gather' can't be compiled: no lowering}}
  %2 = tensor.gather %0[%i] gather_dims([0]) : (tensor<4xf32>, tensor<4x1xindex>) -> tensor<4x1xf32>
  return %0 : tensor<4xf32>
}
