// RUN: tp-opt %s --tp-propagate --tp-partition | FileCheck %s

tp.mesh @mesh(dp = 2, tp = 2)

// Two all-reduces: of the maxima, and of sums and target logits together. PyTorch's loss_parallel takes three.
// CHECK-LABEL: func.func @sum
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK: %[[M:.*]] = nn.reduce max %[[X]] dims [1] keepdim
// CHECK: %[[MAX:.*]] = tp.all_reduce max %[[M]] over @mesh {tp}
// CHECK: nn.sub %[[X]], %[[MAX]]
// CHECK: tp.shard_offset of 16 over @mesh {tp}
// CHECK: nn.gather %[[X]]
// CHECK: tp.all_reduce sum %{{.*}} over @mesh {tp} {{.*}} : tensor<4x2xf32>
// CHECK: nn.reduce sum
// The batch is split too: its sum is a Partial, reduced at the end.
// CHECK: tp.all_reduce sum %{{.*}} over @mesh {dp} {{.*}} : tensor<f32>
func.func @sum(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>},
               %t: tensor<8xi64> {tp.sharding = #tp.sharding<@mesh, [{dp}]>}) -> tensor<f32> {
  %l = nn.cross_entropy sum %x, %t ignore -100 smoothing 0.0 loss_parallel : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
  return %l : tensor<f32>
}

// The same in a training step.
// CHECK-LABEL: func.func @training
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK: %[[M:.*]] = nn.reduce max %[[X]] dims [1] keepdim
// CHECK: %[[MAX:.*]] = tp.all_reduce max %[[M]] over @mesh {tp}
// CHECK: %[[BOTH:.*]] = tp.all_reduce sum %{{.*}} over @mesh {tp} {{.*}} : tensor<4x2xf32>
// CHECK: %[[SUM:.*]] = nn.slice %[[BOTH]] dim 1 start 0
// CHECK: %[[TARGET:.*]] = nn.slice %[[BOTH]] dim 1 start 1
// CHECK: %[[PICKED:.*]] = nn.sub %[[TARGET]], %[[MAX]]
// CHECK: return %[[MAX]], %[[SUM]], %[[PICKED]]
func.func @training(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>},
                    %t: tensor<8xi64> {tp.sharding = #tp.sharding<@mesh, [{dp}]>})
    -> (tensor<8x1xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}, tensor<8x1xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>},
        tensor<8x1xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) {
  %r:3 = nn.class_sums %x, %t : tensor<8x16xf32>, tensor<8xi64> -> tensor<8x1xf32>
  return %r#0, %r#1, %r#2 : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>
}

// Without it, the logits are gathered.
// CHECK-LABEL: func.func @whole
// CHECK: tp.all_gather %{{.*}} dim 1 over @mesh {tp}
// CHECK: nn.cross_entropy
func.func @whole(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, %t: tensor<8xi64>) -> tensor<f32> {
  %l = nn.cross_entropy mean %x, %t ignore -100 smoothing 0.0 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
  return %l : tensor<f32>
}
