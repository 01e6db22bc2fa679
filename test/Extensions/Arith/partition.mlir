// RUN: tp-opt %s --tp-partition | FileCheck %s

tp.mesh @mesh(tp = 2)

// Each rank's block of a constant.
// CHECK-LABEL: func.func @constants
func.func @constants() -> (tensor<4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}, tensor<4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>},
                           tensor<4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp|2, 2}]>}) {
  // CHECK: %[[SPLAT:.*]] = arith.constant dense<1.000000e+00> : tensor<2xf32>
  %0 = arith.constant {tp.sharding = #tp.sharding<@mesh, [{tp}]>} dense<1.0> : tensor<4xf32>
  // CHECK: %[[WHOLE:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
  // CHECK: %[[BLOCK:.*]] = tp.local_slice %[[WHOLE]] dim 0 over @mesh {tp} : tensor<4xf32> -> tensor<2xf32>
  %1 = arith.constant {tp.sharding = #tp.sharding<@mesh, [{tp}]>} dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  // A piece of each segment.
  // CHECK: tensor.extract_slice %{{.*}}[0] [2] [1]
  // CHECK: %[[A:.*]] = tp.local_slice
  // CHECK: tensor.extract_slice %{{.*}}[2] [2] [1]
  // CHECK: %[[B:.*]] = tp.local_slice
  // CHECK: %[[BOTH:.*]] = tensor.concat dim(0) %[[A]], %[[B]]
  %2 = arith.constant {tp.sharding = #tp.sharding<@mesh, [{tp|2, 2}]>} dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  // CHECK: return %[[SPLAT]], %[[BLOCK]], %[[BOTH]]
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A replicated term counts once.
// CHECK-LABEL: func.func @once
// CHECK-SAME: %[[X:.*]]: tensor<4xf32> {{.*}}, %[[Y:.*]]: tensor<4xf32>
func.func @once(%x: tensor<4xf32> {tp.sharding = #tp.sharding<@mesh, [{}], partial = {tp: sum}>},
                %y: tensor<4xf32> {tp.sharding = #tp.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {tp.sharding = #tp.sharding<@mesh, [{}], partial = {tp: sum}>}) {
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq
  // CHECK: %[[ONCE:.*]] = arith.select %[[FIRST]], %[[Y]], %{{.*}} : tensor<4xf32>
  // CHECK: arith.addf %[[X]], %[[ONCE]] : tensor<4xf32>
  %0 = arith.addf %x, %y {tp.sharding = #tp.sharding<@mesh, [{}], partial = {tp: sum}>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
