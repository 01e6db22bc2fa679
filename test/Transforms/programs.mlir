// RUN: tp-opt %s --tp-verify-collectives -o /dev/null
// RUN: tp-opt %s --tp-optimize-collectives | FileCheck %s
// RUN: tp-opt %s --tp-optimize-collectives --tp-report=file=%t.json -o /dev/null && FileCheck %s --check-prefix=REPORT < %t.json

// Programs of a function belong together wherever they are in the file.
tp.mesh @mesh(tp = 3)

// REPORT: "kind": "all_gather"
// REPORT: "kind": "all_reduce"
// REPORT-NOT: "kind": "all_
// CHECK-LABEL: func.func @reduced_0
// CHECK-SAME: tp.copy_of = @reduced, tp.ranks = array<i64: 2>
// CHECK-COUNT-1: tp.all_reduce
func.func @reduced_0(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {tp.copy_of = @reduced, tp.ranks = array<i64: 2>} {
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  %1 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @gathered
// CHECK: tp.all_gather
func.func @gathered(%x: tensor<2xf32>) -> tensor<5xf32> attributes {tp.ranks = array<i64: 0, 1>} {
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
// CHECK-LABEL: func.func @reduced
// CHECK-COUNT-1: tp.all_reduce
// CHECK-NOT: tp.all_reduce
func.func @reduced(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {tp.ranks = array<i64: 0, 1>} {
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  %1 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @gathered_0
// CHECK: tp.all_gather
func.func @gathered_0(%x: tensor<1xf32>) -> tensor<5xf32> attributes {tp.copy_of = @gathered, tp.ranks = array<i64: 2>} {
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<1xf32> -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
