// RUN: tp-opt %s --tp-create-entry-point --split-input-file | FileCheck %s

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
// CHECK-SAME: %[[X:.+]]: memref<8x4xf32> {tp.name = "x", tprt.role = "input"},
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

// -----

// Five rows over two ranks are three and two. The programs get the same arguments,
// also where one of them has no use for a parameter. A fused weight of two segments
// has a piece of each.

// CHECK: inputs = [{dtype = "f32", name = "x", placements = ["Shard(0)"], shape = array<i64: 5>, shards = {{\[}}[array<i64: 0, 3>], [array<i64: 3, 2>]]}]
// CHECK-SAME: parameters = [{{{.*}}name = "fused"{{.*}}shards = {{\[}}[array<i64: 0, 2, 4, 1>], [array<i64: 2, 2, 5, 1>]]}, {{{.*}}name = "scale"
tp.mesh @mesh(tp = 2)

// CHECK: func.func @long(%{{.+}}: index {{.*}}memref<3xf32> {{.*}}"input"}, %{{.+}}: memref<3xf32> {{.*}}"parameter"}, %{{.+}}: memref<f32> {{.*}}"parameter"}, %{{.+}}: memref<3xf32> {{.*}}"output"})
// CHECK-SAME: tp.ranks = array<i64: 0>
func.func @long(%x: tensor<3xf32> {tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{tp}]>, tp.global_type = tensor<5xf32>})
    -> (tensor<3xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>, tp.global_type = tensor<5xf32>})
    attributes {tp.ranks = array<i64: 0>} {
  %w = nn.parameter "fused" {tp.sharding = #tp.sharding<@mesh, [{tp | 4, 2}]>, tp.global_type = tensor<6xf32>} : tensor<3xf32>
  %0 = nn.add %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK: func.func @short(%{{.+}}: index {{.*}}memref<2xf32> {{.*}}"input"}, %{{.+}}: memref<3xf32> {{.*}}"parameter"}, %{{.+}}: memref<f32> {{.*}}"parameter"}, %{{.+}}: memref<2xf32> {{.*}}"output"})
// CHECK-SAME: tp.ranks = array<i64: 1>
func.func @short(%x: tensor<2xf32> {tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{tp}]>, tp.global_type = tensor<5xf32>})
    -> (tensor<2xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>, tp.global_type = tensor<5xf32>})
    attributes {tp.ranks = array<i64: 1>} {
  %s = nn.parameter "scale" : tensor<f32>
  %0 = nn.mul %x, %s : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// A parameter that is assigned is written where it is read, and the manifest says so.

// CHECK: parameters = [{dtype = "f32", {{.*}}name = "w", {{.*}}updated = true}, {dtype = "f32", init = 0.000000e+00 : f64, {{.*}}name = "optimizer.momentum.w"{{.*}}updated = true}, {dtype = "f32", {{.*}}name = "v"
// CHECK-NOT: updated
// CHECK: func.func @update(%{{.*}}: index {{.*}}, %[[W:.*]]: memref<2xf32> {tprt.role = "parameter"}, %[[M:.*]]: memref<2xf32> {tprt.role = "parameter"}, %{{.*}}: memref<2xf32> {tprt.role = "parameter"}
// CHECK: %[[WT:.*]] = bufferization.to_tensor %[[W]] restrict writable
// CHECK: %[[MT:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK: %[[W1:.*]] = nn.sub %[[WT]], %[[M1:.*]]
// CHECK: %[[WRITTEN:.*]] = bufferization.materialize_in_destination %[[W1]] in %[[WT]]
// CHECK: bufferization.materialize_in_destination %[[WRITTEN]] in restrict writable %[[W]]
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[M]]
// CHECK-NOT: nn.assign
func.func @update() {
  %w = nn.parameter "w" : tensor<2xf32>
  %m = nn.parameter "optimizer.momentum.w" frozen : tensor<2xf32>
  %v = nn.parameter "v" : tensor<2xf32>
  %m1 = nn.add %m, %v : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %w1 = nn.sub %w, %m1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  nn.assign "w", %w1 : tensor<2xf32>
  nn.assign "optimizer.momentum.w", %m1 init 0.0 : tensor<2xf32>
  return
}
