// RUN: tp-opt %s --convert-nn-to-linalg --split-input-file | FileCheck %s

// All indices are checked first, in the name of the module; no body reads out of
// bounds.

// CHECK-LABEL: @embedding
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: tensor<2x8xi64>, %[[W:[a-z0-9]+]]: tensor<100x16xf32>
// CHECK: tprt.check_index %[[IDS]] below 100 what "emb.word: embedding"
// CHECK: linalg.generic {{.*}} ins(%[[IDS]]
// CHECK: ^bb0(%[[ID:.+]]: i64,
// CHECK: %[[OK:.+]] = arith.cmpi ult, %[[ID]], %{{.+}} : i64
// CHECK: %[[SAFE:.+]] = arith.select %[[OK]], %[[ID]], %{{.+}} : i64
// CHECK: %[[ROW:.+]] = arith.index_cast %[[SAFE]]
// CHECK: %[[COLUMN:.+]] = linalg.index 2
// CHECK: tensor.extract %[[W]][%[[ROW]], %[[COLUMN]]]
func.func @embedding(%ids: tensor<2x8xi64>, %w: tensor<100x16xf32>) -> tensor<2x8x16xf32> {
  %0 = nn.embedding %ids, %w {tp.fqn = "emb.word"} : (tensor<2x8xi64>, tensor<100x16xf32>) -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}

// -----

// CHECK-LABEL: @gather
// CHECK: tprt.check_index %{{.+}} below 8 what "gather" : tensor<2x3xi32>
// CHECK: arith.extsi
// CHECK: tensor.extract
func.func @gather(%x: tensor<2x8xf32>, %i: tensor<2x3xi32>) -> tensor<2x3xf32> {
  %0 = nn.gather %x, %i dim 1 : (tensor<2x8xf32>, tensor<2x3xi32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// CHECK-DAG: #[[INDEX:.+]] = affine_map<(d0, d1, d2) -> (d1)>
// CHECK-LABEL: @index_select
// CHECK: tprt.check_index %{{.+}} below 8
// CHECK: linalg.generic {indexing_maps = [#[[INDEX]], #{{.+}}]
func.func @index_select(%x: tensor<2x8x4xf32>, %i: tensor<3xi64>) -> tensor<2x3x4xf32> {
  %0 = nn.index_select %x, %i dim 1 : (tensor<2x8x4xf32>, tensor<3xi64>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

// Ignored targets pass the check; the mean divides by the weights of the others.

// CHECK-LABEL: @cross_entropy
// CHECK: tprt.check_index %{{.+}} below 16 except -100 what "cross_entropy"
// CHECK: math.log
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<8xf32>, tensor<8xf32>)
// CHECK: tensor.extract
// CHECK-COUNT-2: arith.select {{.*}} : f32
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK-COUNT-2: iterator_types = ["reduction"]
// CHECK: arith.divf {{.*}} : f32
func.func @cross_entropy(%x: tensor<8x16xf32>, %t: tensor<8xi64>) -> tensor<f32> {
  %0 = nn.cross_entropy mean %x, %t ignore -100 smoothing 0.1 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
  return %0 : tensor<f32>
}
