// A redistribution over some mesh dimensions leaves the others as they are.
// RUN: tp-opt %s --tp-propagate | FileCheck %s

tp.mesh @mesh(dp = 2, tp = 2)

// Both split one dimension: in the order of the mesh.
// CHECK-LABEL: func.func @nest
func.func @nest(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp, tp}, {}]>}) {
  // CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{dp, tp}, {}]> : tensor
  %0 = tp.redistribute %x to <@mesh, [{dp}, {}]> over {dp} : tensor<8x8xf32>
  // CHECK-NEXT: return
  return %0 : tensor<8x8xf32>
}

// The batch stays split when the columns are gathered.
// CHECK-LABEL: func.func @keep
func.func @keep(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>})
    -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) {
  // CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{dp}, {}]> : tensor
  %0 = tp.redistribute %x to <@mesh, [{}, {}]> over {tp} : tensor<8x8xf32>
  // CHECK-NEXT: return
  return %0 : tensor<8x8xf32>
}

// Two that look the same are about different dimensions; both are one gather.
// CHECK-LABEL: func.func @both
func.func @both(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>}) -> tensor<8x8xf32> {
  // CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]>
  // CHECK-NEXT: return
  %0 = tp.redistribute %x to <@mesh, [{}, {}]> over {tp} : tensor<8x8xf32>
  %1 = tp.redistribute %0 to <@mesh, [{}, {}]> over {dp} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Nor does the wish for a split along tp ask for the batch.
// CHECK-LABEL: func.func @wish
func.func @wish(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>}) {
  // CHECK: %[[S:.+]] = tp.redistribute %{{.+}} to <@mesh, {{\[}}{dp}, {tp}]>
  // CHECK: nn.relu %[[S]] {tp.sharding = #tp.sharding<@mesh, {{\[}}{dp}, {tp}]>}
  %0 = nn.relu %x : tensor<8x8xf32>
  %1 = tp.redistribute %0 to <@mesh, [{}, {tp}]> over {tp} {reason = "the plan"} : tensor<8x8xf32>
  // CHECK-NEXT: return
  return %1 : tensor<8x8xf32>
}
