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
func.func @indices() -> tensor<4xi64> {
  // expected-error@+1 {{'arith.constant' op attribute 'tp.sharding': a sharding needs a tensor of integers or floats, found 'tensor<4xindex>'}}
  %0 = arith.constant dense<0> : tensor<4xindex>
  %1 = arith.index_cast %0 : tensor<4xindex> to tensor<4xi64>
  return %1 : tensor<4xi64>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @buffer(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{result 0 is not a ranked tensor}}
  %m = bufferization.to_buffer %x : tensor<8xf32> to memref<8xf32>
  return %x : tensor<8xf32>
}
