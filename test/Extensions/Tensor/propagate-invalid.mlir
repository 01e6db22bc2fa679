// RUN: tp-opt %s --tp-propagate --split-input-file --verify-diagnostics

tp.mesh @mesh(tp = 2)
func.func @dynamic(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{result 0 is a 'tensor<?x8xf32>'; only static shapes can be placed}}
  %0 = tensor.cast %x : tensor<8x8xf32> to tensor<?x8xf32>
  %1 = tensor.cast %0 : tensor<?x8xf32> to tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @buffer(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{result 0 is not a ranked tensor}}
  %m = bufferization.to_buffer %x : tensor<8xf32> to memref<8xf32>
  return %x : tensor<8xf32>
}
