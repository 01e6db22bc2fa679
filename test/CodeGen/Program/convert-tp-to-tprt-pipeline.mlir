// RUN: tp-opt %s --convert-tp-to-tprt --split-input-file --verify-diagnostics | FileCheck %s

// The stages' collectives are in one list, each with the ranks that take part. A transfer has one entry, the receiver's.
// CHECK: tprt.manifest = {collectives = [
// CHECK-SAME: {axes = ["tp"], bytes_by_rank = array<i64: 16, 16, 0, 0>, {{[^}]*}}groups = [array<i64: 0, 1>], kind = "all_reduce", operand_shapes = [array<i64: 4>, array<i64: 4>, array<i64: 0>, array<i64: 0>]
// CHECK-SAME: {axes = ["pp"], bytes_by_rank = array<i64: 0, 0, 16, 16>, {{[^}]*}}groups = [array<i64: 0, 2>, array<i64: 1, 3>], kind = "transfer", operand_shapes = [array<i64: 4>, array<i64: 4>, array<i64: 0>, array<i64: 0>]
// CHECK-SAME: result_shapes = [array<i64: 0>, array<i64: 0>, array<i64: 4>, array<i64: 4>], root = 0 : i64, source = array<i64>, split_dim = 0 : i64, started = true, transfers = {{.*}}, [{dst = array<i64: 0>, from = 0 : i64, size = array<i64: 4>, src = array<i64: 0>}], {{.*}}from = 1 : i64,
// CHECK-SAME: {axes = ["tp"], {{[^}]*}}groups = [array<i64: 2, 3>], kind = "all_reduce"
// CHECK-NOT: tp.pipeline
tp.mesh @mesh(pp = 2, tp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
// CHECK-LABEL: func.func @main
// CHECK: tprt.collective 0
// CHECK: tprt.collective_start 1
// CHECK: tprt.collective_wait 1
func.func @main(%rank: index {tprt.role = "rank"}, %x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0, 1>, tp.stage = 0 : i64} {
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  %p = tp.start {
    %1 = tp.transfer %0 from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
    tp.yield %1 : tensor<0xf32>
  } : !tp.pending<tensor<0xf32>>
  %2 = tp.wait %p : !tp.pending<tensor<0xf32>>
  return
}
// CHECK-LABEL: func.func @main_stage1
// CHECK: tprt.collective 1
// CHECK: tprt.collective 2
func.func @main_stage1(%rank: index {tprt.role = "rank"}, %e: tensor<0xf32>) -> tensor<4xf32> attributes {tp.ranks = array<i64: 2, 3>, tp.stage = 1 : i64, tp.stage_of = @main} {
  %0 = tp.transfer %e from 0 to 1 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  %1 = tp.all_reduce sum %0 over @mesh {tp} : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @main(%rank: index {tprt.role = "rank"}, %x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  // expected-error@+1 {{sends a value that no stage receives}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}
func.func @main_stage1(%rank: index {tprt.role = "rank"}) attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @main} {
  return
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @main(%rank: index {tprt.role = "rank"}) attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  return
}
func.func @main_stage1(%rank: index {tprt.role = "rank"}, %e: tensor<0xf32>) attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @main} {
  // expected-error@+1 {{receives a value that no stage sends}}
  %0 = tp.transfer %e from 0 to 1 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  return
}
