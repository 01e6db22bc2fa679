// RUN: tp-opt %s --tp-propagate=latency-bytes=0 | FileCheck %s

tp.mesh @mesh(tp = 2)

// An assigned value gets the parameter's placement: a Partial gradient of a replicated parameter is all-reduced, one of
// a split parameter reduce-scattered.
// CHECK-LABEL: func.func @update
// CHECK: %[[G:.*]] = nn.outer_sum {{.*}}partial = {tp: sum}
// CHECK: %[[R:.*]] = tp.redistribute %[[G]] to <@mesh, [{}, {}]>
// CHECK: %[[A:.*]] = nn.sub %{{.*}}, %[[R]]
// CHECK: nn.assign "w", %[[A]]
// CHECK: %[[S:.*]] = tp.redistribute %{{.*}} to <@mesh, [{tp}, {}]>
// CHECK: %[[B:.*]] = nn.sub %{{.*}}, %[[S]]
// CHECK: nn.assign "v", %[[B]]
func.func @update(%g: tensor<64x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                  %x: tensor<64x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {}]>} : tensor<8x6xf32>
  %0 = nn.outer_sum %g, %x : (tensor<64x8xf32>, tensor<64x6xf32>) -> tensor<8x6xf32>
  %1 = nn.sub %w, %0 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  nn.assign "w", %1 : tensor<8x6xf32>
  %v = nn.parameter "v" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<6x8xf32>
  %2 = nn.outer_sum %x, %g : (tensor<64x6xf32>, tensor<64x8xf32>) -> tensor<6x8xf32>
  %3 = nn.sub %v, %2 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  nn.assign "v", %3 : tensor<6x8xf32>
  return
}
