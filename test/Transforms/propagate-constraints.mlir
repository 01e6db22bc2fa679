// RUN: tp-opt %s --tp-propagate --split-input-file | FileCheck %s
// RUN: tp-opt %s --verify-roundtrip --split-input-file -o /dev/null

// A constraint spreads in both directions.
// CHECK-LABEL: func.func @spread
// CHECK: %[[S:.+]] = tp.redistribute %arg0 to <@mesh, {{\[}}{dp}, {}]>
// CHECK: nn.relu %[[S]] {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}
// CHECK-NEXT: nn.exp {{.*}}{tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}
tp.mesh @mesh(dp = 2, tp = 2)
func.func @spread(%x: tensor<8x16xf32>) -> (tensor<8x16xf32> {tp.open}) {
  %0 = nn.relu %x : tensor<8x16xf32>
  %1 = tp.constraint %0 to <@mesh, [{dp}, {}]> : tensor<8x16xf32>
  %2 = nn.exp %1 : tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// -----

// Dimensions are closed unless they are opened: only then the weight's split of tp may spread.
// CHECK-LABEL: func.func @closed
// CHECK: tp.redistribute %{{.*}} to <@mesh, {{\[}}{dp}, {}]> {{.*}}reason = "tp.constraint"
tp.mesh @mesh(dp = 2, tp = 2)
func.func @closed(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>})
    -> (tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>}) {
  %1 = tp.constraint %x to <@mesh, [{dp}, {}]> : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// -----

// CHECK-LABEL: func.func @open
// CHECK-NEXT: return %arg0
tp.mesh @mesh(dp = 2, tp = 2)
func.func @open(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>})
    -> (tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>}) {
  %1 = tp.constraint %x to <@mesh, [{dp}, {}]> open [1] : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// -----

// Parts of a mesh dimension that don't divide: nothing splits further, the constraint stands as it is.
// CHECK-LABEL: func.func @open_uneven_part
// CHECK: tp.redistribute %{{.*}} to <@mesh, {{\[}}{tp:(1)2}, {}]> {{.*}}reason = "tp.constraint"
tp.mesh @mesh(tp = 4)
func.func @open_uneven_part(%x: tensor<3x8xf32>) -> (tensor<3x8xf32> {tp.open}) {
  %1 = tp.constraint %x to <@mesh, [{tp:(1)2}, {}]> open [1] : tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}

// -----

// A result that is open is split or whole, as is cheapest: a program gives whole values, not terms of sums. Nor does it take
// them.
// CHECK-LABEL: func.func @open_sum
// CHECK-SAME: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{{[^=]*}}]>}) ->
// CHECK-SAME: (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
// CHECK: nn.linear {{.*}}partial = {tp: sum}
// CHECK: tp.redistribute %{{.*}} to <@mesh, {{\[}}{tp}, {}]>
tp.mesh @mesh(tp = 4)
func.func @open_sum(%x: tensor<8x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                    %w: tensor<8x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                    %y: tensor<8x8xf32> {tp.open}) -> (tensor<8x8xf32> {tp.open}) {
  %0 = nn.linear %x, %w : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x8xf32>
  %1 = nn.add %0, %y : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// Decisions of a smaller priority stand: the matmul runs split along dp's rows, though the columns are asked for
// later.
// CHECK-LABEL: func.func @first_rows
// CHECK: nn.add {{.*}}{tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}
// CHECK: tp.redistribute %{{.*}} to <@mesh, {{\[}}{}, {tp}]>
tp.mesh @mesh(tp = 2)
func.func @first_rows(%x: tensor<8x8xf32> {tp.open}, %y: tensor<8x8xf32> {tp.open}) -> (tensor<8x8xf32> {tp.open}) {
  %a = tp.constraint %x to <@mesh, [{tp}, {}]> : tensor<8x8xf32>
  %b = tp.constraint %y to <@mesh, [{}, {tp}]> priority 1 : tensor<8x8xf32>
  %s = nn.add %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = tp.constraint %s to <@mesh, [{}, {tp}]> priority 1 : tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// -----

// CHECK-LABEL: func.func @first_columns
// CHECK: nn.add {{.*}}{tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}
tp.mesh @mesh(tp = 2)
func.func @first_columns(%x: tensor<8x8xf32> {tp.open}, %y: tensor<8x8xf32> {tp.open}) -> (tensor<8x8xf32> {tp.open}) {
  %a = tp.constraint %x to <@mesh, [{tp}, {}]> priority 1 : tensor<8x8xf32>
  %b = tp.constraint %y to <@mesh, [{}, {tp}]> : tensor<8x8xf32>
  %s = nn.add %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = tp.constraint %s to <@mesh, [{tp}, {}]> priority 1 : tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// -----

// Nothing spreads through a barrier: the rest runs replicated.
// CHECK-LABEL: func.func @barrier
// CHECK: nn.relu {{.*}}[{tp}, {}]
// CHECK: tp.redistribute %{{.*}} to <@mesh, {{\[}}{}, {}]> {{.*}}reason = "tp.propagation_barrier"
// CHECK: nn.exp {{.*}}[{}, {}]
tp.mesh @mesh(tp = 2)
func.func @barrier(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<8x8xf32> {tp.open}) {
  %0 = nn.relu %x : tensor<8x8xf32>
  %1 = tp.propagation_barrier %0 : tensor<8x8xf32>
  %2 = nn.exp %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// CHECK-LABEL: func.func @backward_only
// CHECK-NOT: tp.redistribute
// CHECK: nn.exp {{.*}}[{tp}, {}]
tp.mesh @mesh(tp = 2)
func.func @backward_only(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<8x8xf32> {tp.open}) {
  %0 = nn.relu %x : tensor<8x8xf32>
  %1 = tp.propagation_barrier %0 backward : tensor<8x8xf32>
  %2 = nn.exp %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// Decisions stand where they no longer spread to: the argument was split for the sum, and is gathered for
// the constraint that comes after.
// CHECK-LABEL: func.func @stands
// CHECK-SAME: %arg1: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) ->
// CHECK: tp.redistribute %arg1 to <@mesh, {{\[}}{}, {}]>
// CHECK: nn.add {{.*}}{tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}
tp.mesh @mesh(tp = 2)
func.func @stands(%x: tensor<8x8xf32> {tp.open}, %y: tensor<8x8xf32> {tp.open}) -> (tensor<8x8xf32> {tp.open}) {
  %a = tp.constraint %x to <@mesh, [{tp}, {}]> : tensor<8x8xf32>
  %b = tp.constraint %y to <@mesh, [{}, {}]> priority 1 : tensor<8x8xf32>
  %s = nn.add %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %s : tensor<8x8xf32>
}
