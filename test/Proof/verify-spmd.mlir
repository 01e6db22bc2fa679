// The programs of all ranks against the model that they are made from, as they are and with faults planted.
//
// RUN: tp-opt %s --tp-parallelize -o %t.mlir
// RUN: tp-opt %t.mlir --tp-verify-spmd="reference=%s report=%t.json always-execute" -o /dev/null 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=JSON --input-file %t.json

// DEFINE: %{verify} = tp-opt %t.bad.mlir --tp-verify-spmd=reference=%s -o /dev/null

// CHECK: remark: 'row_parallel' is proven for 4 ranks: 4 ops by rule (0 more as parts of them), 1 movements by block algebra
// CHECK: remark: 'row_parallel' is executed for 4 ranks on {{[0-9]+}} inputs, in {{[0-9]+}} scalar operations: all results are the blocks of the reference's
// CHECK: remark: 'gathered' is proven
// A masked lookup is made of many ops.
// CHECK: remark: 'table' is proven for 4 ranks: 2 ops by rule (18 more as parts of them), 1 movements by block algebra
// CHECK: remark: 'fused' is proven
// Two programs.
// CHECK: remark: 'uneven' is proven

// JSON: "functions": [
// JSON: "executed_operations": {{[1-9][0-9]*}}
// JSON: "function": "row_parallel"
// JSON: "helper_ops": 0
// JSON: "inputs": {{[1-9][0-9]*}}
// JSON: "movements": 1
// JSON: "ops_by_rule": 4
// JSON: "ranks": 4
// JSON: "verdict": "proven"
// JSON: "schema": 1

tp.mesh @mesh(dp = 2, tp = 2)

// A missing reduction.
// RUN: sed -e '/tp.all_reduce sum %2 over/d; s/nn.add %3, %1/nn.add %2, %1/' %t.mlir > %t.bad.mlir
// RUN: not tp-opt %t.bad.mlir --tp-verify-spmd="reference=%s report=%t.json" -o /dev/null 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: FileCheck %s --check-prefix=MISSING-JSON --input-file %t.json
// MISSING: error: not proven, of 'row': for operands placed (Replicate, Partial(sum)), (Replicate, Replicate), the reference's op must be computed differently
// MISSING-NEXT: %4 = nn.add
// MISSING: verify-spmd.mlir:{{.*}}: note: the reference computes this here
// MISSING: note: refuted by execution: on rank 0, element [0, 0] of this op's result isn't element [0, 0] of what the reference computes
// MISSING: note: refuted by execution: on rank 0, element [0, 0] of result 0 isn't element [0, 0] of what the reference computes: it is {{[-.0-9e]+}}, not {{[-.0-9e]+}}
// MISSING: note: with these inputs: argument 0 = [{{[-.0-9e]+}}, {{.*}}, ...], parameter 'w' = [{{.*}}, ...], parameter 'b' = [{{.*}}]

// MISSING-JSON: "counter_example": {
// MISSING-JSON: "element": [
// MISSING-JSON: "expected": "
// MISSING-JSON: "found": "
// MISSING-JSON: "inputs": {
// MISSING-JSON-NEXT: "argument 0": "[
// MISSING-JSON: "of_whole": [
// MISSING-JSON: "rank": 0,
// MISSING-JSON: "result": 0
// MISSING-JSON: "verdict": "refuted"

// A wrong group.
// RUN: sed -e 's/sum %2 over @mesh {tp}/sum %2 over @mesh {dp}/' %t.mlir > %t.bad.mlir
// RUN: not %{verify} 2>&1 | FileCheck %s --check-prefix=GROUP
// GROUP: error: not proven: the operand is (Replicate, Partial(sum)): there is nothing to reduce over 'dp'
// GROUP-NEXT: tp.all_reduce

