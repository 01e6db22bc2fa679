// RUN: tp-opt %s --split-input-file --verify-diagnostics

func.func @bound(%ids: tensor<2xi64>) {
  // expected-error @+1 {{attribute 'bound' failed to satisfy constraint}}
  tprt.check_index %ids below -1 what "embedding" : tensor<2xi64>
  return
}

// -----

func.func @float(%ids: tensor<2xf32>) {
  // expected-error @+1 {{operand #0 must be}}
  tprt.check_index %ids below 4 what "embedding" : tensor<2xf32>
  return
}
