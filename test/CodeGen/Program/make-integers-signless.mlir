// RUN: tp-opt %s --convert-nn-to-linalg --make-integers-signless --canonicalize | FileCheck %s

// A byte above 127 isn't negative.
// CHECK-LABEL: func.func @to_float(
// CHECK-SAME: %[[X:.*]]: tensor<4xi8>) -> tensor<4xf32>
func.func @to_float(%x: tensor<4xui8>) -> tensor<4xf32> {
  // CHECK: ins(%[[X]] : tensor<4xi8>)
  // CHECK: ^bb0(%[[IN:.*]]: i8, %{{.*}}: f32)
  // CHECK: %[[WIDE:.*]] = arith.extui %[[IN]] : i8 to i32
  // CHECK: arith.sitofp %[[WIDE]] : i32 to f32
  %0 = nn.cast %x : tensor<4xui8> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Nor does one become the largest, or nothing, on the way to a byte.
// CHECK-LABEL: func.func @from_float(
// CHECK-SAME: -> tensor<4xi8>
func.func @from_float(%x: tensor<4xf32>) -> tensor<4xui8> {
  // CHECK: %[[WIDE:.*]] = arith.fptosi %{{.*}} : f32 to i32
  // CHECK: arith.trunci %[[WIDE]] : i32 to i8
  %0 = nn.cast %x : tensor<4xf32> -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// The bits are the same.
// CHECK-LABEL: func.func @reinterpret(
// CHECK-SAME: %[[X:.*]]: tensor<4xi8>)
func.func @reinterpret(%x: tensor<4xui8>) -> tensor<4xi8> {
  // CHECK-NOT: arith
  %0 = nn.cast %x : tensor<4xui8> -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// CHECK-LABEL: func.func @constants(
func.func @constants(%c: tensor<2xi1>) -> (tensor<2xui8>, tensor<2xui8>) {
  // CHECK-DAG: arith.constant dense<[-1, 7]> : tensor<2xi8>
  // CHECK-DAG: arith.constant dense<-56> : tensor<i8>
  %0 = nn.constant dense<[255, 7]> : tensor<2xui8>
  %1 = nn.constant dense<200> : tensor<ui8>
  %2 = nn.where %c, %0, %1 : (tensor<2xi1>, tensor<2xui8>, tensor<ui8>) -> tensor<2xui8>
  return %0, %2 : tensor<2xui8>, tensor<2xui8>
}