// A bias that is added on every rank.
// RUN: sed -e 's/%3 = tp.all_reduce.*/%3 = nn.add %2, %1 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>/' \
// RUN:     -e 's/%4 = nn.add.*/%4 = tp.all_reduce sum %3 over @mesh {tp} : tensor<4x6xf32>/' %t.mlir > %t.bad.mlir
// RUN: not %{verify} 2>&1 | FileCheck %s --check-prefix=BIAS
// BIAS: error: not proven: for operands placed (Replicate, Partial(sum)), (Replicate, Replicate), the reference's op must be computed differently
// BIAS-NEXT: %3 = nn.add
func.func @row_parallel(%x: tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<4x6xf32> {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<6x8xf32>
  %b = nn.parameter "b" : tensor<6xf32>
  %0 = nn.linear %x, %w {tp.fqn = "row"} : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %1 = nn.add %0, %b {tp.fqn = "row"} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// A swapped gather order.
// RUN: sed -e 's/dim 0 over @mesh {dp, tp}/dim 0 over @mesh {tp, dp}/' %t.mlir > %t.bad.mlir
// RUN: not %{verify} 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: not proven: rank 0 gets elements 0 to 1, 4 to 5, 2 to 3, 6 to 7 of dimension 0 in this order, and no placement gives the ranks such blocks
// ORDER-NEXT: tp.all_gather
// ORDER: note: refuted by execution: on rank 0, element [2, 0] of this op's result isn't element [2, 0] of what the reference computes

// A correct program that can't be proven is tested, on request, or fails where that takes too much.
// RUN: sed -e 's/tp.all_gather %0 dim 0 over @mesh {dp, tp}/tp.all_gather %again dim 0 over @mesh {dp, tp}/' \
// RUN:     -e 's/%0 = nn.relu.*/&\n%again = nn.relu %0 : tensor<2x4xf32>/' %t.mlir > %t.bad.mlir
// RUN: not %{verify} 2>&1 | FileCheck %s --check-prefix=TESTED
// RUN: tp-opt %t.bad.mlir --tp-verify-spmd="reference=%s accept-tested report=%t.json" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ACCEPTED
// RUN: FileCheck %s --check-prefix=TESTED-JSON --input-file %t.json
// RUN: tp-opt %t.bad.mlir --tp-verify-spmd=reference=%s --accept-tested -o /dev/null 2>&1 | FileCheck %s --check-prefix=ACCEPTED
// RUN: not tp-opt %t.bad.mlir --tp-verify-spmd="reference=%s max-operations=100" -o /dev/null 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not tp-opt %t.bad.mlir --tp-verify-spmd="reference=%s max-operations=0" -o /dev/null 2>&1 | FileCheck %s --check-prefix=NEVER
// TESTED: error: not proven: no op of the reference computes this on each rank's blocks; tested instead: 'gathered' gives what the reference gives on {{1[4-9]}} inputs, with 2 ops left to execution (1 nn.relu, 1 tp.all_gather)
// TESTED-NEXT: %again = nn.relu
// TESTED: note: 'accept-tested' accepts programs that are only tested
// ACCEPTED: remark: not proven: no op of the reference computes this on each rank's blocks; tested instead: 'gathered' gives what the reference gives on {{1[4-9]}} inputs
// ACCEPTED-NEXT: %again = nn.relu
// TESTED-JSON: "function": "gathered"
// TESTED-JSON: "inputs": {{1[4-9]}},
// TESTED-JSON: "not_proven": {
// TESTED-JSON: "op": "nn.relu",
// TESTED-JSON: "ops_left_to_execution": {
// TESTED-JSON-NEXT: "nn.relu": 1,
// TESTED-JSON-NEXT: "tp.all_gather": 1
// TESTED-JSON: "verdict": "tested"
// LIMIT: error: not proven: no op of the reference computes this on each rank's blocks
// LIMIT: note: nor can the programs be tested: it takes more scalar operations than 'max-operations' allows
// NEVER: error: not proven: no op of the reference computes this on each rank's blocks
// NEVER-NOT: note
func.func @gathered(%x: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{dp, tp}, {}]>}) -> tensor<8x4xf32> {
  %0 = nn.relu %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// A wrong offset into a table.
// RUN: sed -e 's/shard_offset of 10/shard_offset of 8/' %t.mlir > %t.bad.mlir
// RUN: not %{verify} 2>&1 | FileCheck %s --check-prefix=OFFSET
// OFFSET: error: not proven: no op of the reference computes this on each rank's blocks
// OFFSET-NEXT: tp.shard_offset of 8
// OFFSET: note: refuted by execution: on rank {{[0-9]}}, element
func.func @table(%ids: tensor<3xi64>) -> tensor<3x4xf32> {
  %t = nn.parameter "t" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<10x4xf32>
  %0 = nn.embedding %ids, %t : (tensor<3xi64>, tensor<10x4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// A wrong offset of a slice.
// RUN: sed -e 's/dim 1 start 2 step 1/dim 1 start 1 step 1/' %t.mlir > %t.bad.mlir
// RUN: not %{verify} 2>&1 | FileCheck %s --check-prefix=SLICE
// SLICE: error: not proven: for operands placed (Replicate, Shard(1, segments=[4, 4])), the reference's op must be computed differently
// SLICE-NEXT: nn.slice %1 dim 1 start 1

// Another parameter of the same type, and one that the model hasn't.
// RUN: sed -e 's/"gate_up"/"up_gate"/' %t.mlir > %t.bad.mlir
// RUN: not %{verify} 2>&1 | FileCheck %s --check-prefix=PARAMETER
// PARAMETER: error: not proven: parameter 'up_gate' isn't in the reference
func.func @fused(%x: tensor<2x4xf32>) -> (tensor<2x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %w = nn.parameter "gate_up" {tp.sharding = #tp.sharding<@mesh, [{tp | 4, 4}, {}]>} : tensor<8x4xf32>
  %0 = nn.linear %x, %w : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  %1 = nn.slice %0 dim 1 start 0 step 1 : tensor<2x8xf32> -> tensor<2x4xf32>
  %2 = nn.slice %0 dim 1 start 4 step 1 : tensor<2x8xf32> -> tensor<2x4xf32>
  %3 = nn.mul %1, %2 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// An uneven tail that computes something else.
// RUN: sed -e 's/nn.exp %arg0 : tensor<1x4xf32>/nn.sin %arg0 : tensor<1x4xf32>/' %t.mlir > %t.bad.mlir
// RUN: not %{verify} 2>&1 | FileCheck %s --check-prefix=TAIL
// TAIL: error: not proven, for ranks 1, 3: the other ranks issue another collective here, or of another value
// TAIL-NEXT: nn.sin
// TAIL: note: refuted by execution: on rank 0, element [2, 0] of result 0 isn't element [2, 0] of what the reference computes

// Ranks that run no program, and two.
// RUN: sed -e 's/tp.ranks = array<i64: 1, 3>/tp.ranks = array<i64: 1>/' %t.mlir > %t.bad.mlir
// RUN: not %{verify} 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: rank 3 runs none of the programs
// RUN: sed -e 's/array<i64: 1, 3>/array<i64: tail>/; s/array<i64: 0, 2>/array<i64: 1, 3>/; s/array<i64: tail>/array<i64: 0, 2>/' %t.mlir > %t.bad.mlir
// RUN: not %{verify} 2>&1 | FileCheck %s --check-prefix=SWAPPED
// SWAPPED: error: not proven, for ranks 1, 3: argument 0 has another type than the ranks' blocks of it
func.func @uneven(%x: tensor<3x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<3x4xf32> {
  %0 = nn.exp %x : tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// No model, and one that can't be read.
// RUN: not tp-opt %t.mlir --tp-verify-spmd -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: error: no reference to prove the programs against; 'reference' is the path of the model
// RUN: not tp-opt %t.mlir --tp-verify-spmd=reference=%t.nowhere -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: error: can't read the reference '{{.*}}nowhere'
