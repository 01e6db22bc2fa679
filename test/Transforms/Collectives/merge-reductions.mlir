// RUN: tp-opt %s --tp-optimize-collectives | FileCheck %s
// RUN: tp-opt %s --tp-optimize-collectives --remarks-filter='tp-.*' --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK
// Sums are taken once, where they are smallest.

tp.mesh @mesh(dp = 2, tp = 2)

// The gradients of a value that three projections use.
// REMARK: remark: [Passed] MergeReductions {{.*}}3 all_reduce become one
// CHECK-LABEL: func.func @three
// CHECK-SAME: %[[A:.*]]: tensor<8x16xf32>, %[[B:.*]]: tensor<8x16xf32>, %[[C:.*]]: tensor<8x16xf32>
func.func @three(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>, %c: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // CHECK-NEXT: %[[AB:.*]] = nn.add %[[A]], %[[B]]
  // CHECK-NEXT: %[[ABC:.*]] = nn.add %[[AB]], %[[C]]
  // CHECK-NEXT: %[[R:.*]] = tp.all_reduce sum %[[ABC]] over @mesh {tp} {bytes = 512 : i64, fqn = "q, k, v", reason = "r; s"}
  // CHECK-NEXT: return %[[R]]
  %0 = tp.all_reduce sum %a over @mesh {tp} {bytes = 512 : i64, fqn = "q", reason = "r"} : tensor<8x16xf32>
  %1 = tp.all_reduce sum %b over @mesh {tp} {bytes = 512 : i64, fqn = "k", reason = "s"} : tensor<8x16xf32>
  %2 = nn.add %0, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = tp.all_reduce sum %c over @mesh {tp} {bytes = 512 : i64, fqn = "v", reason = "r"} : tensor<8x16xf32>
  %4 = nn.add %2, %3 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %4 : tensor<8x16xf32>
}

// Through what is linear in one operand.
// CHECK-LABEL: func.func @through
func.func @through(%a: tensor<8x16xf32>, %b: tensor<2x4x16xf32>) -> tensor<2x4x16xf32> {
  // CHECK: nn.reshape
  // CHECK-NEXT: nn.neg
  // CHECK-NEXT: nn.sub
  // CHECK-NEXT: tp.all_reduce
  // CHECK-NEXT: return
  %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<8x16xf32>
  %1 = tp.all_reduce sum %b over @mesh {tp} : tensor<2x4x16xf32>
  %2 = nn.reshape %0 : tensor<8x16xf32> -> tensor<2x4x16xf32>
  %3 = nn.neg %1 : tensor<2x4x16xf32>
  %4 = nn.sub %2, %3 : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  return %4 : tensor<2x4x16xf32>
}

// Down through a product whose result is smaller: the weight is the same on all ranks.
// CHECK-LABEL: func.func @smaller
func.func @smaller(%x: tensor<8x16xf32>) -> tensor<8x2xf32> {
  %w = nn.parameter "w" : tensor<2x16xf32>
  // CHECK: %[[Y:.*]] = nn.linear %arg0
  // CHECK-NEXT: tp.all_reduce sum %[[Y]] over @mesh {tp} {bytes = 64 : i64}
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x16xf32>
  %1 = nn.linear %0, %w : (tensor<8x16xf32>, tensor<2x16xf32>) -> tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}

