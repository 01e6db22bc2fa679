// RUN: tp-opt %s --split-input-file --verify-diagnostics --convert-tprt-to-calls

func.func private @layer(%rank: index {tprt.role = "rank"}) attributes {tprt.repeated} {
  tprt.mark 1
  return
}
func.func @main(%rank: index {tprt.role = "rank"}) {
  // expected-error @+1 {{lists 1 marks, but 'layer' has 2}}
  tprt.call @layer rank %rank origins [] collectives [] marks [0]
  return
}

// -----

func.func private @layer(%rank: index {tprt.role = "rank"}, %x: memref<8xf32>) attributes {tprt.repeated} {
  tprt.collective 0 into %x : memref<8xf32>
  return
}
func.func @main(%rank: index {tprt.role = "rank"}, %x: memref<8xf32>) {
  // expected-error @+1 {{lists 0 collectives, but 'layer' has 1}}
  tprt.call @layer rank %rank updates(%x : memref<8xf32>) origins [] collectives []
  return
}
