// RUN: tp-opt %s --tp-sink-concatenations --canonicalize --cse --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>

// Each piece is multiplied with its part of the factors. What has the same
// pieces, here the third operand, is read by pieces as well.
// CHECK-LABEL: @pieces
// CHECK-SAME: (%[[A:.+]]: tensor<4x2xf32>, %[[B:.+]]: tensor<4x6xf32>, %[[F:.+]]: tensor<8xf32>)
// CHECK-DAG: %[[E:.+]] = tensor.empty() : tensor<4x8xf32>
// CHECK-DAG: %[[F0:.+]] = tensor.extract_slice %[[F]][0] [2] [1]
// CHECK: %[[X:.+]] = linalg.generic {{.*}} ins(%[[A]], %[[F0]], %[[A]] :
// CHECK: %[[Y:.+]] = tensor.insert_slice %[[X]] into %[[E]][0, 0] [4, 2] [1, 1]
// CHECK: %[[F1:.+]] = tensor.extract_slice %[[F]][2] [6] [1]
// CHECK: %[[Z:.+]] = linalg.generic {{.*}} ins(%[[B]], %[[F1]], %[[B]] :
// CHECK: %[[J:.+]] = linalg.index 1
// CHECK: affine.apply #{{.+}}()[%[[J]]]
// CHECK: tensor.insert_slice %[[Z]] into %[[Y]][0, 2] [4, 6] [1, 1]
func.func @pieces(%a: tensor<4x2xf32>, %b: tensor<4x6xf32>, %factors: tensor<8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = tensor.insert_slice %b into %e[0, 2] [4, 6] [1, 1] : tensor<4x6xf32> into tensor<4x8xf32>
  %1 = tensor.insert_slice %a into %0[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x8xf32>
  %e2 = tensor.empty() : tensor<4x8xf32>
  %2 = tensor.insert_slice %a into %e2[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x8xf32>
  %3 = tensor.insert_slice %b into %2[0, 2] [4, 6] [1, 1] : tensor<4x6xf32> into tensor<4x8xf32>
  %4 = linalg.generic {indexing_maps = [#id, #columns, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1, %factors, %3 : tensor<4x8xf32>, tensor<8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %f: f32, %y: f32, %o: f32):
    %j = linalg.index 1 : index
    %i = arith.index_cast %j : index to i32
    %n = arith.sitofp %i : i32 to f32
    %p = arith.mulf %x, %f : f32
    %q = arith.mulf %p, %y : f32
    %r = arith.addf %q, %n : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// Something else needs the concatenation, or it doesn't cover the tensor.
// CHECK-LABEL: @stays
// CHECK-COUNT-3: tensor.insert_slice
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xf32>)
func.func @stays(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x8xf32>
  %1 = tensor.insert_slice %b into %0[0, 4] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x8xf32>
  %2 = tensor.insert_slice %b into %c[0, 4] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x8xf32>
  %3 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1, %2 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    linalg.yield %p : f32
  } -> tensor<4x8xf32>
  return %1, %3 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>

// A slice of a transpose is the transpose of a slice.
// CHECK-LABEL: @slice
// CHECK: %[[S:.+]] = tensor.extract_slice %arg0[0, 4] [6, 4] [1, 1]
// CHECK: %[[T:.+]] = linalg.generic {{.*}} ins(%[[S]] : tensor<6x4xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[T]] : tensor<4x6xf32>)
func.func @slice(%x: tensor<6x8xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<8x6xf32>
  %0 = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<6x8xf32>) outs(%e : tensor<8x6xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<8x6xf32>
  %1 = tensor.extract_slice %0[4, 0] [4, 6] [1, 1] : tensor<8x6xf32> to tensor<4x6xf32>
  %e2 = tensor.empty() : tensor<4x6xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<4x6xf32>) outs(%e2 : tensor<4x6xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}
