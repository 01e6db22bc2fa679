// RUN: tp-opt %s --tp-propagate --split-input-file | FileCheck %s
// RUN: tp-opt %s --tp-parallelize --split-input-file | FileCheck %s --check-prefix=RANK

// A value that a region op passes on has one placement on all paths.

// The iteration argument of a loop: nothing moves.
// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK: nn.matmul {{.*}}{tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}
// CHECK: nn.relu {{.*}}{tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}
// CHECK: } {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}
// RANK-LABEL: func.func @loop
// RANK: scf.for {{.*}} -> (tensor<4x16xf32>) {
// RANK-NEXT: nn.matmul
// RANK-NEXT: nn.relu
// RANK-NEXT: scf.yield %{{.*}} : tensor<4x16xf32>
tp.mesh @mesh(dp = 2, tp = 2)
func.func @loop(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}, %w: tensor<16x16xf32>)
    -> (tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (tensor<8x16xf32>) {
    %y = nn.matmul %a, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %z = nn.relu %y : tensor<8x16xf32>
    scf.yield %z : tensor<8x16xf32>
  }
  return %r : tensor<8x16xf32>
}

// -----

// A value from outside a loop is redistributed outside, once.
// CHECK-LABEL: func.func @hoisted
// CHECK: %[[W:.+]] = tp.redistribute %arg1 to <@mesh, {{\[}}{}, {}]>
// CHECK: scf.for
// CHECK-NEXT: nn.matmul %{{.*}}, %[[W]]
// RANK-LABEL: func.func @hoisted
// RANK: tp.all_gather
// RANK: scf.for
// RANK-NOT: tp.all_gather
tp.mesh @mesh(dp = 2)
func.func @hoisted(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>},
                   %w: tensor<16x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (tensor<8x16xf32>) {
    %y = nn.matmul %a, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    scf.yield %y : tensor<8x16xf32>
  }
  return %r : tensor<8x16xf32>
}

// -----

// Both branches yield what the result is; what is sliced for one is sliced before.
// CHECK-LABEL: func.func @branches
// CHECK: %[[S:.+]] = tp.redistribute %arg1 to <@mesh, {{\[}}{dp}, {tp}]>
// CHECK: scf.if
// CHECK: nn.relu %[[S]] {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>}
// CHECK: } {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>}
// CHECK: tp.redistribute %{{.*}} to <@mesh, {{\[}}{dp}, {}]>
// RANK-LABEL: func.func @branches(%arg0: i1
// RANK: tp.local_slice
// RANK: scf.if %arg0 -> (tensor<4x8xf32>)
// RANK: tp.all_gather
tp.mesh @mesh(dp = 2, tp = 2)
func.func @branches(%c: i1, %x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>},
                    %y: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>})
    -> (tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) {
  %r = scf.if %c -> (tensor<8x16xf32>) {
    %z = nn.relu %x : tensor<8x16xf32>
    scf.yield %z : tensor<8x16xf32>
  } else {
    scf.yield %y : tensor<8x16xf32>
  }
  return %r : tensor<8x16xf32>
}

// -----

// Both regions of a while, and scalars beside tensors.
// CHECK-LABEL: func.func @while
// CHECK: nn.relu {{.*}}{tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}
// CHECK: tp.shardings = [#tp.sharding<@mesh, [{dp}, {}]>, #tp.sharding<@mesh, []>]
// RANK-LABEL: func.func @while
// RANK: scf.while {{.*}} : (tensor<4x16xf32>, i32) -> (tensor<4x16xf32>, i32)
// RANK: ^bb0(%{{.*}}: tensor<4x16xf32>, %{{.*}}: i32)
tp.mesh @mesh(dp = 2)
func.func @while(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}, %n: i32)
    -> (tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.while (%a = %x, %i = %n) : (tensor<8x16xf32>, i32) -> (tensor<8x16xf32>, i32) {
    %more = arith.cmpi sgt, %i, %c0 : i32
    scf.condition(%more) %a, %i : tensor<8x16xf32>, i32
  } do {
  ^bb0(%b: tensor<8x16xf32>, %j: i32):
    %y = nn.relu %b : tensor<8x16xf32>
    %k = arith.subi %j, %c1 : i32
    scf.yield %y, %k : tensor<8x16xf32>, i32
  }
  return %r#0 : tensor<8x16xf32>
}

// -----

// The sum that a loop accumulates stays Partial; it is reduced once, after the loop.
// CHECK-LABEL: func.func @accumulate
// CHECK: scf.for
// CHECK: nn.matmul {{.*}}partial = {tp: sum}
// CHECK: nn.add {{.*}}partial = {tp: sum}
// CHECK: } {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>}
// CHECK: tp.redistribute
// RANK-LABEL: func.func @accumulate
// RANK: scf.for
// RANK-NOT: tp.all_reduce
// RANK: }
// RANK: tp.all_reduce
tp.mesh @mesh(tp = 2)
func.func @accumulate(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                      %w: tensor<16x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<8x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %first = nn.matmul %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %first) -> (tensor<8x16xf32>) {
    %y = nn.matmul %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %s = nn.add %a, %y : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    scf.yield %s : tensor<8x16xf32>
  }
  return %r : tensor<8x16xf32>
}
