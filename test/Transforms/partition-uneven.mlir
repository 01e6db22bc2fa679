// RUN: tp-opt %s --tp-propagate --tp-partition | FileCheck %s
// RUN: tp-opt %s --tp-parallelize | FileCheck %s --check-prefix=OPTIMIZED

// Blocks of 10 rows over 4 ranks are 3, 3, 3 and 1: two programs, with the same collectives.
tp.mesh @mesh(tp = 4)

// CHECK-LABEL: func.func @rows(
// CHECK-SAME: tensor<3x4xf32> {tp.global_type = tensor<10x4xf32>
// CHECK-SAME: tp.ranks = array<i64: 0, 1, 2>
// CHECK: nn.relu %{{.*}} : tensor<3x4xf32>
// CHECK: tp.all_gather %{{.*}} dim 0 over @mesh {tp} {bytes = 112 : i64{{.*}} : tensor<3x4xf32> -> tensor<10x4xf32>
// CHECK-LABEL: func.func @rows_0(
// CHECK-SAME: tensor<1x4xf32> {tp.global_type = tensor<10x4xf32>
// CHECK-SAME: tp.copy_of = @rows, tp.ranks = array<i64: 3>
// CHECK: nn.relu %{{.*}} : tensor<1x4xf32>
// CHECK: tp.all_gather %{{.*}} dim 0 over @mesh {tp} {bytes = 144 : i64{{.*}} : tensor<1x4xf32> -> tensor<10x4xf32>
func.func @rows(%x: tensor<10x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<10x4xf32> {
  %0 = nn.relu %x : tensor<10x4xf32>
  return %0 : tensor<10x4xf32>
}

// 5 over 4 ranks: 2, 2, 1, 0. A rank without rows of the table contributes nothing.
// CHECK-LABEL: func.func @table(
// CHECK-SAME: tp.ranks = array<i64: 0, 1>
// CHECK: tp.shard_offset of 5 over @mesh {tp}
// CHECK: nn.embedding %{{.*}} : (tensor<3xi64>, tensor<2x4xf32>)
// CHECK-LABEL: func.func @table_{{.*}}tp.copy_of = @table, tp.ranks = array<i64: 2>
// CHECK-LABEL: func.func @table_{{.*}}tp.ranks = array<i64: 3>
// CHECK-NOT: nn.embedding
// CHECK: nn.constant dense<0.000000e+00> : tensor<3x4xf32>
func.func @table(%ids: tensor<3xi64>) -> tensor<3x4xf32> {
  %w = nn.parameter "table" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<5x4xf32>
  %0 = nn.embedding %ids, %w : (tensor<3xi64>, tensor<5x4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// Two tables without rows on rank 3 have the same zeros there, and still two reductions, as on other ranks.
// OPTIMIZED-LABEL: func.func @tables_1
// OPTIMIZED-SAME: tp.ranks = array<i64: 3>
// OPTIMIZED-COUNT-2: tp.all_reduce sum
func.func @tables(%a: tensor<3xi64>, %b: tensor<3xi64>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %w = nn.parameter "table" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<5x4xf32>
  %0 = nn.embedding %a, %w : (tensor<3xi64>, tensor<5x4xf32>) -> tensor<3x4xf32>
  %1 = nn.embedding %b, %w : (tensor<3xi64>, tensor<5x4xf32>) -> tensor<3x4xf32>
  return %0, %1 : tensor<3x4xf32>, tensor<3x4xf32>
}

// Rank 3 has no rows to look up, and gathers the indices for the others all the same.
// OPTIMIZED-LABEL: func.func @gathered_1
// OPTIMIZED-SAME: tp.ranks = array<i64: 3>
// OPTIMIZED: tp.all_gather
// OPTIMIZED: tp.all_reduce
func.func @gathered(%ids: tensor<8xi64> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}) -> tensor<8x4xf32> {
  %w = nn.parameter "table" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<5x4xf32>
  %0 = nn.embedding %ids, %w : (tensor<8xi64>, tensor<5x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
