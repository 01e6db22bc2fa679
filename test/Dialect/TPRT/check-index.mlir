// RUN: tp-opt %s --verify-roundtrip | FileCheck %s
// RUN: tp-opt %s --one-shot-bufferize="bufferize-function-boundaries" | FileCheck %s --check-prefix=BUFFERS

// CHECK-LABEL: @check
// BUFFERS-LABEL: @check
func.func @check(%ids: tensor<2x8xi64>, %t: memref<8xi32>) {
  // CHECK: tprt.check_index %{{.+}} below 100 what "emb: embedding" : tensor<2x8xi64>
  // BUFFERS: tprt.check_index %{{.+}} below 100 what "emb: embedding" : memref<2x8xi64
  tprt.check_index %ids below 100 what "emb: embedding" : tensor<2x8xi64>
  // CHECK: tprt.check_index %{{.+}} below 16 except -100 what "loss: cross_entropy" : memref<8xi32>
  tprt.check_index %t below 16 except -100 what "loss: cross_entropy" : memref<8xi32>
  return
}
