// RUN: tp-opt %s --tp-split-reductions | FileCheck %s

#in = affine_map<(i, j) -> (i, j)>
#out = affine_map<(i, j) -> ()>

// The first dimension is reduced last; what is added to comes in at the end.

// CHECK-DAG: #[[IJ:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[I:.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[ID:.+]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[ALL:.+]] = affine_map<(d0) -> ()>
// CHECK-LABEL: @norm
// CHECK-SAME: %[[X:.+]]: tensor<4096x512xf32>, %[[INIT:.+]]: tensor<f32>
// CHECK: %[[EMPTY:.+]] = tensor.empty() : tensor<4096xf32>
// CHECK: %[[ZEROS:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%[[EMPTY]] : tensor<4096xf32>)
// CHECK: %[[PARTIAL:.+]] = linalg.generic {indexing_maps = [#[[IJ]], #[[I]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]] : tensor<4096x512xf32>) outs(%[[ZEROS]] : tensor<4096xf32>)
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ALL]]], iterator_types = ["reduction"]} ins(%[[PARTIAL]] : tensor<4096xf32>) outs(%[[INIT]] : tensor<f32>)
// CHECK-NOT: arith.mulf
// CHECK: arith.addf
func.func @norm(%x: tensor<4096x512xf32>, %init: tensor<f32>) -> tensor<f32> {
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<4096x512xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %sum: f32):
    %1 = arith.mulf %a, %a : f32
    %2 = arith.addf %sum, %1 fastmath<reassoc> : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// Too little to reduce; sums that have an order.

// CHECK-LABEL: @whole
// CHECK-COUNT-2: iterator_types = ["reduction", "reduction"]
func.func @whole(%x: tensor<32x64xf32>, %y: tensor<4096x512xf32>, %init: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<32x64xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %sum: f32):
    %2 = arith.addf %sum, %a fastmath<reassoc> : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  %1 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction", "reduction"]} ins(%y : tensor<4096x512xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %sum: f32):
    %2 = arith.addf %sum, %a : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}
