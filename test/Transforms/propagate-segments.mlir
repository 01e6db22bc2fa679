// RUN: tp-opt %s --tp-propagate | FileCheck %s
// RUN: tp-opt %s --tp-propagate --tp-partition | FileCheck %s --check-prefix=LOCAL

// A fused query-key-value weight, each segment split on its own: what is cut out of the product is split, and nothing
// is communicated.
tp.mesh @mesh(tp = 2)

// CHECK-LABEL: func.func @fused
// LOCAL-LABEL: func.func @fused
// LOCAL-SAME: -> (tensor<4x4xf32>
func.func @fused(%x: tensor<4x6xf32>) -> (tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %w = nn.parameter "qkv" {tp.sharding = #tp.sharding<@mesh, [{tp | 8, 4, 4}, {}]>} : tensor<16x6xf32>
  // CHECK: nn.linear {{.*}}#tp.sharding<@mesh, [{}, {tp | 8, 4, 4}]>
  // LOCAL: %[[Y:.*]] = nn.linear %{{.*}} -> tensor<4x8xf32>
  %y = nn.linear %x, %w : (tensor<4x6xf32>, tensor<16x6xf32>) -> tensor<4x16xf32>
  // CHECK: nn.slice {{.*}}#tp.sharding<@mesh, [{}, {tp}]>
  // LOCAL: nn.slice %[[Y]] dim 1 start 0 step 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  %q = nn.slice %y dim 1 start 0 step 1 : tensor<4x16xf32> -> tensor<4x8xf32>
  // CHECK: nn.slice {{.*}}#tp.sharding<@mesh, [{}, {tp | 4, 4}]>
  // LOCAL: nn.slice %[[Y]] dim 1 start 4 step 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  %kv = nn.slice %y dim 1 start 8 step 1 : tensor<4x16xf32> -> tensor<4x8xf32>
  // CHECK: nn.slice {{.*}}#tp.sharding<@mesh, [{}, {tp}]>
  // LOCAL: nn.slice %{{.*}} dim 1 start 2 step 1 : tensor<4x4xf32> -> tensor<4x2xf32>
  %v = nn.slice %kv dim 1 start 4 step 1 : tensor<4x8xf32> -> tensor<4x4xf32>
  // Halves side by side are segments again.
  // CHECK: nn.concat {{.*}}#tp.sharding<@mesh, [{}, {tp | 4, 4}]>
  %vv = nn.concat %v, %v dim 1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  // LOCAL-NOT: tp.{{(all|exchange|permute)}}
  // CHECK: %[[R:.*]] = nn.add
  %r = nn.add %vv, %kv : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // Other segments take an exchange: of the operand that doesn't fit what is wished for.
  // CHECK: tp.redistribute %[[R]] to <@mesh, [{}, {tp}]>
  // CHECK-NOT: tp.redistribute
  // LOCAL: tp.exchange %{{.*}} of [4, 8] from <@mesh, [{}, {tp | 4, 4}]> to <@mesh, [{}, {tp}]>
  // LOCAL-NOT: tp.{{(all|exchange|permute)}}
  %s = nn.add %r, %q : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// The minor part of a merged dimension that is split: one segment for each index of the major part.
// CHECK-LABEL: func.func @merged
// LOCAL-LABEL: func.func @merged
func.func @merged(%x: tensor<2x8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>})
    -> (tensor<2x8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>}) {
  // CHECK: nn.reshape {{.*}}#tp.sharding<@mesh, [{tp | 8, 8}, {}]>
  %0 = nn.reshape %x : tensor<2x8x4xf32> -> tensor<16x4xf32>
  %1 = nn.relu %0 : tensor<16x4xf32>
  // CHECK-NOT: tp.redistribute
  // CHECK: nn.reshape {{.*}}#tp.sharding<@mesh, [{}, {tp}, {}]>
  %2 = nn.reshape %1 : tensor<16x4xf32> -> tensor<2x8x4xf32>
  return %2 : tensor<2x8x4xf32>
}

// 5 heads don't split over 2 ranks; nothing is exchanged only to split the 4 numbers of each.
// CHECK-LABEL: func.func @heads
// LOCAL-LABEL: func.func @heads
func.func @heads(%x: tensor<2x3x20xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>}) -> tensor<2x3x5x4xf32> {
  // LOCAL-NOT: tp.exchange
  // LOCAL: tp.all_gather %{{.*}} dim 2
  // LOCAL-NOT: tp.
  %0 = nn.reshape %x : tensor<2x3x20xf32> -> tensor<2x3x5x4xf32>
  return %0 : tensor<2x3x5x4xf32>
}

// The rows of a looked-up table are counted from where a block begins: those in segments move.
// CHECK-LABEL: func.func @table_rows
// LOCAL-LABEL: func.func @table_rows
// CHECK-NOT: nn.embedding {{.*}}partial
func.func @table_rows(%i: tensor<4xi64>) -> tensor<4x2xf32> {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp | 4, 4}, {}]>} : tensor<8x2xf32>
  %y = nn.embedding %i, %w : (tensor<4xi64>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// Every rank has all of what is added to a value in segments, and cuts its pieces: nothing is exchanged.
// CHECK-LABEL: func.func @bias
// LOCAL-LABEL: func.func @bias
func.func @bias(%x: tensor<2x8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>}, %bias: tensor<16x4xf32>)
    -> (tensor<2x8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>}) {
  %0 = nn.reshape %x : tensor<2x8x4xf32> -> tensor<16x4xf32>
  // CHECK: tp.redistribute %{{.*}} to <@mesh, [{tp | 8, 8}, {}]>
  // LOCAL-NOT: tp.exchange
  // LOCAL: tp.local_slice %{{.*}} dim 0 over @mesh {tp | 8, 8} : tensor<16x4xf32> -> tensor<8x4xf32>
  // LOCAL-NOT: tp.exchange
  %1 = nn.add %0, %bias : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  %2 = nn.reshape %1 : tensor<16x4xf32> -> tensor<2x8x4xf32>
  return %2 : tensor<2x8x4xf32>
}
