// Fewer key and value heads than ranks: nothing is wrong as long as nothing moves.
// RUN: split-file %s %t
// RUN: tp-opt %S/../../Plan/Inputs/grouped.mlir --tp-apply-plan="plan=%t/queries.yaml strict=true" -o /dev/null 2>&1 | count 0
// RUN: tp-opt %S/../../Plan/Inputs/grouped-explicit.mlir --tp-apply-plan="plan=%t/queries.yaml strict=true" -o /dev/null 2>&1 | count 0
// RUN: tp-opt %S/../../Plan/Inputs/grouped.mlir --tp-apply-plan="plan=%t/whole.yaml strict=true" -o /dev/null 2>&1 | count 0
// RUN: tp-opt %S/../../Plan/Inputs/grouped.mlir --tp-parallelize=plan=%t/whole.yaml | FileCheck %t/whole.yaml
// RUN: tp-opt %S/../../Plan/Inputs/grouped.mlir --tp-apply-plan=plan=%t/all.yaml -o /dev/null 2>&1 | FileCheck %t/all.yaml --implicit-check-not=warning: --implicit-check-not=packed_colwise
// RUN: tp-opt %S/../../Plan/Inputs/grouped-explicit.mlir --tp-apply-plan=plan=%t/all.yaml -o /dev/null 2>&1 | FileCheck %t/all.yaml --implicit-check-not=warning: --implicit-check-not=packed_colwise
// RUN: tp-opt %S/../../Plan/Inputs/grouped.mlir --tp-apply-plan=plan=%t/alone.yaml -o /dev/null 2>&1 | FileCheck %t/alone.yaml --implicit-check-not=warning: --implicit-check-not=packed_colwise
// RUN: tp-opt %t/one-head.mlir --tp-apply-plan=plan=%t/one-head.yaml -o /dev/null 2>&1 | FileCheck %t/one-head.yaml --implicit-check-not=warning:
// RUN: tp-opt %t/one-head.mlir --tp-apply-plan="plan=%t/one-query.yaml strict=true" -o /dev/null 2>&1 | count 0
// RUN: tp-opt %t/unsqueezed.mlir --tp-apply-plan="plan=%t/unsqueezed.yaml strict=true" -o /dev/null 2>&1 | count 0
// RUN: tp-opt %t/fused.mlir --tp-apply-plan=plan=%t/fused.yaml -o /dev/null 2>&1 | FileCheck %t/fused.yaml --implicit-check-not=warning:
// RUN: tp-opt %t/fused.mlir --tp-apply-plan=plan=%t/blocks.yaml -o /dev/null 2>&1 | FileCheck %t/blocks.yaml --implicit-check-not=warning:
// RUN: tp-opt %t/fused.mlir --tp-apply-plan="plan=%t/right.yaml strict=true" -o /dev/null 2>&1 | count 0

//--- queries.yaml
mesh: {tp: 4}
plan:
  layers.*.attention.wq: ColwiseParallel
  layers.*.attention.wo: RowwiseParallel

//--- whole.yaml
# CHECK-COUNT-2: = tp.all_reduce
# CHECK-NOT: = tp.
mesh: {tp: 4}
plan:
  layers.*.attention.wq: ColwiseParallel
  layers.*.attention.w[kv]: replicate
  layers.*.attention.wo: RowwiseParallel

# The ranks that are more than the heads split these, which attention needs whole: the queries alone are to be split.
//--- all.yaml
mesh: {tp: 4}
plan:
# CHECK: :[[#@LINE+3]]:3: warning: 'layers.0.attention' reshapes a dimension of size 16 to 2 × 8; 2 can't be split evenly over mesh dimension 'tp' of size 4, as output_layouts asks [heads]
# CHECK: :[[#@LINE+2]]:3: note: fix: narrow the pattern to 'layers.*.attention.wq', so that it doesn't match 'layers.*.attention.wk' and 'layers.*.attention.wv'
# CHECK: :[[#@LINE+1]]:3: note: the same holds in 3 more places
  layers.*.attention.w[qkv]: ColwiseParallel
  layers.*.attention.wo: RowwiseParallel

