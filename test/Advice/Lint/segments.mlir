// Operands that are split in segments, with equal and with different segments.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/alike.yaml -o /dev/null 2>&1 | count 0
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/blocks.yaml -o /dev/null 2>&1 | FileCheck %t/blocks.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/others.yaml -o /dev/null 2>&1 | FileCheck %t/others.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/crossed.yaml -o /dev/null 2>&1 | FileCheck %t/crossed.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/declared.yaml -o /dev/null 2>&1 | FileCheck %t/declared.yaml

// Two blocks are two equal segments.
//--- alike.yaml
mesh: {tp: 2}
plan:
  g: {style: packed_colwise, blocks: 2}
  u: {style: packed_colwise, segments: [16, 16]}
  d: {style: packed_rowwise, blocks: 2}

//--- blocks.yaml
# CHECK: warning: 'nn.mul' in the root module has operands that are split differently; one of them is {{.*}} because of output_layouts [forced-gather]
mesh: {tp: 2}
plan:
  g: {style: packed_colwise, blocks: 2}
  u: ColwiseParallel

//--- others.yaml
# CHECK: warning: 'nn.mul' in the root module has operands that are split differently; one of them is {{.*}} because of output_layouts [forced-gather]
mesh: {tp: 2}
plan:
  g: {style: packed_colwise, blocks: 2}
  u: {style: packed_colwise, segments: [8, 24]}

# Segments of one dimension, and blocks of another.
//--- crossed.yaml
# CHECK: warning: 'nn.mul' in the root module has operands that are split differently; one of them is {{.*}} because of output_layouts [forced-gather]
mesh: {tp: 2}
plan:
  g: {style: packed_colwise, blocks: 2}
  u: {style: ColwiseParallel, output_layouts: Shard(0)}

# What both operands are split in is what the result comes in.
//--- declared.yaml
# CHECK: warning: input 'input' of 'd' is declared Shard(1), but comes as _StridedShard(1, split_factor=2) from output_layouts {{.*}}[declared-layout]
mesh: {tp: 2}
plan:
  g: {style: packed_colwise, blocks: 2}
  u: {style: packed_colwise, blocks: 2}
  d: RowwiseParallel

//--- model.mlir
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %r = nn.module "" class "Gate" (%x as "x" at 0) {
  ^bb0(%a: tensor<8x16xf32>):
    %g = nn.module "g" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<8x16xf32>):
      %w = nn.parameter "g.weight" : tensor<32x16xf32>
      %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
      nn.yield %y : tensor<8x32xf32>
    } : (tensor<8x16xf32>) -> tensor<8x32xf32>
    %u = nn.module "u" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<8x16xf32>):
      %w = nn.parameter "u.weight" : tensor<32x16xf32>
      %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
      nn.yield %y : tensor<8x32xf32>
    } : (tensor<8x16xf32>) -> tensor<8x32xf32>
    %m = nn.mul %g, %u : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
    %o = nn.module "d" class "Linear" (%m as "input" at 0) {
    ^bb0(%input: tensor<8x32xf32>):
      %w = nn.parameter "d.weight" : tensor<16x32xf32>
      %y = nn.linear %input, %w : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32>
      nn.yield %y : tensor<8x16xf32>
    } : (tensor<8x32xf32>) -> tensor<8x16xf32>
    nn.yield %o : tensor<8x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
