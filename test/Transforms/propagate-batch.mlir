// Over mesh dimensions that split the batch (tp.batch), each op that depends on it is split along it: parameters are
// gathered, not activations, however few these are, and what contracts the batch is Partial.
// RUN: split-file %s %t
// RUN: tp-opt %t/batch.mlir --tp-propagate | FileCheck %t/batch.mlir
// RUN: tp-opt %t/buffers.mlir --tp-propagate | FileCheck %t/buffers.mlir
// RUN: tp-opt %t/lost.mlir --tp-propagate | FileCheck %t/lost.mlir
// RUN: not tp-opt %t/invalid.mlir --split-input-file 2>&1 | FileCheck %t/invalid.mlir

//--- batch.mlir
tp.mesh @mesh(dp = 4, tp = 2)

// Without tp.batch the four rows of 8 elements would be gathered, and not the weight of 16 x 8.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: tp.batch
// CHECK: tp.redistribute %{{.*}} to <@mesh, [{tp}, {}]> {{.*}} : tensor<16x8xf32>
// CHECK: nn.linear {{.*}}tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>
// CHECK: nn.outer_sum {{.*}}tp.sharding = #tp.sharding<@mesh, [{tp}, {}], partial = {dp: sum}>
func.func @rows(%x: tensor<4x8xf32> {tp.batch = ["dp"], tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) -> tensor<16x8xf32> {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp, dp}, {}]>} : tensor<16x8xf32>
  %0 = nn.linear %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %1 = nn.outer_sum %0, %x : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
  return %1 : tensor<16x8xf32>
}