# One head of key and value, by operand of attention and repeated for the products.
//--- one-head.mlir
func.func @main(%x: tensor<2x16x64xf32>) -> tensor<2x16x64xf32> {
  %r = nn.module "" class "Attention" (%x as "x" at 0) {
  ^bb0(%a: tensor<2x16x64xf32>):
    %q = nn.module "wq" class "Linear" (%a as "x" at 0) {
    ^bb0(%input: tensor<2x16x64xf32>):
      %w = nn.parameter "wq.weight" : tensor<64x64xf32>
      %y = nn.linear %input, %w : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
      nn.yield %y : tensor<2x16x64xf32>
    } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
    %k = nn.module "wk" class "Linear" (%a as "x" at 0) {
    ^bb0(%input: tensor<2x16x64xf32>):
      %w = nn.parameter "wk.weight" : tensor<8x64xf32>
      %y = nn.linear %input, %w : (tensor<2x16x64xf32>, tensor<8x64xf32>) -> tensor<2x16x8xf32>
      nn.yield %y : tensor<2x16x8xf32>
    } : (tensor<2x16x64xf32>) -> tensor<2x16x8xf32>
    %0 = nn.reshape %q : tensor<2x16x64xf32> -> tensor<2x16x8x8xf32>
    %1 = nn.transpose %0 [0, 2, 1, 3] : tensor<2x16x8x8xf32> -> tensor<2x8x16x8xf32>
    %2 = nn.reshape %k : tensor<2x16x8xf32> -> tensor<2x1x16x8xf32>
    %3 = nn.attention %1, %2, %2 scale 1.0 : (tensor<2x8x16x8xf32>, tensor<2x1x16x8xf32>, tensor<2x1x16x8xf32>) -> tensor<2x8x16x8xf32>
    %4 = nn.reshape %k : tensor<2x16x8xf32> -> tensor<2x1x1x16x8xf32>
    %5 = nn.broadcast %4 : tensor<2x1x1x16x8xf32> -> tensor<2x1x8x16x8xf32>
    %6 = nn.reshape %5 : tensor<2x1x8x16x8xf32> -> tensor<2x8x16x8xf32>
    %7 = nn.transpose %6 [0, 1, 3, 2] : tensor<2x8x16x8xf32> -> tensor<2x8x8x16xf32>
    %8 = nn.matmul %1, %7 : (tensor<2x8x16x8xf32>, tensor<2x8x8x16xf32>) -> tensor<2x8x16x16xf32>
    %9 = nn.matmul %8, %3 : (tensor<2x8x16x16xf32>, tensor<2x8x16x8xf32>) -> tensor<2x8x16x8xf32>
    %10 = nn.transpose %9 [0, 2, 1, 3] : tensor<2x8x16x8xf32> -> tensor<2x16x8x8xf32>
    %11 = nn.reshape %10 : tensor<2x16x8x8xf32> -> tensor<2x16x64xf32>
    nn.yield %11 : tensor<2x16x64xf32>
  } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
  return %r : tensor<2x16x64xf32>
}

//--- one-head.yaml
mesh: {tp: 4}
plan:
# CHECK: :[[#@LINE+4]]:3: warning: the root module reshapes a dimension of size 8 to 1 × 8; 1 can't be split evenly over mesh dimension 'tp' of size 4, as output_layouts asks [heads]
# CHECK: :[[#@LINE+3]]:3: note: cost: each rank receives 768 bytes{{$}}
# CHECK: :[[#@LINE+2]]:3: note: fix: narrow the pattern to 'wq', so that it doesn't match 'wk'
# CHECK: :[[#@LINE+1]]:3: note: the same holds in 1 more place
  w[qk]: ColwiseParallel

//--- one-query.yaml
mesh: {tp: 4}
plan:
  wq: ColwiseParallel

