// RUN: tp-opt %s --tp-copy-constants-to-device --split-input-file | FileCheck %s

// The runtime reads copies of constants, also through views; a kernel reads the constant, of which it has its own.

#id = affine_map<(i, j) -> (i, j)>
memref.global "private" constant @mask : memref<3x4xi1> = dense<[[true, true, false, true], [true, true, true, true], [false, true, true, true]]>

// CHECK-LABEL: @attention
// CHECK: %[[MASK:.+]] = memref.get_global @mask
// CHECK-NEXT: %[[COPY:.+]] = memref.alloc() : memref<3x4xi1>
// CHECK-NEXT: linalg.copy ins(%[[MASK]] : memref<3x4xi1>) outs(%[[COPY]] : memref<3x4xi1>)
// CHECK: %[[VIEW:.+]] = memref.expand_shape %[[COPY]] {{\[}}[0, 1, 2], [3]]
// CHECK: linalg.generic {{.*}} ins(%[[MASK]] :
// CHECK: tprt.attention %{{.+}}, %{{.+}}, %{{.+}} mask %[[VIEW]] into
func.func @attention(%q: memref<1x2x3x8xf32>, %k: memref<1x2x4x8xf32>, %o: memref<1x2x3x8xf32>, %seen: memref<3x4xi32>) {
  %mask = memref.get_global @mask : memref<3x4xi1>
  %view = memref.expand_shape %mask [[0, 1, 2], [3]] output_shape [1, 1, 3, 4] : memref<3x4xi1> into memref<1x1x3x4xi1>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%mask : memref<3x4xi1>) outs(%seen : memref<3x4xi32>) {
  ^bb0(%m: i1, %s: i32):
    %0 = arith.extui %m : i1 to i32
    linalg.yield %0 : i32
  }
  tprt.attention %q, %k, %k mask %view into %o scale 0.5 maps [
    affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d4)>,
    affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (0, 0, d2, d3)>,
    affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d5)>]
    : memref<1x2x3x8xf32>, memref<1x2x4x8xf32>, memref<1x2x4x8xf32> mask memref<1x1x3x4xi1> into memref<1x2x3x8xf32>
  return
}

// -----

memref.global "private" constant @ids : memref<2xi64> = dense<[3, 9]>

// CHECK-LABEL: @check
// CHECK: %[[IDS:.+]] = memref.get_global @ids
// CHECK: linalg.copy ins(%[[IDS]] : memref<2xi64>) outs(%[[COPY:.+]] : memref<2xi64>)
// CHECK: tprt.check_index %[[COPY]] below 8
func.func @check() {
  %ids = memref.get_global @ids : memref<2xi64>
  tprt.check_index %ids below 8 what "embedding" : memref<2xi64>
  return
}

// -----

memref.global "private" constant @row : memref<2xf32> = dense<[3.0, 9.0]>

// What only kernels read stays.

// CHECK-LABEL: @kernel
// CHECK-NOT: alloc
func.func @kernel(%out: memref<2xf32>) {
  %row = memref.get_global @row : memref<2xf32>
  linalg.copy ins(%row : memref<2xf32>) outs(%out : memref<2xf32>)
  return
}
