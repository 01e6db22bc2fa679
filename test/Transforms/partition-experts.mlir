// RUN: tp-opt %s --tp-partition --split-input-file | FileCheck %s

tp.mesh @mesh(ep = 2)

// Each rank sends its tokens to the ranks that have slots for them, zeros
// instead of the others, and looks its slots up among what it receives.
// CHECK-LABEL: func.func @dispatch
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x8xf32> {{.*}}, %[[S:[a-z0-9]+]]: tensor<2x8xi64>
// CHECK: %[[MARKS:.+]] = nn.scatter copy {{.*}} : (tensor<9xi64>, tensor<16xi64>, tensor<16xi64>)
// CHECK: %[[NEEDED:.+]] = tp.local_slice %{{.+}} dim 1 over @mesh {ep} : tensor<2x4xi1> -> tensor<2x2xi1>
// CHECK: %[[SENT:.+]] = nn.where {{.*}} -> tensor<2x2x8xf32>
// CHECK: %[[GOT:.+]] = tp.all_to_all %[[SENT]] split 0 concat 1 over @mesh {ep} {bytes = 66 : i64, reason = "nn.dispatch of experts", tp.sparse_rows} : tensor<2x2x8xf32> -> tensor<1x4x8xf32>
// CHECK: tp.local_slice %[[S]] dim 0 over @mesh {ep} : tensor<2x8xi64> -> tensor<1x8xi64>
// CHECK: nn.index_select %{{.+}}, %{{.+}} dim 0 : (tensor<4x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
func.func @dispatch(%x: tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{ep}, {}]>},
                    %s: tensor<2x8xi64> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>})
    -> (tensor<2x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{ep}, {}, {}]>}) {
  %0 = nn.dispatch %x to %s {tp.sharding = #tp.sharding<@mesh, [{ep}, {}, {}]>} : (tensor<4x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
  return %0 : tensor<2x8x8xf32>
}

// -----

tp.mesh @mesh(ep = 2)

// Each rank adds what it has for a token, and sends the sum to its rank.
// CHECK-LABEL: func.func @combine
// CHECK: %[[SUMS:.+]] = nn.scatter_add_rows %{{.+}}, %{{.+}} : (tensor<8xi64>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK: %[[SENT:.+]] = nn.reshape %[[SUMS]] : tensor<4x8xf32> -> tensor<1x4x8xf32>
// CHECK: %[[GOT:.+]] = tp.all_to_all %[[SENT]] split 1 concat 0 over @mesh {ep} {bytes = 66 : i64, reason = "nn.combine of experts", tp.sparse_rows} : tensor<1x4x8xf32> -> tensor<2x2x8xf32>
// CHECK: nn.reduce sum %[[GOT]] dims [0] : tensor<2x2x8xf32> -> tensor<2x8xf32>
func.func @combine(%y: tensor<2x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{ep}, {}, {}]>},
                   %s: tensor<2x8xi64> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>})
    -> (tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{ep}, {}]>}) {
  %0 = nn.combine %y from %s {tp.sharding = #tp.sharding<@mesh, [{ep}, {}]>} : (tensor<2x8x8xf32>, tensor<2x8xi64>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

tp.mesh @mesh(ep = 2)

// The parts of a grouped product: one for each rank, or all on each.
// CHECK-LABEL: func.func @products
// CHECK: nn.grouped_matmul {{.*}} : (tensor<8x8xf32>, tensor<2x8x6xf32>, tensor<3xi32>) -> tensor<8x6xf32>
// CHECK-NOT: nn.grouped_matmul
// CHECK-LABEL: func.func @whole
// CHECK-COUNT-2: nn.grouped_matmul {{.*}} : (tensor<8x8xf32>, tensor<2x8x6xf32>, tensor<3xi32>) -> tensor<8x6xf32>
// CHECK: nn.concat {{.*}} dim 0 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<16x6xf32>
func.func @products(%x: tensor<16x8xf32> {tp.sharding = #tp.sharding<@mesh, [{ep}, {}]>},
                    %w: tensor<4x8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{ep}, {}, {}]>},
                    %b: tensor<2x3xi32> {tp.sharding = #tp.sharding<@mesh, [{ep}, {}]>})
    -> (tensor<16x6xf32> {tp.sharding = #tp.sharding<@mesh, [{ep}, {}]>}) {
  %0 = nn.grouped_matmul %x, %w bounds %b {tp.sharding = #tp.sharding<@mesh, [{ep}, {}]>} : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<2x3xi32>) -> tensor<16x6xf32>
  return %0 : tensor<16x6xf32>
}

func.func @whole(%x: tensor<16x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>},
                 %w: tensor<4x8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {}]>},
                 %b: tensor<2x3xi32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>})
    -> (tensor<16x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %0 = nn.grouped_matmul %x, %w bounds %b {tp.sharding = #tp.sharding<@mesh, [{}, {}]>} : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<2x3xi32>) -> tensor<16x6xf32>
  return %0 : tensor<16x6xf32>
}
