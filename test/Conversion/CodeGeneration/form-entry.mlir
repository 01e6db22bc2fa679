// RUN: tp-opt %s --tp-form-entry | FileCheck %s

// Two ranks: x is whole, w is split by rows, the result by columns. The parameter
// is used twice and becomes one argument.

// CHECK: module attributes {tprt.manifest = {
// CHECK-SAME: inputs = [{dtype = "f32", name = "x", placements = ["Replicate"], shape = array<i64: 8, 4>, shards = {{\[}}[array<i64: 0, 8>, array<i64: 0, 4>], [array<i64: 0, 8>, array<i64: 0, 4>]]}]
// CHECK-SAME: mesh = {axes = [{name = "tp", size = 2 : i64}], name = "mesh"}
// CHECK-SAME: outputs = [{dtype = "f32", name = "result0", placements = ["Shard(1)"], shape = array<i64: 8, 6>, shards = {{\[}}[array<i64: 0, 8>, array<i64: 0, 3>], [array<i64: 0, 8>, array<i64: 3, 3>]]}]
// CHECK-SAME: parameters = [{dtype = "f32", name = "w", placements = ["Shard(0)"], shape = array<i64: 6, 4>, shards = {{\[}}[array<i64: 0, 3>, array<i64: 0, 4>], [array<i64: 3, 3>, array<i64: 0, 4>]]}]
// CHECK-SAME: world_size = 2 : i64
tp.mesh @mesh(tp = 2)

// CHECK: func.func @main(%{{.+}}: index {tprt.role = "rank"},
// CHECK-SAME: %[[X:.+]]: memref<8x4xf32> {tprt.role = "input"},
// CHECK-SAME: %[[W:.+]]: memref<3x4xf32> {tprt.role = "parameter"},
// CHECK-SAME: %[[OUT:.+]]: memref<8x3xf32> {tprt.role = "output"}) {
// CHECK-DAG: %[[XT:.+]] = bufferization.to_tensor %[[X]] restrict
// CHECK-DAG: %[[WT:.+]] = bufferization.to_tensor %[[W]] restrict
// CHECK: nn.linear %[[XT]], %[[WT]]
// CHECK: nn.linear %[[XT]], %[[WT]]
// CHECK: %[[Y:.+]] = nn.add
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[OUT]]
// CHECK: return{{$}}
func.func @main(%x: tensor<8x4xf32> {tp.name = "x"})
    -> (tensor<8x3xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<8x6xf32>}) {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<6x4xf32>} : tensor<3x4xf32>
  %0 = nn.linear %x, %w : (tensor<8x4xf32>, tensor<3x4xf32>) -> tensor<8x3xf32>
  %w2 = nn.parameter "w" {tp.fqn = "second", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<6x4xf32>} : tensor<3x4xf32>
  %1 = nn.linear %x, %w2 : (tensor<8x4xf32>, tensor<3x4xf32>) -> tensor<8x3xf32>
  %2 = nn.add %0, %1 : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
  return %2 : tensor<8x3xf32>
}
