// Attention in linalg, its pieces split by heads: masks and softmaxes stay with their heads, and the projection's sum over heads is
// the one thing that moves. The model's last step is an nn op.

// RUN: tp-opt %s --tp-parallelize | FileCheck %s

tp.mesh @mesh(tp = 2)

#bid = affine_map<(b, i, d) -> (b, i, d)>

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<4x6x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>},
                     %k: tensor<4x6x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>},
                     %v: tensor<4x6x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>},
                     %w: tensor<4x8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>}) -> tensor<6x16xf32> {
  // CHECK-NOT: = tp.
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4x6x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  // CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<2x6x8xf32>, tensor<2x6x8xf32>) outs(%{{.*}} : tensor<2x6x6xf32>)
  %scores = linalg.generic {indexing_maps = [affine_map<(b, i, j, d) -> (b, i, d)>, affine_map<(b, i, j, d) -> (b, j, d)>,
      affine_map<(b, i, j, d) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x6x8xf32>, tensor<4x6x8xf32>) outs(%zeros : tensor<4x6x6xf32>) {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x6x6xf32>
  // CHECK: linalg.index 1
  %masked = linalg.generic {indexing_maps = [#bid, #bid], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores : tensor<4x6x6xf32>) outs(%e : tensor<4x6x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %past = arith.cmpi ule, %j, %i : index
    %m = arith.select %past, %in, %low : f32
    linalg.yield %m : f32
  } -> tensor<4x6x6xf32>
  // CHECK: linalg.softmax dimension(2) ins(%{{.*}} : tensor<2x6x6xf32>)
  %weights = linalg.softmax dimension(2) ins(%masked : tensor<4x6x6xf32>) outs(%e : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %e2 = tensor.empty() : tensor<4x6x8xf32>
  %zeros2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  // CHECK: linalg.batch_matmul ins(%{{.*}}, %{{.*}} : tensor<2x6x6xf32>, tensor<2x6x8xf32>)
  %heads = linalg.batch_matmul ins(%weights, %v : tensor<4x6x6xf32>, tensor<4x6x8xf32>) outs(%zeros2 : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %e3 = tensor.empty() : tensor<6x16xf32>
  %zeros3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<6x16xf32>) -> tensor<6x16xf32>
  // CHECK: %[[PART:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<2x6x8xf32>, tensor<2x8x16xf32>)
  %out = linalg.generic {indexing_maps = [affine_map<(i, n, b, d) -> (b, i, d)>, affine_map<(i, n, b, d) -> (b, d, n)>,
      affine_map<(i, n, b, d) -> (i, n)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%heads, %w : tensor<4x6x8xf32>, tensor<4x8x16xf32>) outs(%zeros3 : tensor<6x16xf32>) {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<6x16xf32>
  // CHECK: %[[SUM:.*]] = tp.all_reduce sum %[[PART]] over @mesh {tp} {bytes = 384 : i64
  // CHECK: nn.softmax %[[SUM]]
  // CHECK-NOT: = tp.
  %y = nn.softmax %out dim 1 : tensor<6x16xf32>
  return %y : tensor<6x16xf32>
}
