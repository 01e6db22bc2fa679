// RUN: tp-opt %s --tp-flatten-control-flow --split-input-file | FileCheck %s

tp.mesh @mesh(tp = 2)

// CHECK-LABEL: func.func @loop
func.func @loop(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  // CHECK: %[[A:.*]] = tp.all_reduce
  // CHECK: %[[B:.*]] = math.exp %[[A]]
  // CHECK: %[[C:.*]] = tp.all_reduce sum %[[B]]
  // CHECK: %[[D:.*]] = math.exp %[[C]]
  // CHECK-NOT: scf
  // CHECK: return %[[D]]
  %0 = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %x) -> tensor<8xf32> {
    %s = tp.all_reduce sum %a over @mesh {tp} : tensor<8xf32>
    %e = math.exp %s : tensor<8xf32>
    scf.yield %e : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// Both branches are run, so that no rank waits for another.
// CHECK-LABEL: func.func @branch
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>, %[[C:.*]]: i1
func.func @branch(%x: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  // CHECK-NEXT: %[[S:.*]] = tp.all_reduce sum %[[X]]
  // CHECK-NEXT: %[[R:.*]] = arith.select %[[C]], %[[S]], %[[X]] : tensor<8xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = scf.if %c -> tensor<8xf32> {
    %s = tp.all_reduce sum %x over @mesh {tp} : tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  } else {
    scf.yield %x : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// A branch may start collectives, and wait for them.
// CHECK-LABEL: func.func @branch_that_starts
func.func @branch_that_starts(%x: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  // CHECK-NEXT: %[[P:.*]] = tp.start {
  // CHECK: %[[E:.*]] = math.exp
  // CHECK-NEXT: %[[S:.*]] = tp.wait %[[P]]
  // CHECK: arith.select
  %0 = scf.if %c -> tensor<8xf32> {
    %p = tp.start {
      %s = tp.all_reduce sum %x over @mesh {tp} : tensor<8xf32>
      tp.yield %s : tensor<8xf32>
    } : !tp.pending<tensor<8xf32>>
    %e = math.exp %x : tensor<8xf32>
    %s = tp.wait %p : !tp.pending<tensor<8xf32>>
    %r = arith.addf %e, %s : tensor<8xf32>
    scf.yield %r : tensor<8xf32>
  } else {
    scf.yield %x : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// Loops over scalars are no part of the program.
// CHECK-LABEL: func.func @body
func.func @body(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%x : tensor<8xf32>) {
  ^bb0(%in: f32):
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %in) -> f32 {
      %s = arith.addf %a, %a : f32
      scf.yield %s : f32
    }
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
