// RUN: tp-opt %s --verify-roundtrip | FileCheck %s
// RUN: tp-opt %s --one-shot-bufferize="bufferize-function-boundaries" | FileCheck %s --check-prefix=BUFFERS
// RUN: tp-opt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL

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

// Constants that are in range need no check.

// CANONICAL-LABEL: @constants
// CANONICAL-NOT: what "in range"
// CANONICAL: what "above"
// CANONICAL: what "below"
func.func @constants() {
  %ids = arith.constant dense<[[0, 7], [3, -100]]> : tensor<2x2xi64>
  tprt.check_index %ids below 8 except -100 what "in range" : tensor<2x2xi64>
  tprt.check_index %ids below 7 except -100 what "above" : tensor<2x2xi64>
  tprt.check_index %ids below 8 what "below" : tensor<2x2xi64>
  return
}

// Nor do indices that have been checked: all layers of a model may use the same position.

// CANONICAL-LABEL: @again
// CANONICAL: what "first"
// CANONICAL-NOT: what "same"
// CANONICAL: what "stricter"
// CANONICAL: what "other exception"
// CANONICAL: what "buffer"
// CANONICAL: what "buffer again"
func.func @again(%ids: tensor<4xi64>, %buffer: memref<4xi64>) {
  tprt.check_index %ids below 8 what "first" : tensor<4xi64>
  tprt.check_index %ids below 8 what "same" : tensor<4xi64>
  tprt.check_index %ids below 9 what "same or less" : tensor<4xi64>
  tprt.check_index %ids below 7 what "stricter" : tensor<4xi64>
  tprt.check_index %ids below 8 except -1 what "other exception" : tensor<4xi64>
  tprt.check_index %buffer below 8 what "buffer" : memref<4xi64>
  tprt.check_index %buffer below 8 what "buffer again" : memref<4xi64>
  return
}
