// RUN: tp-opt %s --convert-nn-to-linalg | FileCheck %s
// RUN: tp-opt %s --convert-nn-to-linalg=on-device | FileCheck %s --check-prefix=DEVICE

// How many elements come before each one; which one has each place; what it is.
// CHECK-LABEL: func.func @sort
// CHECK-SAME: %[[X:.+]]: tensor<4x8xf32>
// CHECK: %[[PLACES:.+]] = linalg.generic {{.*}}["parallel", "parallel", "reduction"]} ins(%[[X]], %[[X]] : tensor<4x8xf32>, tensor<4x8xf32>) outs({{.*}} : tensor<4x8xi64>)
// CHECK: %[[INDICES:.+]] = linalg.generic {{.*}}["parallel", "parallel", "reduction"]} ins(%[[PLACES]] : tensor<4x8xi64>) outs({{.*}} : tensor<4x2xi64>)
// CHECK: %[[VALUES:.+]] = linalg.generic {{.*}}["parallel", "parallel"]} ins(%[[INDICES]] : tensor<4x2xi64>) outs({{.*}} : tensor<4x2xf32>)
// CHECK: tensor.extract %[[X]]
// CHECK: return %[[VALUES]], %[[INDICES]]
func.func @sort(%x: tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>) {
  %0:2 = nn.sort descending %x dim 1 count 2 : tensor<4x8xf32> -> (tensor<4x2xf32>, tensor<4x2xi64>)
  return %0#0, %0#1 : tensor<4x2xf32>, tensor<4x2xi64>
}

// A running sum in f32, rounded at each element; on a device, each sum by itself.
// CHECK-LABEL: func.func @cumsum
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args(%[[SUMS:.+]] = %{{.+}}, %[[SUM:.+]] = %{{.+}}) -> (tensor<4x8xf32>, f32)
// CHECK: %[[NEXT:.+]] = arith.addf %[[SUM]], %{{.+}} : f32
// CHECK: tensor.insert %[[NEXT]] into %[[SUMS]]
// CHECK: arith.truncf
// DEVICE-LABEL: func.func @cumsum
// DEVICE-NOT: scf.for
// DEVICE: linalg.generic {{.*}}["parallel", "parallel", "reduction"]}
// DEVICE: arith.cmpi ule
func.func @cumsum(%x: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %0 = nn.cumsum %x dim 1 : tensor<4x8xbf16>
  return %0 : tensor<4x8xbf16>
}

// CHECK-LABEL: func.func @scatter
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x4xf32>, %[[I:[a-z0-9]+]]: tensor<3xi64>, %[[S:[a-z0-9]+]]: tensor<3x4xf32>
// CHECK: tprt.check_index %[[I]] below 8 what "cache: scatter"
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tensor.extract %[[I]]
// CHECK: %[[NEW:.+]] = tensor.extract %[[S]]
// CHECK: tensor.insert %[[NEW]]
// DEVICE-LABEL: func.func @scatter
// DEVICE-NOT: scf.for
// DEVICE: %[[LAST:.+]] = linalg.generic {{.*}}["parallel", "parallel", "reduction"]}
// DEVICE: arith.maxsi
// DEVICE: %[[FOUND:.+]] = linalg.generic {{.*}} ins(%[[LAST]] : tensor<8x4xi64>)
// DEVICE: linalg.generic {{.*}} ins(%[[LAST]], %[[FOUND]], %{{.+}} : tensor<8x4xi64>, tensor<8x4xf32>, tensor<8x4xf32>)
func.func @scatter(%x: tensor<8x4xf32>, %i: tensor<3xi64>, %s: tensor<3x4xf32>) -> tensor<8x4xf32> {
  %0 = nn.scatter copy %x, %i, %s dim 0 {tp.fqn = "cache"} : (tensor<8x4xf32>, tensor<3xi64>, tensor<3x4xf32>)
  return %0 : tensor<8x4xf32>
}

// Each element adds up over depth, in the groups that have its row.
// DEVICE-LABEL: func.func @grouped_matmul
// DEVICE-SAME: %[[X:[a-z0-9]+]]: tensor<16x8xf32>, %[[W:[a-z0-9]+]]: tensor<4x8x6xf32>, %[[B:[a-z0-9]+]]: tensor<5xi32>
// DEVICE: tprt.check_index %[[B]] below 17
// DEVICE: linalg.generic {{.*}}["parallel", "parallel"]} outs({{.*}} : tensor<16x6xf32>)
// DEVICE: scf.for
// DEVICE: tensor.extract %[[B]]
// DEVICE: arith.andi
// DEVICE: %[[DEPTH:.+]] = arith.select
// DEVICE: scf.for %{{.+}} = %{{.+}} to %[[DEPTH]]
// DEVICE: tensor.extract %[[X]]
// DEVICE: tensor.extract %[[W]]
func.func @grouped_matmul(%x: tensor<16x8xf32>, %w: tensor<4x8x6xf32>, %b: tensor<5xi32>) -> tensor<16x6xf32> {
  %0 = nn.grouped_matmul %x, %w bounds %b : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x6xf32>
  return %0 : tensor<16x6xf32>
}
