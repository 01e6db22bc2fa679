// RUN: tp-opt %s --tp-partition | FileCheck %s

tp.mesh @mesh(tp = 2)

// Shapes and offsets in attributes are the rank's.
// CHECK-LABEL: func.func @shapes
// CHECK-SAME: %[[X:.*]]: tensor<4x12xf32>
func.func @shapes(%x: tensor<8x12xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<8x3x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>}) {
  // CHECK: tensor.expand_shape %[[X]] {{\[\[}}0], [1, 2]] output_shape [4, 3, 4] : tensor<4x12xf32> into tensor<4x3x4xf32>
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [8, 3, 4] {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>} : tensor<8x12xf32> into tensor<8x3x4xf32>
  return %0 : tensor<8x3x4xf32>
}

// CHECK-LABEL: func.func @parts
// CHECK-SAME: %[[X:.*]]: tensor<8x6xf32>
func.func @parts(%x: tensor<8x12xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp|4, 8}]>})
    -> (tensor<8x12xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp|8, 4}]>}) {
  // CHECK: %[[A:.*]] = tensor.extract_slice %[[X]][0, 0] [8, 2] [1, 1] : tensor<8x6xf32> to tensor<8x2xf32>
  %a = tensor.extract_slice %x[0, 0][8, 4][1, 1] {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<8x12xf32> to tensor<8x4xf32>
  // CHECK: %[[B:.*]] = tensor.extract_slice %[[X]][0, 2] [8, 4] [1, 1] : tensor<8x6xf32> to tensor<8x4xf32>
  %b = tensor.extract_slice %x[0, 4][8, 8][1, 1] {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<8x12xf32> to tensor<8x8xf32>
  // CHECK: tensor.concat dim(1) %[[B]], %[[A]] : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<8x6xf32>
  %c = tensor.concat dim(1) %b, %a {tp.sharding = #tp.sharding<@mesh, [{}, {tp|8, 4}]>} : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x12xf32>
  return %c : tensor<8x12xf32>
}

// CHECK-LABEL: func.func @insert
// CHECK-SAME: %[[Y:.*]]: tensor<8x2xf32> {{.*}}, %[[X:.*]]: tensor<8x6xf32>
func.func @insert(%y: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                  %x: tensor<8x12xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp|8, 4}]>})
    -> (tensor<8x12xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp|8, 4}]>}) {
  // CHECK: tensor.insert_slice %[[Y]] into %[[X]][0, 4] [8, 2] [1, 1] : tensor<8x2xf32> into tensor<8x6xf32>
  %0 = tensor.insert_slice %y into %x[0, 8][8, 4][1, 1] {tp.sharding = #tp.sharding<@mesh, [{}, {tp|8, 4}]>} : tensor<8x4xf32> into tensor<8x12xf32>
  return %0 : tensor<8x12xf32>
}

// CHECK-LABEL: func.func @dim
func.func @dim(%x: tensor<8x12xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<1xi64> {tp.sharding = #tp.sharding<@mesh, [{}]>}) {
  %c0 = arith.constant {tp.sharding = #tp.sharding<@mesh, []>} 0 : index
  // CHECK: %[[SIZE:.*]] = arith.constant 8 : index
  %d = tensor.dim {tp.sharding = #tp.sharding<@mesh, []>} %x, %c0 : tensor<8x12xf32>
  // CHECK: arith.index_cast %[[SIZE]]
  %i = arith.index_cast %d {tp.sharding = #tp.sharding<@mesh, []>} : index to i64
  %0 = tensor.from_elements %i {tp.sharding = #tp.sharding<@mesh, [{}]>} : tensor<1xi64>
  return %0 : tensor<1xi64>
}

// The body gets indices in the whole.
// CHECK-LABEL: func.func @generate
func.func @generate() -> (tensor<8xi64> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}) {
  // CHECK: tp.shard_offset of 8 over @mesh {tp}
  // CHECK: %[[OFFSET:.*]] = arith.index_cast
  // CHECK: tensor.generate {
  // CHECK-NEXT: ^bb0(%[[I:.*]]: index):
  // CHECK-NEXT: %[[WHOLE:.*]] = arith.addi %[[I]], %[[OFFSET]] : index
  // CHECK-NEXT: arith.index_cast %[[WHOLE]]
  // CHECK: } : tensor<4xi64>
  %0 = tensor.generate {
  ^bb0(%i: index):
    %n = arith.index_cast %i : index to i64
    tensor.yield %n : i64
  } {tp.sharding = #tp.sharding<@mesh, [{tp}]>} : tensor<8xi64>
  return %0 : tensor<8xi64>
}