// Through a transpose, a merge with a minor dimension, and a call.
// CHECK-LABEL: func.func @through
// CHECK: nn.transpose {{.*}}tp.sharding = #tp.sharding<@mesh, [{}, {dp}, {}]>
// CHECK: nn.reshape {{.*}}tp.sharding = #tp.sharding<@mesh, [{}, {dp}]>
// CHECK: call @scale
// CHECK-LABEL: func.func private @scale
// CHECK-SAME: tp.sharding = #tp.sharding<@mesh, [{}, {dp}]>
func.func @through(%x: tensor<4x3x8xf32> {tp.batch = ["dp"], tp.sharding = #tp.sharding<@mesh, [{dp}, {}, {}]>}) -> tensor<3x32xf32> {
  %0 = nn.transpose %x [1, 0, 2] : tensor<4x3x8xf32> -> tensor<3x4x8xf32>
  %1 = nn.reshape %0 : tensor<3x4x8xf32> -> tensor<3x32xf32>
  %2 = call @scale(%1) : (tensor<3x32xf32>) -> tensor<3x32xf32>
  return %2 : tensor<3x32xf32>
}
func.func private @scale(%x: tensor<3x32xf32>) -> tensor<3x32xf32> {
  %w = nn.parameter "scale" {tp.sharding = #tp.sharding<@mesh, [{dp}]>} : tensor<32xf32>
  %0 = nn.mul %x, %w : (tensor<3x32xf32>, tensor<32xf32>) -> tensor<3x32xf32>
  return %0 : tensor<3x32xf32>
}

// Behind a major dimension the batch is split in each of its segments.
// CHECK-LABEL: func.func @sequence_first
// CHECK: nn.reshape {{.*}}tp.sharding = #tp.sharding<@mesh, [{dp | 4, 4, 4}, {{.*}}]>
// CHECK: nn.linear {{.*}}tp.sharding = #tp.sharding<@mesh, [{dp | 4, 4, 4}, {{.*}}]>
// CHECK: nn.reshape {{.*}}tp.sharding = #tp.sharding<@mesh, [{}, {dp}, {{.*}}]>
func.func @sequence_first(%x: tensor<3x4x8xf32> {tp.batch = ["dp"], tp.sharding = #tp.sharding<@mesh, [{}, {dp}, {}]>}) -> tensor<3x4x16xf32> {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>} : tensor<16x8xf32>
  %0 = nn.reshape %x : tensor<3x4x8xf32> -> tensor<12x8xf32>
  %1 = nn.linear %0, %w : (tensor<12x8xf32>, tensor<16x8xf32>) -> tensor<12x16xf32>
  %2 = nn.reshape %1 : tensor<12x16xf32> -> tensor<3x4x16xf32>
  return %2 : tensor<3x4x16xf32>
}

// Over all of the mesh dimension: over a part of it, each two ranks would compute the same.
// CHECK-LABEL: func.func @part
// CHECK-NOT: tp.redistribute %arg0
// CHECK: nn.exp %arg0 {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}
// CHECK: nn.tanh %arg0 {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}
func.func @part(%x: tensor<4x8xf32> {tp.batch = ["dp"], tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp:(1)2}, {}]>}, tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp:(1)2}, {}]>}) {
  %0 = nn.exp %x : tensor<4x8xf32>
  %1 = nn.tanh %x : tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

//--- buffers.mlir
tp.mesh @mesh(dp = 2)

// A cache that is written for each example stays with it. Other buffers that are written are whole over the batch's mesh
// dimensions, although splitting them would compute less.
// CHECK-LABEL: func.func @buffers
// CHECK: nn.parameter "cache" frozen {tp.buffer, tp.sharding = #tp.sharding<@mesh, [{dp}, {}, {}]>}
// CHECK: nn.parameter "mean" frozen {tp.buffer, tp.sharding = #tp.sharding<@mesh, [{}]>}
// CHECK-NOT: tp.redistribute %{{.*}} : tensor<4x16x8xf32>
// CHECK: nn.scatter copy {{.*}}tp.sharding = #tp.sharding<@mesh, [{dp}, {}, {}]>
// CHECK-NOT: tp.redistribute %{{.*}} : tensor<4x16x8xf32>
// CHECK: nn.assign "cache"
// CHECK: nn.assign "mean"
func.func @buffers(%x: tensor<4x1x8xf32> {tp.batch = ["dp"], tp.sharding = #tp.sharding<@mesh, [{dp}, {}, {}]>}, %at: tensor<1xi64>)
    -> tensor<4x8xf32> {
  %old = nn.parameter "cache" frozen {tp.buffer} : tensor<4x16x8xf32>
  %mean = nn.parameter "mean" frozen {tp.buffer} : tensor<8xf32>
  %new = nn.scatter copy %old, %at, %x dim 1 : (tensor<4x16x8xf32>, tensor<1xi64>, tensor<4x1x8xf32>)
  nn.assign "cache", %new init 0.0 : tensor<4x16x8xf32>
  %own = nn.reduce mean %x dims [0, 1] : tensor<4x1x8xf32> -> tensor<8xf32>
  %sum = nn.add %mean, %own : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  nn.assign "mean", %sum init 0.0 : tensor<8xf32>
  %0 = nn.reduce max %new dims [1] : tensor<4x16x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

//--- lost.mlir
tp.mesh @mesh(dp = 2)

// Ops that can't be split along the batch run otherwise: three examples of five rows aren't even blocks of fifteen.
// CHECK-LABEL: func.func @uneven
// CHECK: tp.redistribute %{{.*}} to <@mesh, [{}, {}]> {{.*}}nn.reshape needs operand 0
// CHECK: nn.reshape
func.func @uneven(%x: tensor<3x5xf32> {tp.batch = ["dp"], tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) -> tensor<15xf32> {
  %0 = nn.reshape %x : tensor<3x5xf32> -> tensor<15xf32>
  %1 = nn.relu %0 : tensor<15xf32>
  return %1 : tensor<15xf32>
}

// A slice of the batch isn't the batch.
// CHECK-LABEL: func.func @slice
// CHECK: nn.slice
// CHECK: nn.relu {{.*}}tp.sharding = #tp.sharding<@mesh, [{}, {}]>
func.func @slice(%x: tensor<4x5xf32> {tp.batch = ["dp"], tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) -> tensor<1x5xf32> {
  %0 = nn.slice %x dim 0 start 0 step 1 : tensor<4x5xf32> -> tensor<1x5xf32>
  %1 = nn.relu %0 : tensor<1x5xf32>
  return %1 : tensor<1x5xf32>
}

//--- invalid.mlir
tp.mesh @mesh(dp = 2, tp = 2)
// CHECK: error: 'func.func' op attribute 'tp.batch': names of mesh dimensions are expected, found 0 : i64
func.func @number(%x: tensor<4xf32> {tp.batch = 0, tp.sharding = #tp.sharding<@mesh, [{dp}]>}) { return }
// -----
tp.mesh @mesh(dp = 2, tp = 2)
// CHECK: error: 'func.func' op attribute 'tp.batch': 'tp' splits nothing in the argument's 'tp.sharding'
func.func @other(%x: tensor<4xf32> {tp.batch = ["tp"], tp.sharding = #tp.sharding<@mesh, [{dp}]>}) { return }
// -----
tp.mesh @mesh(dp = 2, tp = 2)
// CHECK: error: 'func.func' op attribute 'tp.batch': 'tp' splits dimension 1, and 'dp' dimension 0
func.func @two(%x: tensor<4x4xf32> {tp.batch = ["dp", "tp"], tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>}) { return }
