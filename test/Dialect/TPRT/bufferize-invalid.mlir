// RUN: tp-opt %s --one-shot-bufferize --split-input-file --verify-diagnostics

func.func @not_started(%x: tensor<4xf32>, %y: memref<8xf32>) {
  %init = bufferization.to_tensor %y restrict writable : memref<8xf32> to tensor<8xf32>
  // expected-error @below {{waits for collective 0, which isn't started before it in its block}}
  // expected-error @below {{failed to bufferize op}}
  %r = tprt.collective_wait 0 of %x : tensor<4xf32> into %init : tensor<8xf32> -> tensor<8xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}
