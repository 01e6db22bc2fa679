// The assertions of PyTorch's test_pointwise_ops.py, test_embedding_ops.py, test_tensor_ops.py and test_view_ops.py.
// RUN: tp-opt %s --tp-parallelize | FileCheck %s --implicit-check-not=tp.all_ --implicit-check-not=tp.reduce_scatter --implicit-check-not=tp.exchange --implicit-check-not=tp.permute
// RUN: tp-opt %s --tp-propagate | FileCheck %s --check-prefix=PLACED

tp.mesh @mesh(tp = 4)

// Partial + Partial: Partial.
// CHECK-LABEL: func.func @partial_plus_partial
// PLACED-LABEL: func.func @partial_plus_partial
// PLACED: nn.add {{.*}}partial = {tp: sum}
// CHECK: nn.add
// CHECK: tp.all_reduce sum
func.func @partial_plus_partial(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  %a = tp.from_local %l as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %0 = nn.add %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// Partial + Replicate: reduced before, where DTensor divides the other by the number of ranks; 1 collective either way.
// CHECK-LABEL: func.func @partial_plus_whole
// CHECK: tp.all_reduce sum
// CHECK: nn.add
// CHECK: return
func.func @partial_plus_whole(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  %a = tp.from_local %l as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %0 = nn.add %a, %y : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// Partial * Partial: one of them is reduced, the product is Partial.
// CHECK-LABEL: func.func @partial_times_partial
// PLACED-LABEL: func.func @partial_times_partial
// PLACED: nn.mul {{.*}}partial = {tp: sum}
// CHECK: tp.all_reduce sum
// CHECK: nn.mul
// CHECK: tp.all_reduce sum
func.func @partial_times_partial(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  %a = tp.from_local %l as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %m = tp.to_local %y as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  %b = tp.from_local %m as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %0 = nn.mul %a, %b : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// Partial * Replicate: Partial. A maximum that is Partial isn't: it is reduced first.
// CHECK-LABEL: func.func @partial_times_whole
// PLACED-LABEL: func.func @partial_times_whole
// PLACED: nn.mul {{.*}}partial = {tp: sum}
// CHECK: nn.mul
// CHECK: tp.all_reduce sum
func.func @partial_times_whole(%x: tensor<8x4xf32>, %s: tensor<f32>) -> tensor<8x4xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  %a = tp.from_local %l as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %0 = nn.mul %a, %s : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @max_times_whole
// CHECK: tp.all_reduce max
// CHECK: nn.mul
// CHECK: return
func.func @max_times_whole(%x: tensor<8x4xf32>, %s: tensor<f32>) -> tensor<8x4xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  %a = tp.from_local %l as <@mesh, [{}, {}], partial = {tp: max}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %0 = nn.mul %a, %s : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// A table split by columns, unevenly: none. Split by rows: Partial, 1.
// CHECK-LABEL: func.func @embedding_columns
// PLACED-LABEL: func.func @embedding_columns
// PLACED: nn.embedding {{.*}}[{}, {}, {tp}]
// CHECK: return
func.func @embedding_columns(%ids: tensor<8x2xi64>, %w: tensor<17x12xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8x2x12xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>}) {
  %0 = nn.embedding %ids, %w : (tensor<8x2xi64>, tensor<17x12xf32>) -> tensor<8x2x12xf32>
  return %0 : tensor<8x2x12xf32>
}

// CHECK-LABEL: func.func @embedding_columns_uneven
// PLACED-LABEL: func.func @embedding_columns_uneven
// PLACED: nn.embedding {{.*}}[{}, {}, {tp}]
// CHECK: return %{{.*}} : tensor<8x2x3xf32>
// CHECK-LABEL: func.func @embedding_columns_uneven_0
// CHECK: return %{{.*}} : tensor<8x2x2xf32>
func.func @embedding_columns_uneven(%ids: tensor<8x2xi64>, %w: tensor<21x11xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8x2x11xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>}) {
  %0 = nn.embedding %ids, %w : (tensor<8x2xi64>, tensor<21x11xf32>) -> tensor<8x2x11xf32>
  return %0 : tensor<8x2x11xf32>
}

// CHECK-LABEL: func.func @embedding_rows(
// PLACED-LABEL: func.func @embedding_rows(
// PLACED: nn.embedding {{.*}}partial = {tp: sum}
// CHECK: tp.all_reduce sum
// CHECK-LABEL: func.func @embedding_rows_0
// CHECK: tp.all_reduce sum
func.func @embedding_rows(%ids: tensor<8x2xi64>) -> tensor<8x2x13xf32> {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<23x13xf32>
  %0 = nn.embedding %ids, %w : (tensor<8x2xi64>, tensor<23x13xf32>) -> tensor<8x2x13xf32>
  return %0 : tensor<8x2x13xf32>
}

// Views that keep the split dimension: none.
// CHECK-LABEL: func.func @views
// PLACED-LABEL: func.func @views
// PLACED: nn.reshape {{.*}}[{tp}, {}, {}]
// PLACED: nn.transpose {{.*}}[{}, {tp}, {}]
// PLACED: nn.broadcast {{.*}}[{}, {}, {tp}, {}]
// CHECK: return
func.func @views(%x: tensor<8x12xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<2x3x8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}, {}]>}) {
  %0 = nn.reshape %x : tensor<8x12xf32> -> tensor<8x3x4xf32>
  %1 = nn.transpose %0 [1, 0, 2] : tensor<8x3x4xf32> -> tensor<3x8x4xf32>
  %2 = nn.broadcast %1 : tensor<3x8x4xf32> -> tensor<2x3x8x4xf32>
  return %2 : tensor<2x3x8x4xf32>
}

// The split dimension into two, and two into one: the major one stays split.
// CHECK-LABEL: func.func @view_split
// PLACED-LABEL: func.func @view_split
// PLACED: nn.reshape {{.*}}[{}, {tp}, {}]
// PLACED: nn.reshape {{.*}}[{}, {tp}]
// CHECK: return
func.func @view_split(%x: tensor<6x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<6x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %0 = nn.reshape %x : tensor<6x16xf32> -> tensor<6x4x4xf32>
  %1 = nn.reshape %0 : tensor<6x4x4xf32> -> tensor<6x16xf32>
  return %1 : tensor<6x16xf32>
}

// A minor dimension into one with its major: DTensor's _StridedShard, segments here.
// CHECK-LABEL: func.func @view_flatten
// PLACED-LABEL: func.func @view_flatten
// PLACED: nn.reshape {{.*}}[{tp | 8, 8}]
// CHECK: return
func.func @view_flatten(%x: tensor<2x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp | 8, 8}]>}) {
  %0 = nn.reshape %x : tensor<2x8xf32> -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// An uneven dimension can't be split into two where it is: DTensor refuses this ("Cannot unflatten unevenly sharded
// tensor"), here it is gathered, which report.json shows.
// CHECK-LABEL: func.func @view_uneven
// CHECK: tp.all_gather
// CHECK-LABEL: func.func @view_uneven_0
// CHECK: tp.all_gather
func.func @view_uneven(%x: tensor<6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}) -> tensor<2x3xf32> {
  %0 = nn.reshape %x : tensor<6xf32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
