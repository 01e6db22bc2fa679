// RUN: tp-opt %s --tp-optimize-collectives=sequence-parallel | FileCheck %s
// RUN: tp-opt %s --tp-optimize-collectives | FileCheck %s --check-prefix=OFF
// An all_reduce is split around the row-wise ops behind it.

tp.mesh @mesh(dp = 2, tp = 2)

// OFF-NOT: reduce_scatter
// OFF: tp.all_reduce sum
// OFF-NOT: reduce_scatter
// A residual stream: two reductions, two norms. The gathers take the place of halves of the reductions.
// CHECK-LABEL: func.func @stream
// CHECK-SAME: %[[X:.*]]: tensor<4x16xf32>, %[[A:.*]]: tensor<4x16xf32>
func.func @stream(%x: tensor<4x16xf32>, %a: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %g = nn.parameter "g" : tensor<16xf32>
  %up = nn.parameter "up" {tp.global_type = tensor<64x16xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<32x16xf32>
  %down = nn.parameter "down" {tp.global_type = tensor<16x64xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x32xf32>
  // CHECK: %[[S:.*]] = tp.reduce_scatter sum %[[A]] dim 0 over @mesh {tp} {bytes = 128 : i64, fqn = "attention"} : tensor<4x16xf32> -> tensor<2x16xf32>
  // CHECK-NEXT: %[[XS:.*]] = tp.local_slice %[[X]] dim 0
  // CHECK-NEXT: %[[H:.*]] = nn.add %[[XS]], %[[S]]
  // CHECK-NEXT: %[[N:.*]] = nn.rms_norm %[[H]] {{.*}} tensor<2x16xf32>
  // CHECK-NEXT: %[[G:.*]] = tp.all_gather %[[N]] dim 0 over @mesh {tp} {bytes = 128 : i64, fqn = "attention"}
  // CHECK-NEXT: %[[U:.*]] = nn.linear %[[G]]
  // CHECK-NEXT: nn.relu {{.*}} tensor<4x32xf32>
  // CHECK-NEXT: nn.linear
  // CHECK-NEXT: %[[T:.*]] = tp.reduce_scatter
  // CHECK-NEXT: %[[R:.*]] = nn.add %[[H]], %[[T]] : (tensor<2x16xf32>, tensor<2x16xf32>)
  // CHECK-NEXT: %[[O:.*]] = nn.rms_norm %[[R]]
  // CHECK-NEXT: %[[Y:.*]] = tp.all_gather %[[O]]
  // CHECK-NEXT: return %[[Y]]
  %0 = tp.all_reduce sum %a over @mesh {tp} {fqn = "attention"} : tensor<4x16xf32>
  %1 = nn.add %x, %0 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %2 = nn.rms_norm %1 weight %g over 1 eps 1.0e-5 : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %3 = nn.linear %2, %up : (tensor<4x16xf32>, tensor<32x16xf32>) -> tensor<4x32xf32>
  %4 = nn.relu %3 : tensor<4x32xf32>
  %5 = nn.linear %4, %down : (tensor<4x32xf32>, tensor<16x32xf32>) -> tensor<4x16xf32>
  %6 = tp.all_reduce sum %5 over @mesh {tp} {fqn = "mlp"} : tensor<4x16xf32>
  %7 = nn.add %1, %6 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %8 = nn.rms_norm %7 weight %g over 1 eps 1.0e-5 : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  return %8 : tensor<4x16xf32>
}

// Two values would have to be gathered where one was reduced: the second op stays whole, and the first has nothing to
// win.
// CHECK-LABEL: func.func @more_gathers
func.func @more_gathers(%a: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  // CHECK: tp.reduce_scatter
  // CHECK-NEXT: nn.relu {{.*}} tensor<2x16xf32>
  // CHECK-NEXT: tp.all_gather
  // CHECK-NEXT: nn.exp {{.*}} tensor<4x16xf32>
  // CHECK-NEXT: return
  %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<4x16xf32>
  %1 = nn.relu %0 : tensor<4x16xf32>
  %2 = nn.exp %1 : tensor<4x16xf32>
  return %1, %2 : tensor<4x16xf32>, tensor<4x16xf32>
}

// Kept: nothing runs on rows; an op over rows; rows that the group doesn't divide; an operand that differs from rank to
// rank.
// CHECK-LABEL: func.func @keep
// CHECK-NOT: tp.reduce_scatter
// CHECK: return
func.func @keep(%a: tensor<4x16xf32>, %b: tensor<3x16xf32>, %c: tensor<4x16xf32> {tp.global_type = tensor<4x32xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<3x16xf32>, tensor<4x16xf32>) {
  %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<4x16xf32>
  %n = nn.neg %a : tensor<4x16xf32>
  %1 = tp.all_reduce sum %n over @mesh {tp} : tensor<4x16xf32>
  %2 = nn.softmax %1 dim 0 : tensor<4x16xf32>
  %3 = tp.all_reduce sum %b over @mesh {tp} : tensor<3x16xf32>
  %4 = nn.relu %3 : tensor<3x16xf32>
  %m = nn.relu %n : tensor<4x16xf32>
  %5 = tp.all_reduce sum %m over @mesh {tp} : tensor<4x16xf32>
  %6 = nn.mul %5, %c : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %0, %2, %4, %6 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<3x16xf32>, tensor<4x16xf32>
}
