// A model without nn ops, with a mesh and the placements of its weights.

// RUN: tp-opt %s --tp-parallelize=report=%t.json | FileCheck %s
// RUN: FileCheck %s --check-prefix=REPORT --input-file=%t.json
// RUN: tp-opt %s --tp-propagate --verify-roundtrip | FileCheck %s --check-prefix=PROPAGATE

tp.mesh @mesh(tp = 2)

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// CHECK-LABEL: func.func @mlp
// CHECK-SAME: %[[X:.*]]: tensor<8x10xf32> {{.*}}, %[[W1:.*]]: tensor<10x8xf32> {{.*}}, %[[B1:.*]]: tensor<8xf32> {{.*}}, %[[W2:.*]]: tensor<8x6xf32>
func.func @mlp(%x: tensor<8x10xf32>, %w1: tensor<10x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
               %b1: tensor<16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>},
               %w2: tensor<16x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<8x6xf32> {
  %zero = arith.constant 0.0 : f32
  // A rank makes its block of the zeros, no more.
  // CHECK: tensor.empty() : tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8x16xf32>
  // PROPAGATE: linalg.fill {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: %[[H:.*]] = linalg.matmul ins(%[[X]], %[[W1]] : tensor<8x10xf32>, tensor<10x8xf32>) outs(%{{.*}} : tensor<8x8xf32>)
  // PROPAGATE: linalg.matmul {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
  %h = linalg.matmul ins(%x, %w1 : tensor<8x10xf32>, tensor<10x16xf32>) outs(%f1 : tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%[[H]], %[[B1]] : tensor<8x8xf32>, tensor<8xf32>)
  %a = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%h, %b1 : tensor<8x16xf32>, tensor<16xf32>) outs(%e1 : tensor<8x16xf32>) {
  ^bb0(%in: f32, %b: f32, %out: f32):
    %s = arith.addf %in, %b : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<8x16xf32>
  %e2 = tensor.empty() : tensor<8x6xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x6xf32>) -> tensor<8x6xf32>
  // CHECK: %[[Y:.*]] = linalg.matmul ins(%[[A]], %[[W2]] : tensor<8x8xf32>, tensor<8x6xf32>)
  // PROPAGATE: linalg.matmul {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
  %y = linalg.matmul ins(%a, %w2 : tensor<8x16xf32>, tensor<16x6xf32>) outs(%f2 : tensor<8x6xf32>) -> tensor<8x6xf32>
  // CHECK: %[[R:.*]] = tp.all_reduce sum %[[Y]] over @mesh {tp} {bytes = 192 : i64
  // CHECK-NOT: tp.all
  // CHECK: return %[[R]]
  return %y : tensor<8x6xf32>
}

// REPORT: "bytes_per_rank": 192
// REPORT: "kind": "all_reduce"
