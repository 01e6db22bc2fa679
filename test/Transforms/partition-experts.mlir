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

tp.mesh @mesh(dp = 2, ep = 2, cp = 2)

// Groups of tokens have slots of their own. Ranks of one group exchange tokens.
// CHECK-LABEL: func.func @groups
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x8xf32> {{.*}}, %[[S:[a-z0-9]+]]: tensor<8x6xi64>
// CHECK: %[[ALL:.+]] = nn.reshape %[[S]] : tensor<8x6xi64> -> tensor<2x2x2x6xi64>
// CHECK: %[[MAJOR:.+]] = tp.local_slice %[[ALL]] dim 0 over @mesh {dp} : tensor<2x2x2x6xi64> -> tensor<1x2x2x6xi64>
// CHECK: %[[OWN:.+]] = tp.local_slice %[[MAJOR]] dim 2 over @mesh {cp} : tensor<1x2x2x6xi64> -> tensor<1x2x1x6xi64>
// CHECK: tp.all_to_all {{.*}} over @mesh {ep} {{.*}} : tensor<2x2x8xf32> -> tensor<1x4x8xf32>
// CHECK: tp.local_slice %[[OWN]] dim 1 over @mesh {ep} : tensor<1x2x1x6xi64> -> tensor<1x1x1x6xi64>
func.func @groups(%x: tensor<16x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp, ep, cp}, {}]>},
                  %s: tensor<8x6xi64> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x6x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp, ep, cp}, {}, {}]>}) {
  %0 = nn.dispatch %x to %s {groups = array<i64: 2, 2>, tp.sharding = #tp.sharding<@mesh, [{dp, ep, cp}, {}, {}]>} : (tensor<16x8xf32>, tensor<8x6xi64>) -> tensor<8x6x8xf32>
  return %0 : tensor<8x6x8xf32>
}

// The minor part of a group may be whole: a slot's token is found among those
// of two groups.
// CHECK-LABEL: func.func @some
// CHECK-NOT: tp.all_to_all
// CHECK: nn.floor_div
// CHECK: tp.all_to_all {{.*}} over @mesh {ep} {{.*}} : tensor<2x4x8xf32> -> tensor<1x8x8xf32>
func.func @some(%x: tensor<16x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp, ep}, {}]>},
                %s: tensor<8x6xi64> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x6x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp, ep}, {}, {}]>}) {
  %0 = nn.dispatch %x to %s {groups = array<i64: 2, 2>, tp.sharding = #tp.sharding<@mesh, [{dp, ep}, {}, {}]>} : (tensor<16x8xf32>, tensor<8x6xi64>) -> tensor<8x6x8xf32>
  return %0 : tensor<8x6x8xf32>
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
