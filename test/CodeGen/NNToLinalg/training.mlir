// RUN: tp-opt %s --convert-nn-to-linalg --split-input-file | FileCheck %s

// One contraction over all leading dimensions.

// CHECK-DAG: #[[LHS:.+]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[RHS:.+]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: @outer_sum
// CHECK: %[[G:.+]] = tensor.collapse_shape %arg0 {{.*}} : tensor<2x8x4xf32> into tensor<16x4xf32>
// CHECK: %[[X:.+]] = tensor.collapse_shape %arg1 {{.*}} : tensor<2x8x16xf32> into tensor<16x16xf32>
// CHECK: linalg.generic {indexing_maps = [#[[LHS]], #[[RHS]], #{{.+}}], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[G]], %[[X]]
func.func @outer_sum(%g: tensor<2x8x4xf32>, %x: tensor<2x8x16xf32>) -> tensor<4x16xf32> {
  %0 = nn.outer_sum %g, %x : (tensor<2x8x4xf32>, tensor<2x8x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// -----

// Indices are checked; rows are added one after the other, in f32, as in PyTorch.

// CHECK-LABEL: @scatter_add_rows
// CHECK: tprt.check_index %arg0 below 10 what "emb: scatter_add_rows" : tensor<2x8xi64>
// CHECK: linalg.fill {{.*}} -> tensor<10x16xf32>
// CHECK: %[[ALL:.+]] = scf.for %[[I:.+]] = %{{.+}} to %{{.+}} step %{{.+}} iter_args(%[[SUM:.+]] = %{{.+}}) -> (tensor<10x16xf32>)
// CHECK: %[[ID:.+]] = tensor.extract %{{.+}}[%[[I]]] : tensor<16xi64>
// CHECK: arith.cmpi ult, %[[ID]]
// CHECK: %[[ROW:.+]] = arith.index_cast
// CHECK: scf.for %[[J:.+]] = {{.*}} iter_args(%[[INNER:.+]] = %[[SUM]])
// CHECK: %[[OLD:.+]] = tensor.extract %[[INNER]][%[[ROW]], %[[J]]]
// CHECK: %[[MORE:.+]] = tensor.extract %{{.+}}[%[[I]], %[[J]]] : tensor<16x16xbf16>
// CHECK: %[[WIDE:.+]] = arith.extf %[[MORE]] : bf16 to f32
// CHECK: %[[NEXT:.+]] = arith.addf %[[OLD]], %[[WIDE]]
// CHECK: tensor.insert %[[NEXT]] into %[[INNER]][%[[ROW]], %[[J]]]
// CHECK: linalg.generic {{.*}} ins(%[[ALL]] : tensor<10x16xf32>)
// CHECK: arith.truncf
func.func @scatter_add_rows(%ids: tensor<2x8xi64>, %rows: tensor<2x8x16xbf16>) -> tensor<10x16xbf16> {
  %0 = nn.scatter_add_rows %ids, %rows {tp.fqn = "emb"} : (tensor<2x8xi64>, tensor<2x8x16xbf16>) -> tensor<10x16xbf16>
  return %0 : tensor<10x16xbf16>
}

// -----

// No rows, no loop.

// CHECK-LABEL: @no_rows
// CHECK-NOT: scf.for
func.func @no_rows(%ids: tensor<0xi64>, %rows: tensor<0x16xf32>) -> tensor<10x16xf32> {
  %0 = nn.scatter_add_rows %ids, %rows : (tensor<0xi64>, tensor<0x16xf32>) -> tensor<10x16xf32>
  return %0 : tensor<10x16xf32>
}

// -----

// Ten rounds of two products, of which the last needs one; the key is folded into constants.

// CHECK-LABEL: @random_uniform
// CHECK-SAME: %[[COUNTER:.+]]: tensor<i64>, %[[INDEX:.+]]: tensor<4xi64>
// CHECK: linalg.generic {{.*}} ins(%[[COUNTER]], %[[INDEX]]
// CHECK-COUNT-19: arith.muli {{.*}} : i64
// CHECK-NOT: arith.muli
// CHECK: arith.shrui {{.*}} : i32
// CHECK: arith.sitofp {{.*}} : i32 to f32
// CHECK: arith.mulf
func.func @random_uniform(%c: tensor<i64>, %i: tensor<4xi64>) -> tensor<4xf32> {
  %stream = nn.constant dense<2> : tensor<i64>
  %0 = nn.random_uniform %c, %i stream %stream seed 1 : (tensor<i64>, tensor<4xi64>, tensor<i64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @recompute
// CHECK: tprt.opaque %arg0 : tensor<4xf32>
func.func @recompute(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.recompute %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Parameter and state are the initial values of the results: they are written over.

// CHECK-LABEL: @adam
// CHECK-SAME: %[[W:.+]]: tensor<4x8xf32>, %[[G:.+]]: tensor<4x8xf32>, %[[M:.+]]: tensor<4x8xf32>, %[[V:.+]]: tensor<4x8xf32>, %[[LR:.+]]: tensor<f32>
// CHECK: linalg.generic {{.*}} ins(%[[G]], %[[LR]], %[[LR]], %[[LR]] : {{.*}}) outs(%[[W]], %[[M]], %[[V]] :
// CHECK: math.sqrt
func.func @adam(%w: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0:3 = nn.adam decoupled %w, %g, %m, %v lr %lr corrections %lr, %lr betas 0.9, 0.999 eps 1.0e-8 weight_decay 0.01
    : tensor<4x8xf32>, tensor<f32>
  return %0#0, %0#1, %0#2 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: @amsgrad
// CHECK-SAME: %[[W:.+]]: tensor<4xf32>, %[[G:.+]]: tensor<4xf32>, %[[X:.+]]: tensor<4xf32>, %[[LR:.+]]: tensor<f32>
// CHECK: linalg.generic {{.*}} ins(%[[G]], %[[LR]], %[[LR]], %[[LR]] : {{.*}}) outs(%[[W]], %[[W]], %[[W]], %[[X]] :
// CHECK: %[[LARGEST:.+]] = arith.maximumf
// CHECK: arith.divf %[[LARGEST]],
// CHECK: math.sqrt
func.func @amsgrad(%w: tensor<4xf32>, %g: tensor<4xf32>, %x: tensor<4xf32>, %lr: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:4 = nn.amsgrad %w, %g, %w, %w, %x lr %lr corrections %lr, %lr betas 0.9, 0.999 eps 1.0e-8 weight_decay 0.01
    : tensor<4xf32>, tensor<f32>
  return %0#0, %0#3 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: @sgd
// CHECK-SAME: %[[W:.+]]: tensor<4xbf16>, %[[G:.+]]: tensor<4xbf16>, %[[V:.+]]: tensor<4xbf16>
// CHECK: linalg.generic {{.*}} outs(%[[W]], %[[V]] :
// CHECK-COUNT-4: arith.mulf {{.*}} : f32
// CHECK-COUNT-2: arith.truncf
func.func @sgd(%w: tensor<4xbf16>, %g: tensor<4xbf16>, %v: tensor<4xbf16>, %lr: tensor<f32>) -> (tensor<4xbf16>, tensor<4xbf16>) {
  %0:2 = nn.sgd nesterov %w, %g, %v lr %lr momentum 0.9 weight_decay 0.5 : tensor<4xbf16>, tensor<f32>
  return %0#0, %0#1 : tensor<4xbf16>, tensor<4xbf16>
}
