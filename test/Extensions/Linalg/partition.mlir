// RUN: tp-opt %s --tp-partition | FileCheck %s
// RUN: tp-opt %s --tp-partition --mlir-print-op-generic | tp-opt | FileCheck %s

tp.mesh @mesh(tp = 2)

// An initial value counts on one rank only.
// CHECK-LABEL: func.func @once
// CHECK-SAME: %[[A:.*]]: tensor<8x2xf32> {{.*}}, %[[B:.*]]: tensor<2x6xf32> {{.*}}, %[[INIT:.*]]: tensor<8x6xf32> {
func.func @once(%a: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                %b: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                %init: tensor<8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  // CHECK: %[[INDEX:.*]] = tp.shard_offset of 2 over @mesh {tp} : tensor<i64>
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq
  // CHECK: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : tensor<8x6xf32>
  // CHECK: %[[ONCE:.*]] = arith.select %[[FIRST]], %[[INIT]], %[[ZEROS]] : tensor<8x6xf32>
  // CHECK: linalg.matmul ins(%[[A]], %[[B]] : tensor<8x2xf32>, tensor<2x6xf32>) outs(%[[ONCE]] : tensor<8x6xf32>)
  %0 = linalg.matmul {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
      ins(%a, %b : tensor<8x4xf32>, tensor<4x6xf32>) outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %1 = tp.redistribute %0 to <@mesh, [{}, {}]> : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// A maximum with the initial value is the same, however often that is in it.
// CHECK-LABEL: func.func @often
// CHECK-SAME: %[[X:.*]]: tensor<8x3xf32> {{.*}}, %[[INIT:.*]]: tensor<8xf32> {
func.func @often(%x: tensor<8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                 %init: tensor<8xf32> {tp.sharding = #tp.sharding<@mesh, [{}]>})
    -> (tensor<8xf32> {tp.sharding = #tp.sharding<@mesh, [{}]>}) {
  // CHECK-NEXT: %[[M:.*]] = linalg.reduce { arith.maximumf } ins(%[[X]] : tensor<8x3xf32>) outs(%[[INIT]] : tensor<8xf32>)
  // CHECK-NEXT: tp.all_reduce max %[[M]]
  %0 = linalg.reduce { arith.maximumf } ins(%x : tensor<8x6xf32>) outs(%init : tensor<8xf32>) dimensions = [1]
      {tp.sharding = #tp.sharding<@mesh, [{}], partial = {tp: max}>}
  %1 = tp.redistribute %0 to <@mesh, [{}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// linalg.index counts along the whole.
// CHECK-LABEL: func.func @index
func.func @index(%x: tensor<8x6xi64> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<8x6xi64> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  // CHECK: %[[FIRST:.*]] = tp.shard_offset of 8 over @mesh {tp} : tensor<i64>
  // CHECK: %[[SCALAR:.*]] = tensor.extract %[[FIRST]][]
  // CHECK: %[[OFFSET:.*]] = arith.index_cast %[[SCALAR]] : i64 to index
  // CHECK: linalg.generic
  // CHECK: %[[I:.*]] = linalg.index 0 : index
  // CHECK-NEXT: %[[WHOLE:.*]] = arith.addi %[[I]], %[[OFFSET]] : index
  // CHECK-NEXT: %[[J:.*]] = linalg.index 1 : index
  // CHECK-NEXT: arith.addi %[[WHOLE]], %[[J]] : index
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%x : tensor<8x6xi64>) attrs = {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.addi %i, %j : index
    %n = arith.index_cast %s : index to i64
    linalg.yield %n : i64
  } -> tensor<8x6xi64>
  return %0 : tensor<8x6xi64>
}

// In segments, each has an offset of its own.
// CHECK-LABEL: func.func @index_in_segments
func.func @index_in_segments(%x: tensor<8xi64> {tp.sharding = #tp.sharding<@mesh, [{tp|2, 6}]>})
    -> (tensor<8xi64> {tp.sharding = #tp.sharding<@mesh, [{tp|2, 6}]>}) {
  // CHECK: tp.shard_offset of 2 over
  // CHECK: tp.shard_offset of 6 over
  // CHECK: linalg.generic
  // CHECK: %[[I:.*]] = linalg.index 0 : index
  // CHECK: %[[BEGIN:.*]] = arith.constant 1 : index
  // CHECK: %[[PAST:.*]] = arith.cmpi sge, %[[I]], %[[BEGIN]] : index
  // CHECK: arith.select %[[PAST]]
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%x : tensor<8xi64>) attrs = {tp.sharding = #tp.sharding<@mesh, [{tp|2, 6}]>} {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    linalg.yield %n : i64
  } -> tensor<8xi64>
  return %0 : tensor<8xi64>
}
