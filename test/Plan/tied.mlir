// A tied parameter has one placement, wherever it is used.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/same.yaml | FileCheck %t/same.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/one.yaml | FileCheck %t/one.yaml
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/conflict.yaml -o %t/out.mlir 2>&1 | FileCheck %t/conflict.yaml --implicit-check-not=error:

//--- model.mlir
func.func @main(%ids: tensor<4xi64>) -> tensor<4x32xf32> {
  %r = nn.module "" class "LM" (%ids as "ids" at 0) {
  ^bb0(%i: tensor<4xi64>):
    %e = nn.module "embed" class "Embedding" (%i as "input" at 0) {
    ^bb0(%input: tensor<4xi64>):
      %w = nn.parameter "embed.weight" : tensor<32x16xf32>
      %y = nn.embedding %input, %w : (tensor<4xi64>, tensor<32x16xf32>) -> tensor<4x16xf32>
      nn.yield %y : tensor<4x16xf32>
    } : (tensor<4xi64>) -> tensor<4x16xf32>
    %h = nn.module "head" class "Linear" (%e as "input" at 0) {
    ^bb0(%input: tensor<4x16xf32>):
      %w = nn.parameter "embed.weight" : tensor<32x16xf32>
      %y = nn.linear %input, %w : (tensor<4x16xf32>, tensor<32x16xf32>) -> tensor<4x32xf32>
      nn.yield %y : tensor<4x32xf32>
    } : (tensor<4x16xf32>) -> tensor<4x32xf32>
    nn.yield %h : tensor<4x32xf32>
  } : (tensor<4xi64>) -> tensor<4x32xf32>
  return %r : tensor<4x32xf32>
}

//--- same.yaml
# CHECK-COUNT-2: nn.parameter "embed.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
mesh: {tp: 2}
plan: {embed: {style: RowwiseParallel, input_layouts: Replicate}, head: ColwiseParallel}

//--- one.yaml
# CHECK-COUNT-2: nn.parameter "embed.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
mesh: {tp: 2}
plan: {head: ColwiseParallel}

//--- conflict.yaml
mesh: {tp: 2}
plan:
  embed: ColwiseParallel
# CHECK: :[[#@LINE+2]]:3: error: parameter 'embed.weight' gets Shard(0) here, and Shard(1) from another entry
# CHECK: :[[#@LINE-2]]:3: note: Shard(1) comes from 'embed' here
  head: ColwiseParallel
