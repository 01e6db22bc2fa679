// Convolutions and pooling whose spatial dimensions are split: ranks exchange what windows have beyond blocks.
// RUN: tp-opt %s --tp-partition --split-input-file | FileCheck %s

// One padding is the margin behind the block; windows of three elements reach one element into the neighbors' blocks.
// CHECK-LABEL: func.func @convolution
tp.mesh @mesh(x = 2)
func.func @convolution(%x: tensor<1x3x8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {x}, {}]>}, %w: tensor<4x3x3x3xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {}, {}]>})
    -> (tensor<1x4x8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {x}, {}]>}) {
  // CHECK: %[[PADDING:.*]] = nn.constant dense<0.000000e+00> : tensor<1x3x1x6xf32>
  // CHECK: %[[BLOCK:.*]] = nn.concat %arg0, %[[PADDING]] dim 2
  // CHECK: %[[ROWS:.*]] = tp.halo %[[BLOCK]] dim 2 of 8 begin [-1, 3] over @mesh {x} {bytes = 72 : i64, reason = "nn.convolution over a split dimension"} : tensor<1x3x5x6xf32> -> tensor<1x3x6x6xf32>
  // CHECK: nn.convolution %[[ROWS]], %arg1 stride [1, 1] padding [0, 1] dilation [1, 1] : (tensor<1x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x4x6xf32>
  %0 = nn.convolution %x, %w stride [1, 1] padding [1, 1] dilation [1, 1] {tp.sharding = #tp.sharding<@mesh, [{}, {}, {x}, {}]>} : (tensor<1x3x8x6xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x6xf32>
  return %0 : tensor<1x4x8x6xf32>
}

// -----

// Two dimensions are exchanged one after the other, and the second one with what came along the first one. Of the maximum, -inf is outside.
// CHECK-LABEL: func.func @pool
tp.mesh @mesh(x = 2, y = 2)
func.func @pool(%x: tensor<3x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {x}, {y}]>})
    -> (tensor<3x4x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {x}, {y}]>}) {
  // CHECK: nn.constant dense<0xFF800000> : tensor<3x1x4xf32>
  // CHECK: %[[ROWS:.*]] = tp.halo %{{.*}} dim 1 of 8 begin [-1, 3] over @mesh {x} {{.*}}-> tensor<3x5x4xf32>
  // CHECK: %[[PADDED:.*]] = nn.concat %[[ROWS]], %{{.*}} dim 2
  // CHECK: %[[BOTH:.*]] = tp.halo %[[PADDED]] dim 2 of 8 begin [-1, 3] over @mesh {y} {{.*}}-> tensor<3x5x5xf32>
  // CHECK: nn.pool max %[[BOTH]] size [3, 3] stride [2, 2] padding [0, 0] dilation [1, 1] : tensor<3x5x5xf32> -> tensor<3x2x2xf32>
  %0 = nn.pool max %x size [3, 3] stride [2, 2] padding [1, 1] dilation [1, 1] {tp.sharding = #tp.sharding<@mesh, [{}, {x}, {y}]>} : tensor<3x8x8xf32> -> tensor<3x4x4xf32>
  return %0 : tensor<3x4x4xf32>
}

// -----

// Windows that lie side by side, in blocks of whole windows: nothing moves.
// CHECK-LABEL: func.func @side_by_side
tp.mesh @mesh(x = 2)
func.func @side_by_side(%x: tensor<3x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {x}]>})
    -> (tensor<3x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {x}]>}) {
  // CHECK-NEXT: nn.pool sum %arg0 size [2] stride [2] padding [0] dilation [1] : tensor<3x4xf32> -> tensor<3x2xf32>
  // CHECK-NEXT: return
  %0 = nn.pool sum %x size [2] stride [2] padding [0] dilation [1] {tp.sharding = #tp.sharding<@mesh, [{}, {x}]>} : tensor<3x8xf32> -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

// Blocks of 3, 3 and 1 elements, and 2, 2 and 1 windows: two programs, of the same collectives. The third rank's windows
// begin in the second one's block.
// CHECK-LABEL: func.func @uneven
tp.mesh @mesh(x = 3)
func.func @uneven(%x: tensor<2x7xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {x}]>})
    -> (tensor<2x1x5xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {x}]>}) {
  // CHECK: tp.halo %arg0 dim 1 of 7 begin [0, 2, 4] over @mesh {x} {{.*}}: tensor<2x3xf32> -> tensor<2x2xf32>
  // CHECK: nn.windows %{{.*}} stride [1] padding [0] dilation [1] outside 1.000000e+00 : tensor<2x2xf32> -> tensor<2x1x2xf32>
  // CHECK: func.func @uneven_0
  // CHECK: tp.halo %arg0 dim 1 of 7 begin [0, 2, 4] over @mesh {x} {{.*}}: tensor<2x1xf32> -> tensor<2x1xf32>
  %0 = nn.windows %x stride [1] padding [0] dilation [1] outside 1.0 {tp.sharding = #tp.sharding<@mesh, [{}, {}, {x}]>} : tensor<2x7xf32> -> tensor<2x1x5xf32>
  return %0 : tensor<2x1x5xf32>
}

// -----

// Ranks receive the windows that reach into their blocks of the sum.
// CHECK-LABEL: func.func @fold
tp.mesh @mesh(x = 2)
func.func @fold(%x: tensor<2x3x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {x}]>})
    -> (tensor<2x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {x}]>}) {
  // CHECK: %[[WINDOWS:.*]] = tp.halo %{{.*}} dim 2 of 4 begin [0, 2] over @mesh {x} {{.*}}: tensor<2x3x3xf32> -> tensor<2x3x3xf32>
  // CHECK: nn.fold %[[WINDOWS]] stride [2] padding [1] dilation [1] : tensor<2x3x3xf32> -> tensor<2x4xf32>
  %0 = nn.fold %x stride [2] padding [1] dilation [1] {tp.sharding = #tp.sharding<@mesh, [{}, {x}]>} : tensor<2x3x4xf32> -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

// The second block begins at 3, the third one at 6, and windows at multiples of two: each rank folds from such a multiple on.
// CHECK-LABEL: func.func @fold_between
tp.mesh @mesh(x = 3)
func.func @fold_between(%x: tensor<2x2x5xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {x}]>})
    -> (tensor<2x9xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {x}]>}) {
  // CHECK: %[[WINDOWS:.*]] = tp.halo %arg0 dim 2 of 5 begin [0, 1, 3] over @mesh {x}
  // CHECK: %[[SUM:.*]] = nn.fold %[[WINDOWS]] stride [2] padding [0] dilation [1] : tensor<2x2x2xf32> -> tensor<2x4xf32>
  // CHECK: %[[FIRST:.*]] = tp.shard_offset of 9 over @mesh {x}
  // CHECK: %[[START:.*]] = nn.remainder %[[FIRST]]
  // CHECK: %[[EVEN:.*]] = nn.slice %[[SUM]] dim 1 start 0 step 1 : tensor<2x4xf32> -> tensor<2x3xf32>
  // CHECK: %[[ISODD:.*]] = nn.compare eq %[[START]]
  // CHECK: %[[ODD:.*]] = nn.slice %[[SUM]] dim 1 start 1 step 1 : tensor<2x4xf32> -> tensor<2x3xf32>
  // CHECK: nn.where %[[ISODD]], %[[ODD]], %[[EVEN]]
  %0 = nn.fold %x stride [2] padding [0] dilation [1] {tp.sharding = #tp.sharding<@mesh, [{}, {x}]>} : tensor<2x2x5xf32> -> tensor<2x9xf32>
  return %0 : tensor<2x9xf32>
}
