// Query, key and value of different sizes, which are cut after the heads are separated. Fixes count the weight's elements.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/blocks.yaml -o /dev/null 2>&1 | FileCheck %t/blocks.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/fixed.yaml -o /dev/null 2>&1 | count 0
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/others.yaml -o /dev/null 2>&1 | FileCheck %t/others.yaml
// RUN: tp-opt %t/part.mlir --tp-apply-plan=plan=%t/part.yaml -o /dev/null 2>&1 | FileCheck %t/part.yaml

//--- blocks.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+2]]:3: warning: the root module cuts a dimension that output_layouts splits in plain blocks into pieces of 64, 32, 32: a rank's block isn't its part of each piece [packed-weight]
# CHECK: :[[#@LINE+1]]:3: note: fix: write {style: packed_colwise, segments: [64, 32, 32]}
  qkv: ColwiseParallel

//--- fixed.yaml
mesh: {tp: 2}
plan:
  qkv: {style: packed_colwise, segments: [64, 32, 32]}

//--- others.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+2]]:3: warning: the root module cuts a dimension that output_layouts splits in segments of 32, 96 into pieces of 64, 32, 32: a rank's block isn't its part of each piece [packed-weight]
# CHECK: :[[#@LINE+1]]:3: note: fix: write {style: packed_colwise, segments: [64, 32, 32]}
  qkv: {style: packed_colwise, segments: [32, 96]}

# Nothing takes the last two heads, so the pieces may be others.
//--- part.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+2]]:3: warning: the root module cuts a dimension that output_layouts splits in plain blocks into pieces: a rank's block isn't its part of each piece [packed-weight]
# CHECK: :[[#@LINE+1]]:3: note: fix: ask for another output layout here, such as Replicate
  qkv: ColwiseParallel

//--- model.mlir
func.func @main(%x: tensor<2x64xf32>) -> (tensor<2x4x16xf32>, tensor<2x2x16xf32>, tensor<2x2x16xf32>) {
  %r:3 = nn.module "" class "Attention" (%x as "x" at 0) {
  ^bb0(%a: tensor<2x64xf32>):
    %qkv = nn.module "qkv" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<2x64xf32>):
      %w = nn.parameter "qkv.weight" : tensor<128x64xf32>
      %y = nn.linear %input, %w : (tensor<2x64xf32>, tensor<128x64xf32>) -> tensor<2x128xf32>
      nn.yield %y : tensor<2x128xf32>
    } : (tensor<2x64xf32>) -> tensor<2x128xf32>
    %heads = nn.reshape %qkv : tensor<2x128xf32> -> tensor<2x8x16xf32>
    %q = nn.slice %heads dim 1 start 0 step 1 : tensor<2x8x16xf32> -> tensor<2x4x16xf32>
    %k = nn.slice %heads dim 1 start 4 step 1 : tensor<2x8x16xf32> -> tensor<2x2x16xf32>
    %v = nn.slice %heads dim 1 start 6 step 1 : tensor<2x8x16xf32> -> tensor<2x2x16xf32>
    nn.yield %q, %k, %v : tensor<2x4x16xf32>, tensor<2x2x16xf32>, tensor<2x2x16xf32>
  } : (tensor<2x64xf32>) -> (tensor<2x4x16xf32>, tensor<2x2x16xf32>, tensor<2x2x16xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x4x16xf32>, tensor<2x2x16xf32>, tensor<2x2x16xf32>
}

//--- part.mlir
func.func @main(%x: tensor<2x64xf32>) -> (tensor<2x4x16xf32>, tensor<2x2x16xf32>) {
  %r:2 = nn.module "" class "Attention" (%x as "x" at 0) {
  ^bb0(%a: tensor<2x64xf32>):
    %qkv = nn.module "qkv" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<2x64xf32>):
      %w = nn.parameter "qkv.weight" : tensor<128x64xf32>
      %y = nn.linear %input, %w : (tensor<2x64xf32>, tensor<128x64xf32>) -> tensor<2x128xf32>
      nn.yield %y : tensor<2x128xf32>
    } : (tensor<2x64xf32>) -> tensor<2x128xf32>
    %heads = nn.reshape %qkv : tensor<2x128xf32> -> tensor<2x8x16xf32>
    %q = nn.slice %heads dim 1 start 0 step 1 : tensor<2x8x16xf32> -> tensor<2x4x16xf32>
    %k = nn.slice %heads dim 1 start 4 step 1 : tensor<2x8x16xf32> -> tensor<2x2x16xf32>
    nn.yield %q, %k : tensor<2x4x16xf32>, tensor<2x2x16xf32>
  } : (tensor<2x64xf32>) -> (tensor<2x4x16xf32>, tensor<2x2x16xf32>)
  return %r#0, %r#1 : tensor<2x4x16xf32>, tensor<2x2x16xf32>
}
