// Faults that are planted in a program with expert parallelism: none of them is proven. These are wrong experts and bounds
// of ranks, tokens that are sent to no rank or twice, wrong slots, and sums that lack results.
// RUN: split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-parallelize=plan=plan.yaml -o ranks.mlir
// RUN: %python %S/Inputs/mutants.py ranks.mlir "reference=model.mlir" 'dense<\[2, 4, 6, 8\]>' 'dense<[2, 4, 5, 8]>' \
// RUN:   'dense<\[0, 2\]>' 'dense<[0, 3]>' 'dense<8> : tensor<1x1x1xi64>' 'dense<7> : tensor<1x1x1xi64>' \
// RUN:   'dense<\[0, 1, 2, 2, 3, 4\]>' 'dense<[0, 1, 2, 1, 3, 4]>' 'nn.compare lt' 'nn.compare le' \
// RUN:   'nn.compare ge' 'nn.compare gt' 'nn.compare ne' 'nn.compare eq' 'start 1 step' 'start 0 step' \
// RUN:   'dense<(?:0|2|8|-1)> : tensor<i64>' 'dense<1> : tensor<i64>' 'start 0.0(\S+) step' 'start 1.0\1 step' \
// RUN:   'reduce sum' 'reduce max' 'scatter copy' 'scatter add' | FileCheck %s
// CHECK: 22 mutants aren't proven

// Groups of tokens, which data parallelism splits: wrong groups, blocks of tokens, bounds and orders.
// RUN: tp-opt model.mlir --tp-parallelize=plan=groups.yaml -o groups.mlir
// RUN: tp-opt groups.mlir --tp-verify-spmd=reference=model.mlir -o out.mlir
// RUN: %python %S/Inputs/mutants.py groups.mlir "reference=model.mlir" 'nn.compare lt' 'nn.compare le' 'nn.compare ge' 'nn.compare gt' \
// RUN:   'over @mesh \{ep\}' 'over @mesh {dp}' 'over @mesh \{dp\}' 'over @mesh {ep}' 'over @mesh \{dp, ep\}' 'over @mesh {ep, dp}' \
// RUN:   '= nn.sort' '= nn.sort descending' 'nn.floor_div' 'nn.remainder' 'nn.remainder' 'nn.floor_div' 'reduce sum' 'reduce max' \
// RUN:   'dense<(?:0|1|2|4|8|-1)> : tensor<i64>' 'dense<3> : tensor<i64>' | FileCheck %s --check-prefix=GROUPS
// GROUPS: 43 mutants aren't proven

//--- plan.yaml
mesh: {ep: 2}
expert_parallel: {ep: all_to_all}

//--- groups.yaml
mesh: {dp: 2, ep: 2}
data_parallel: {dp: ddp}
expert_parallel: {ep: all_to_all}

//--- model.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}, %ids: tensor<4x2xi64> {tp.name = "ids"}) -> tensor<4x8xf32> {
  %flat = nn.reshape %ids : tensor<4x2xi64> -> tensor<8xi64>
  %sorted, %order = nn.sort %flat dim 0 count 8 : tensor<8xi64> -> (tensor<8xi64>, tensor<8xi64>)
  %k = nn.constant dense<2> : tensor<i64>
  %token = nn.floor_div %order, %k : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
  %rows = nn.index_select %x, %token dim 0 : (tensor<4x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %ends = nn.constant dense<[2, 4, 6, 8]> : tensor<4xi32>
  %zero = nn.constant dense<0> : tensor<1xi32>
  %bounds = nn.concat %zero, %ends dim 0 : (tensor<1xi32>, tensor<4xi32>) -> tensor<5xi32>
  %w = nn.parameter "w" : tensor<4x8x8xf32>
  %y = nn.grouped_matmul %rows, %w bounds %bounds : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<5xi32>) -> tensor<8x8xf32>
  %z = nn.silu %y : tensor<8x8xf32>
  %none = nn.constant dense<0> : tensor<8xi64>
  %places = nn.iota dim 0 start 0.000000e+00 step 1.000000e+00 : tensor<8xi64>
  %inverse = nn.scatter copy %none, %order, %places dim 0 : (tensor<8xi64>, tensor<8xi64>, tensor<8xi64>)
  %back = nn.index_select %z, %inverse dim 0 : (tensor<8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %by = nn.reshape %back : tensor<8x8xf32> -> tensor<4x2x8xf32>
  %sum = nn.reduce sum %by dims [1] : tensor<4x2x8xf32> -> tensor<4x8xf32>
  %v = nn.parameter "v" : tensor<8x8xf32>
  %out = nn.linear %sum, %v : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %out : tensor<4x8xf32>
}

