// RUN: tp-opt %s --split-input-file --verify-diagnostics

tp.mesh @mesh(dp = 2, tp = 2)
func.func @axis(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{is over 'pp', which isn't a dimension of the mesh}}
  %0 = tp.redistribute %x to <@mesh, [{}, {}]> over {pp} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

tp.mesh @mesh(dp = 2, tp = 2)
func.func @part(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{is over 'tp', which isn't a dimension of the mesh}}
  %0 = tp.redistribute %x to <@mesh, [{}, {}]> over {tp:(1)2} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

tp.mesh @mesh(dp = 2, tp = 2)
func.func @placed(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{places its result along 'dp', which it isn't over}}
  %0 = tp.redistribute %x to <@mesh, [{dp}, {tp}]> over {tp} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

tp.mesh @mesh(dp = 2, tp = 2)
func.func @partial(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error@+1 {{places its result along 'dp', which it isn't over}}
  %0 = tp.redistribute %x to <@mesh, [{}, {}], partial = {dp: sum}> over {tp} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