# A dimension of size 1 beside columns that are summed over makes no head of them.
//--- unsqueezed.mlir
func.func @main(%x: tensor<8x4xf32>) -> tensor<1x8x4xf32> {
  %h = nn.module "up" class "Linear" (%x as "input" at 0) {
  ^bb0(%a: tensor<8x4xf32>):
    %w = nn.parameter "up.weight" : tensor<16x4xf32>
    %y = nn.linear %a, %w : (tensor<8x4xf32>, tensor<16x4xf32>) -> tensor<8x16xf32>
    nn.yield %y : tensor<8x16xf32>
  } : (tensor<8x4xf32>) -> tensor<8x16xf32>
  %0 = nn.reshape %h : tensor<8x16xf32> -> tensor<1x8x16xf32>
  %1 = nn.module "down" class "Linear" (%0 as "input" at 0) {
  ^bb0(%a: tensor<1x8x16xf32>):
    %w = nn.parameter "down.weight" : tensor<4x16xf32>
    %y = nn.linear %a, %w : (tensor<1x8x16xf32>, tensor<4x16xf32>) -> tensor<1x8x4xf32>
    nn.yield %y : tensor<1x8x4xf32>
  } : (tensor<1x8x16xf32>) -> tensor<1x8x4xf32>
  return %1 : tensor<1x8x4xf32>
}

//--- unsqueezed.yaml
mesh: {tp: 4}
plan:
  up: ColwiseParallel
  down: RowwiseParallel

# An entry that is about nothing else.
//--- alone.yaml
mesh: {tp: 4}
plan:
  layers.*.attention.wq: ColwiseParallel
# CHECK: :[[#@LINE+2]]:3: warning: 'layers.0.attention' reshapes a dimension of size 16 to 2 × 8; {{.*}} [heads]
# CHECK: :[[#@LINE+1]]:3: note: fix: use a size of the mesh dimension that divides 2: 2{{$}}
  layers.*.attention.wk: ColwiseParallel
  layers.*.attention.wo: RowwiseParallel

# Query, key and value in one weight, taken apart by a view.
//--- fused.mlir
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = nn.module "" class "Attention" (%x as "x" at 0) {
  ^bb0(%a: tensor<4x8xf32>):
    %f = nn.module "qkv" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<4x8xf32>):
      %w = nn.parameter "qkv.weight" : tensor<24x8xf32>
      %y = nn.linear %input, %w : (tensor<4x8xf32>, tensor<24x8xf32>) -> tensor<4x24xf32>
      nn.yield %y : tensor<4x24xf32>
    } : (tensor<4x8xf32>) -> tensor<4x24xf32>
    %p = nn.reshape %f : tensor<4x24xf32> -> tensor<4x3x8xf32>
    %0 = nn.slice %p dim 1 start 0 step 1 : tensor<4x3x8xf32> -> tensor<4x1x8xf32>
    %1 = nn.slice %p dim 1 start 1 step 1 : tensor<4x3x8xf32> -> tensor<4x1x8xf32>
    %2 = nn.slice %p dim 1 start 2 step 1 : tensor<4x3x8xf32> -> tensor<4x1x8xf32>
    %3 = nn.mul %0, %1 : (tensor<4x1x8xf32>, tensor<4x1x8xf32>) -> tensor<4x1x8xf32>
    %4 = nn.mul %3, %2 : (tensor<4x1x8xf32>, tensor<4x1x8xf32>) -> tensor<4x1x8xf32>
    %5 = nn.reshape %4 : tensor<4x1x8xf32> -> tensor<4x8xf32>
    nn.yield %5 : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

//--- fused.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+2]]:3: warning: the root module reshapes a dimension of size 24 to 3 × 8; {{.*}} [heads]
# CHECK: :[[#@LINE+1]]:3: note: fix: this is a packed weight of 3 parts: write {style: packed_colwise, blocks: 3}
  qkv: ColwiseParallel

# packed_colwise with the wrong number of blocks.
//--- blocks.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+2]]:3: warning: the root module cuts a dimension that output_layouts splits in segments of 12, 12 into pieces of 8, 8, 8: a rank's block isn't its part of each piece [packed-weight]
# CHECK: :[[#@LINE+1]]:3: note: fix: write {style: packed_colwise, segments: [8, 8, 8]}
  qkv: packed_colwise

//--- right.yaml
mesh: {tp: 2}
plan:
  qkv: {style: packed_colwise, blocks: 3}