// Not where the weight differs from rank to rank: it would be another product.
// CHECK-LABEL: func.func @split_weight
func.func @split_weight(%x: tensor<8x16xf32>) -> (tensor<8x2xf32>, tensor<8x2xf32>) {
  %w = nn.parameter "w" {tp.global_type = tensor<4x16xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<2x16xf32>
  %v = nn.parameter "v" {tp.global_type = tensor<4x16xf32>, tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>} : tensor<2x16xf32>
  // CHECK: %[[S:.*]] = tp.all_reduce sum %arg0
  // CHECK: nn.linear %[[S]]
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x16xf32>
  %1 = nn.linear %0, %w : (tensor<8x16xf32>, tensor<2x16xf32>) -> tensor<8x2xf32>
  // Along another mesh dimension it may differ.
  // CHECK: nn.linear
  // CHECK-NEXT: tp.all_reduce
  %n = nn.neg %x : tensor<8x16xf32>
  %2 = tp.all_reduce sum %n over @mesh {tp} : tensor<8x16xf32>
  %3 = nn.linear %2, %v : (tensor<8x16xf32>, tensor<2x16xf32>) -> tensor<8x2xf32>
  return %1, %3 : tensor<8x2xf32>, tensor<8x2xf32>
}

// Terms that aren't Partial are added to the sum: a residual and biases beside it, scaled as the sum is.
// CHECK-LABEL: func.func @residual
// CHECK-SAME: %[[X:.*]]: tensor<8x16xf32>, %[[A:.*]]: tensor<8x16xf32>, %[[B:.*]]: tensor<8x16xf32>, %[[P:.*]]: tensor<16xf32>
func.func @residual(%x: tensor<8x16xf32>, %a: tensor<8x16xf32>, %b: tensor<8x16xf32>, %p: tensor<16xf32>) -> tensor<8x16xf32> {
  // CHECK: %[[HALF:.*]] = nn.mul %[[A]], %{{.*}}
  // CHECK: %[[SUM:.*]] = nn.sub %[[HALF]], %[[B]]
  // CHECK: %[[R:.*]] = tp.all_reduce sum %[[SUM]]
  // CHECK: %[[XP:.*]] = nn.add %[[X]], %[[P]]
  // CHECK: %[[XH:.*]] = nn.mul %[[XP]], %{{.*}}
  // CHECK: %[[WHOLE:.*]] = nn.add %[[XH]], %[[R]]
  // CHECK-NEXT: return %[[WHOLE]]
  %h = nn.constant dense<0.5> : tensor<f32>
  %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<8x16xf32>
  %1 = nn.add %0, %p : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %2 = nn.add %x, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = nn.mul %2, %h : (tensor<8x16xf32>, tensor<f32>) -> tensor<8x16xf32>
  %4 = tp.all_reduce sum %b over @mesh {tp} : tensor<8x16xf32>
  %5 = nn.sub %3, %4 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %5 : tensor<8x16xf32>
}

// The same where each rank keeps its rows; the residual has as many. Through a transpose they are columns.
// CHECK-LABEL: func.func @scattered
// CHECK-SAME: %[[X:.*]]: tensor<16x4xf32>, %[[A:.*]]: tensor<8x16xf32>, %[[B:.*]]: tensor<8x16xf32>
func.func @scattered(%x: tensor<16x4xf32>, %a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> tensor<16x4xf32> {
  // CHECK-NEXT: %[[AT:.*]] = nn.transpose %[[A]] [1, 0] : tensor<8x16xf32> -> tensor<16x8xf32>
  // CHECK-NEXT: %[[BT:.*]] = nn.transpose %[[B]] [1, 0] : tensor<8x16xf32> -> tensor<16x8xf32>
  // CHECK-NEXT: %[[SUM:.*]] = nn.add %[[AT]], %[[BT]] {{.*}} -> tensor<16x8xf32>
  // CHECK-NEXT: %[[R:.*]] = tp.reduce_scatter sum %[[SUM]] dim 1 {{.*}} -> tensor<16x4xf32>
  // CHECK-NEXT: nn.add %[[X]], %[[R]]
  %0 = tp.reduce_scatter sum %a dim 0 over @mesh {tp} : tensor<8x16xf32> -> tensor<4x16xf32>
  %1 = nn.transpose %0 [1, 0] : tensor<4x16xf32> -> tensor<16x4xf32>
  %2 = nn.add %x, %1 : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  %3 = tp.reduce_scatter sum %b dim 0 over @mesh {tp} : tensor<8x16xf32> -> tensor<4x16xf32>
  %4 = nn.transpose %3 [1, 0] : tensor<4x16xf32> -> tensor<16x4xf32>
  %5 = nn.add %2, %4 : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  return %5 : tensor<16x4xf32>
}

// Not through a product twice: what is whole would be multiplied by itself, for one reduction less.
// CHECK-LABEL: func.func @product
func.func @product(%x: tensor<8x16xf32>, %a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %w = nn.parameter "w2" : tensor<16x16xf32>
  // CHECK: tp.all_reduce sum %[[A]]
  // CHECK: nn.linear
  // CHECK: tp.all_reduce sum %[[B]]
  %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<8x16xf32>
  %1 = nn.add %x, %0 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = nn.linear %1, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %3 = tp.all_reduce sum %b over @mesh {tp} : tensor<8x16xf32>
  %4 = nn.add %2, %3 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %4 : tensor<8x16xf32>
}

// Nothing is won: a result of the same size, a larger one, one that isn't linear, a sum that is used elsewhere, another
// group, another reduction, another operand that counts once.
// CHECK-LABEL: func.func @keep
func.func @keep(%x: tensor<8x16xf32>, %b: tensor<16xf32>) -> (tensor<128xf32>, tensor<4x8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) {
  // CHECK: tp.all_reduce
  // CHECK-NEXT: nn.reshape
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x16xf32>
  %1 = nn.reshape %0 : tensor<8x16xf32> -> tensor<128xf32>
  // CHECK: tp.all_reduce
  // CHECK-NEXT: nn.broadcast
  %n = nn.neg %x : tensor<8x16xf32>
  %2 = tp.all_reduce sum %n over @mesh {tp} : tensor<8x16xf32>
  %3 = nn.broadcast %2 : tensor<8x16xf32> -> tensor<4x8x16xf32>
  // CHECK: %[[P:.*]] = tp.all_reduce
  // CHECK: %[[Q:.*]] = tp.all_reduce
  // CHECK: nn.mul %[[P]], %[[Q]]
  %n1 = nn.neg %n : tensor<8x16xf32>
  %n2 = nn.neg %n1 : tensor<8x16xf32>
  %4 = tp.all_reduce sum %n1 over @mesh {tp} : tensor<8x16xf32>
  %5 = tp.all_reduce sum %n2 over @mesh {tp} : tensor<8x16xf32>
  %6 = nn.mul %4, %5 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: %[[P:.*]] = tp.all_reduce
  // CHECK: %[[Q:.*]] = tp.all_reduce
  // CHECK: nn.add %[[P]], %[[Q]]
  %n3 = nn.neg %n2 : tensor<8x16xf32>
  %n4 = nn.neg %n3 : tensor<8x16xf32>
  %7 = tp.all_reduce sum %n3 over @mesh {tp} : tensor<8x16xf32>
  %8 = tp.all_reduce sum %n4 over @mesh {tp} : tensor<8x16xf32>
  %9 = nn.add %7, %8 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: %[[P:.*]] = tp.all_reduce {{.*}} {tp}
  // CHECK: %[[Q:.*]] = tp.all_reduce {{.*}} {dp}
  // CHECK: nn.add %[[P]], %[[Q]]
  %n5 = nn.neg %n4 : tensor<8x16xf32>
  %n6 = nn.neg %n5 : tensor<8x16xf32>
  %10 = tp.all_reduce sum %n5 over @mesh {tp} : tensor<8x16xf32>
  %11 = tp.all_reduce sum %n6 over @mesh {dp} : tensor<8x16xf32>
  %12 = nn.add %10, %11 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: %[[P:.*]] = tp.all_reduce sum
  // CHECK: %[[Q:.*]] = tp.all_reduce max
  // CHECK: nn.add %[[P]], %[[Q]]
  %13 = tp.all_reduce sum %n6 over @mesh {tp} : tensor<8x16xf32>
  %14 = tp.all_reduce max %n6 over @mesh {tp} : tensor<8x16xf32>
  %15 = nn.add %13, %14 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: %[[P:.*]] = tp.all_reduce
  // CHECK-NEXT: nn.add %[[P]], %arg1
  %n7 = nn.neg %n6 : tensor<8x16xf32>
  %16 = tp.all_reduce sum %n7 over @mesh {tp} : tensor<8x16xf32>
  %17 = nn.add %16, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  return %1, %3, %6, %9, %7, %12, %15, %17 : tensor<128xf32>, tensor<4x8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
}

// By the additions that the tree has; here the zero is of the operands' shape.
// CHECK-LABEL: func.func @upstream
// CHECK-SAME: %[[X:.*]]: tensor<8xindex>, %[[A:.*]]: tensor<8xindex>, %[[B:.*]]: tensor<8xindex>
func.func @upstream(%x: tensor<8xindex>, %a: tensor<8xindex>, %b: tensor<8xindex>) -> tensor<8xindex> {
  // CHECK-NEXT: %[[ZERO:.*]] = arith.constant dense<0> : tensor<8xindex>
  // CHECK-NEXT: %[[NEG:.*]] = arith.subi %[[ZERO]], %[[A]] : tensor<8xindex>
  // CHECK-NEXT: %[[AB:.*]] = arith.addi %[[NEG]], %[[B]] : tensor<8xindex>
  // CHECK-NEXT: %[[R:.*]] = tp.all_reduce sum %[[AB]]
  // CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[X]], %[[R]] : tensor<8xindex>
  // CHECK-NEXT: return %[[SUM]]
  %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<8xindex>
  %1 = tp.all_reduce sum %b over @mesh {tp} : tensor<8xindex>
  %2 = arith.subi %x, %0 : tensor<8xindex>
  %3 = arith.addi %2, %1 : tensor<8xindex>
  return %3 : tensor<8xindex>
}

// Where no addition is known, the negated sum is taken away.
// CHECK-LABEL: func.func @differences
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>, %[[A:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>
func.func @differences(%x: tensor<8xf32>, %a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: %[[AB:.*]] = arith.subf %[[A]], %[[B]] : tensor<8xf32>
  // CHECK: %[[NEG:.*]] = arith.subf %{{.*}}, %[[AB]] : tensor<8xf32>
  // CHECK-NEXT: %[[R:.*]] = tp.all_reduce sum %[[NEG]]
  // CHECK: %[[W:.*]] = arith.subf %{{.*}}, %[[X]] : tensor<8xf32>
  // CHECK-NEXT: %[[SUM:.*]] = arith.subf %[[W]], %[[R]] : tensor<8xf32>
  // CHECK-NEXT: return %[[SUM]]
  %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<8xf32>
  %1 = tp.all_reduce sum %b over @mesh {tp} : tensor<8xf32>
  %2 = arith.subf %0, %x : tensor<8xf32>
  %3 = arith.subf %2, %1 : tensor<8xf32>
  return %3 : tensor<8xf32>
}
