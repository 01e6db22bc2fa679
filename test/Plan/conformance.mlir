// The assertions of PyTorch's tests of its parallel styles about the forward pass:
// the shapes that a rank has, and the collectives. Any collective that isn't
// checked for is an error.
// DEFINE: %{check} = FileCheck --implicit-check-not=tp.all_ --implicit-check-not=tp.reduce_scatter --implicit-check-not=tp.exchange --implicit-check-not=tp.permute
// RUN: split-file %s %t
// RUN: tp-opt %t/1.mlir --tp-parallelize=plan=%t/1.yaml | %{check} %t/1.yaml
// RUN: tp-opt %t/2.mlir --tp-parallelize=plan=%t/2.yaml | %{check} %t/2.yaml
// RUN: tp-opt %t/3.mlir --tp-parallelize=plan=%t/3.yaml | %{check} %t/3.yaml
// RUN: tp-opt %t/5.mlir --tp-parallelize=plan=%t/5.yaml | %{check} %t/5.yaml
// RUN: tp-opt %t/5p.mlir --tp-parallelize=plan=%t/5p.yaml | %{check} %t/5p.yaml
// RUN: tp-opt %t/6.mlir --tp-parallelize=plan=%t/6.yaml | %{check} %t/6.yaml
// RUN: tp-opt %t/7.mlir --tp-parallelize=plan=%t/7.yaml | %{check} %t/7.yaml
// RUN: tp-opt %t/8.mlir --tp-parallelize=plan=%t/8.yaml | %{check} %t/8.yaml
// RUN: tp-opt %t/10.mlir --tp-parallelize=plan=%t/10.yaml | %{check} %t/10.yaml
// RUN: tp-opt %t/11.mlir --tp-parallelize=plan=%t/11.yaml | %{check} %t/11.yaml
// RUN: tp-opt %t/12.mlir --tp-parallelize=plan=%t/12.yaml | %{check} %t/12.yaml
// RUN: tp-opt %t/13.mlir --tp-parallelize=plan=%t/13.yaml | %{check} %t/13.yaml
// RUN: tp-opt %t/14.mlir --tp-parallelize=plan=%t/14.yaml | %{check} %t/14.yaml
// RUN: tp-opt %t/14b.mlir --tp-parallelize=plan=%t/14b.yaml | %{check} %t/14b.yaml
// RUN: tp-opt %t/15.mlir --tp-parallelize=plan=%t/15.yaml | %{check} %t/15.yaml
// RUN: tp-opt %t/16.mlir --tp-parallelize=plan=%t/16.yaml | %{check} %t/16.yaml
// RUN: tp-opt %t/17.mlir --tp-parallelize=plan=%t/17.yaml | %{check} %t/17.yaml
// RUN: tp-opt %t/18.mlir --tp-parallelize=plan=%t/18.yaml | %{check} %t/18.yaml
// RUN: tp-opt %t/19.mlir --tp-parallelize=plan=%t/19.yaml | %{check} %t/19.yaml
// RUN: tp-opt %t/20.mlir --tp-parallelize=plan=%t/20.yaml | %{check} %t/20.yaml
// RUN: tp-opt %t/21.mlir --tp-parallelize=plan=%t/21.yaml | %{check} %t/21.yaml
// RUN: tp-opt %t/22.mlir --tp-parallelize=plan=%t/22.yaml | %{check} %t/22.yaml
// RUN: tp-opt %t/23.mlir --tp-parallelize=plan=%t/23.yaml | %{check} %t/23.yaml
// RUN: tp-opt %t/24.mlir --tp-parallelize=plan=%t/24.yaml | %{check} %t/24.yaml
// RUN: tp-opt %t/25.mlir --tp-parallelize=plan=%t/25.yaml | %{check} %t/25.yaml
// RUN: tp-opt %t/27.mlir --tp-parallelize=plan=%t/27.yaml | %{check} %t/27.yaml
// RUN: tp-opt %t/28.mlir --tp-parallelize=plan=%t/28.yaml | %{check} %t/28.yaml
// RUN: tp-opt %t/30.mlir --tp-parallelize=plan=%t/30.yaml | %{check} %t/30.yaml

// ColwiseParallel, Linear(16, 16): no collective, a block of columns.
//--- 1.mlir
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %r = nn.module "" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x16xf32>):
    %w = nn.parameter "weight" : tensor<16x16xf32>
    %b = nn.parameter "bias" : tensor<16xf32>
    %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    nn.yield %z : tensor<8x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
//--- 1.yaml
# CHECK: func.func @main(%arg0: tensor<8x16xf32>
# CHECK-SAME: -> (tensor<8x4xf32>
# CHECK: nn.parameter "weight" {{.*}} : tensor<4x16xf32>
# CHECK: nn.parameter "bias" {{.*}} : tensor<4xf32>
mesh: {tp: 4}
plan: {"": ColwiseParallel}

# ColwiseParallel(input_layouts=Shard(0)): 1 all-gather.
//--- 2.mlir
func.func @main(%x: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %r = nn.module "" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<32x16xf32>):
    %w = nn.parameter "weight" : tensor<16x16xf32>
    %b = nn.parameter "bias" : tensor<16xf32>
    %y = nn.linear %input, %w : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
    %z = nn.add %y, %b : (tensor<32x16xf32>, tensor<16xf32>) -> tensor<32x16xf32>
    nn.yield %z : tensor<32x16xf32>
  } : (tensor<32x16xf32>) -> tensor<32x16xf32>
  return %r : tensor<32x16xf32>
}
//--- 2.yaml
# CHECK: func.func @main(%arg0: tensor<8x16xf32>
# CHECK-SAME: -> (tensor<32x4xf32>
# CHECK: tp.all_gather %arg0 dim 0
mesh: {tp: 4}
plan: {"": {style: ColwiseParallel, input_layouts: Shard(0)}}

# ColwiseParallel, Embedding(16, 16): none.
//--- 3.mlir
func.func @main(%x: tensor<4x2xi64>) -> tensor<4x2x16xf32> {
  %r = nn.module "" class "Embedding" (%x as "input" at 0) {
  ^bb0(%input: tensor<4x2xi64>):
    %w = nn.parameter "weight" : tensor<16x16xf32>
    %y = nn.embedding %input, %w : (tensor<4x2xi64>, tensor<16x16xf32>) -> tensor<4x2x16xf32>
    nn.yield %y : tensor<4x2x16xf32>
  } : (tensor<4x2xi64>) -> tensor<4x2x16xf32>
  return %r : tensor<4x2x16xf32>
}
//--- 3.yaml
# CHECK: func.func @main(%arg0: tensor<4x2xi64>
# CHECK-SAME: -> (tensor<4x2x4xf32>
# CHECK: nn.parameter "weight" {{.*}} : tensor<16x4xf32>
mesh: {tp: 4}
plan: {"": ColwiseParallel}

# RowwiseParallel: 1 all-reduce.
//--- 5.mlir
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %r = nn.module "" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x16xf32>):
    %w = nn.parameter "weight" : tensor<16x16xf32>
    %b = nn.parameter "bias" : tensor<16xf32>
    %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    nn.yield %z : tensor<8x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
//--- 5.yaml
# CHECK: func.func @main(%arg0: tensor<8x4xf32>
# CHECK-SAME: -> (tensor<8x16xf32>
# CHECK: nn.parameter "weight" {{.*}} : tensor<16x4xf32>
# CHECK: nn.parameter "bias" {{.*}} : tensor<16xf32>
# CHECK: tp.all_reduce sum
mesh: {tp: 4}
plan: {"": RowwiseParallel}

# RowwiseParallel(output_layouts=Partial()) at the end: reduced, as a value leaves the program whole.
//--- 5p.mlir
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %r = nn.module "" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x16xf32>):
    %w = nn.parameter "weight" : tensor<16x16xf32>
    %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    nn.yield %y : tensor<8x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
//--- 5p.yaml
# CHECK: func.func @main(%arg0: tensor<8x4xf32>
# CHECK-SAME: -> (tensor<8x16xf32>
# CHECK: tp.all_reduce sum
mesh: {tp: 4}
plan: {"": {style: RowwiseParallel, output_layouts: Partial}}

# RowwiseParallel(output_layouts=Shard(0)): 1 reduce-scatter.
//--- 6.mlir
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %r = nn.module "" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x16xf32>):
    %w = nn.parameter "weight" : tensor<16x16xf32>
    %b = nn.parameter "bias" : tensor<16xf32>
    %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    nn.yield %z : tensor<8x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
//--- 6.yaml
# CHECK: func.func @main(%arg0: tensor<8x4xf32>
# CHECK-SAME: -> (tensor<2x16xf32>
# CHECK: tp.reduce_scatter sum
mesh: {tp: 4}
plan: {"": {style: RowwiseParallel, output_layouts: Shard(0)}}

# RowwiseParallel(input_layouts=Replicate()), Embedding: 1 all-reduce.
//--- 7.mlir
func.func @main(%x: tensor<4x2xi64>) -> tensor<4x2x16xf32> {
  %r = nn.module "" class "Embedding" (%x as "input" at 0) {
  ^bb0(%input: tensor<4x2xi64>):
    %w = nn.parameter "weight" : tensor<16x16xf32>
    %y = nn.embedding %input, %w : (tensor<4x2xi64>, tensor<16x16xf32>) -> tensor<4x2x16xf32>
    nn.yield %y : tensor<4x2x16xf32>
  } : (tensor<4x2xi64>) -> tensor<4x2x16xf32>
  return %r : tensor<4x2x16xf32>
}
//--- 7.yaml
# CHECK: func.func @main(%arg0: tensor<4x2xi64>
# CHECK-SAME: -> (tensor<4x2x16xf32>
# CHECK: nn.parameter "weight" {{.*}} : tensor<4x16xf32>
# CHECK: tp.all_reduce sum
mesh: {tp: 4}
plan: {"": {style: RowwiseParallel, input_layouts: Replicate}}

# RowwiseParallel(output_layouts=Shard(1)), Embedding: 1 reduce-scatter.
//--- 8.mlir
func.func @main(%x: tensor<8xi64>) -> tensor<8x16xf32> {
  %r = nn.module "" class "Embedding" (%x as "input" at 0) {
  ^bb0(%input: tensor<8xi64>):
    %w = nn.parameter "weight" : tensor<16x16xf32>
    %y = nn.embedding %input, %w : (tensor<8xi64>, tensor<16x16xf32>) -> tensor<8x16xf32>
    nn.yield %y : tensor<8x16xf32>
  } : (tensor<8xi64>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
//--- 8.yaml
# CHECK: func.func @main(%arg0: tensor<8xi64>
# CHECK-SAME: -> (tensor<8x4xf32>
# CHECK: tp.reduce_scatter sum
mesh: {tp: 4}
plan: {"": {style: RowwiseParallel, input_layouts: Replicate, output_layouts: Shard(1)}}

# PrepareModuleInput: 1 all-gather.
//--- 10.mlir
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %r = nn.module "" class "Identity" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x16xf32>):
    nn.yield %input : tensor<8x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
//--- 10.yaml
# CHECK: func.func @main(%arg0: tensor<2x16xf32>
# CHECK-SAME: -> (tensor<8x16xf32>
# CHECK: tp.all_gather %arg0 dim 0
mesh: {tp: 4}
plan: {"": {style: PrepareModuleInput, input_layouts: Shard(0), desired_input_layouts: Replicate}}

# Two inputs. PyTorch's second one is plain, a rank's own; here its layout is said.
//--- 11.mlir
func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = nn.module "" class "TestModule" (%x as "x" at 0, %y as "y" at 1) {
  ^bb0(%a: tensor<8x8xf32>, %c: tensor<8x8xf32>):
    %l = nn.module "linear" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<8x8xf32>):
      %w = nn.parameter "linear.weight" : tensor<8x8xf32>
      %z = nn.linear %input, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      nn.yield %z : tensor<8x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %s = nn.add %l, %c : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    nn.yield %s : tensor<8x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
//--- 11.yaml
# CHECK: func.func @main(%arg0: tensor<2x8xf32> {{.*}}, %arg1: tensor<8x2xf32>
# CHECK-SAME: -> (tensor<8x2xf32>
# CHECK: tp.all_gather %arg0 dim 0
mesh: {tp: 4}
plan:
  "": {style: PrepareModuleInputOutput, input_layouts: [Shard(0), Shard(1)], desired_input_layouts: [Replicate, Shard(1)],
       output_layouts: Shard(1), desired_output_layouts: Shard(1)}
  linear: ColwiseParallel

# Inputs by keyword: 1 collective. PyTorch gathers; the block that is needed is less.
//--- 12.mlir
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = nn.module "" class "TestModule" (%x as "x" at 0, %y as "y" at 1) {
  ^bb0(%a: tensor<4x8xf32>, %c: tensor<4x8xf32>):
    %l = nn.module "linear" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<4x8xf32>):
      %w = nn.parameter "linear.weight" : tensor<8x8xf32>
      %z = nn.linear %input, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      nn.yield %z : tensor<4x8xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = nn.add %l, %c : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    nn.yield %s : tensor<4x8xf32>
  } : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
//--- 12.yaml
# CHECK: func.func @main(%arg0: tensor<4x8xf32> {{.*}}, %arg1: tensor<1x8xf32>
# CHECK-SAME: -> (tensor<4x2xf32>
# CHECK: tp.all_
mesh: {tp: 4}
plan:
  "": {style: PrepareModuleInputOutput, input_kwarg_layouts: {y: Shard(0)}, desired_input_kwarg_layouts: {y: Replicate},
       input_layouts: [Replicate], desired_input_layouts: [Replicate], output_layouts: Shard(1), desired_output_layouts: Shard(1)}
  linear: {style: ColwiseParallel, use_local_output: false}

# PrepareModuleOutput: none, a local block.
//--- 13.mlir
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %r = nn.module "" class "Identity" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x16xf32>):
    nn.yield %input : tensor<8x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
//--- 13.yaml
# CHECK: func.func @main(%arg0: tensor<8x16xf32>
# CHECK-SAME: -> (tensor<2x16xf32>
# CHECK: tp.local_slice
mesh: {tp: 4}
plan: {"": {style: PrepareModuleOutput, output_layouts: Replicate, desired_output_layouts: Shard(0)}}

# SequenceParallel, LayerNorm: none.
//--- 14.mlir
func.func @main(%x: tensor<20x32x12xf32>) -> tensor<20x32x12xf32> {
  %r = nn.module "norm" class "LayerNorm" (%x as "input" at 0) {
  ^bb0(%input: tensor<20x32x12xf32>):
    %w = nn.parameter "norm.weight" : tensor<12xf32>
    %b = nn.parameter "norm.bias" : tensor<12xf32>
    %y = nn.layer_norm %input weight %w bias %b over 1 eps 1.0e-5 : (tensor<20x32x12xf32>, tensor<12xf32>, tensor<12xf32>) -> tensor<20x32x12xf32>
    nn.yield %y : tensor<20x32x12xf32>
  } : (tensor<20x32x12xf32>) -> tensor<20x32x12xf32>
  return %r : tensor<20x32x12xf32>
}
//--- 14.yaml
# CHECK: func.func @main(%arg0: tensor<20x8x12xf32>
# CHECK-SAME: -> (tensor<20x8x12xf32>
# CHECK: nn.parameter "norm.weight" {{.*}} : tensor<12xf32>
mesh: {tp: 4}
plan: {norm: SequenceParallel}

# The same without affine parameters.
//--- 14b.mlir
func.func @main(%x: tensor<20x32x12xf32>) -> tensor<20x32x12xf32> {
  %r = nn.module "norm" class "LayerNorm" (%x as "input" at 0) {
  ^bb0(%input: tensor<20x32x12xf32>):
    %y = nn.layer_norm %input over 1 eps 1.0e-5 : (tensor<20x32x12xf32>) -> tensor<20x32x12xf32>
    nn.yield %y : tensor<20x32x12xf32>
  } : (tensor<20x32x12xf32>) -> tensor<20x32x12xf32>
  return %r : tensor<20x32x12xf32>
}
//--- 14b.yaml
# CHECK: func.func @main(%arg0: tensor<20x8x12xf32>
# CHECK-SAME: -> (tensor<20x8x12xf32>
mesh: {tp: 4}
plan: {norm: SequenceParallel}

# SequenceParallel, RMSNorm: none.
//--- 15.mlir
func.func @main(%x: tensor<20x32x12xf32>) -> tensor<20x32x12xf32> {
  %r = nn.module "" class "Model" (%x as "x" at 0) {
  ^bb0(%a: tensor<20x32x12xf32>):
    %n = nn.module "norm" class "RMSNormPython" (%a as "x" at 0) {
    ^bb0(%input: tensor<20x32x12xf32>):
      %w = nn.parameter "norm.weight" : tensor<12xf32>
      %y = nn.rms_norm %input weight %w over 1 eps 1.0e-6 : (tensor<20x32x12xf32>, tensor<12xf32>) -> tensor<20x32x12xf32>
      nn.yield %y : tensor<20x32x12xf32>
    } : (tensor<20x32x12xf32>) -> tensor<20x32x12xf32>
    nn.yield %n : tensor<20x32x12xf32>
  } : (tensor<20x32x12xf32>) -> tensor<20x32x12xf32>
  return %r : tensor<20x32x12xf32>
}
//--- 15.yaml
# CHECK: func.func @main(%arg0: tensor<20x8x12xf32>
# CHECK-SAME: -> (tensor<20x8x12xf32>
mesh: {tp: 4}
plan: {norm: SequenceParallel}

# SequenceParallel, Dropout, which is nothing when evaluated: none.
//--- 16.mlir
func.func @main(%x: tensor<20x32x12xf32>) -> tensor<20x32x12xf32> {
  %r = nn.module "" class "Identity" (%x as "input" at 0) {
  ^bb0(%input: tensor<20x32x12xf32>):
    nn.yield %input : tensor<20x32x12xf32>
  } : (tensor<20x32x12xf32>) -> tensor<20x32x12xf32>
  return %r : tensor<20x32x12xf32>
}
//--- 16.yaml
# CHECK: func.func @main(%arg0: tensor<20x8x12xf32>
# CHECK-SAME: -> (tensor<20x8x12xf32>
mesh: {tp: 4}
plan: {"": SequenceParallel}

# SequenceParallel fed Shard(0): 1 collective.
//--- 17.mlir
func.func @main(%x: tensor<20x32x12xf32>) -> tensor<20x32x12xf32> {
  %r = nn.module "" class "Model" (%x as "x" at 0) {
  ^bb0(%a: tensor<20x32x12xf32>):
    %n = nn.module "norm" class "RMSNormPython" (%a as "x" at 0) {
    ^bb0(%input: tensor<20x32x12xf32>):
      %w = nn.parameter "norm.weight" : tensor<12xf32>
      %y = nn.rms_norm %input weight %w over 1 eps 1.0e-6 : (tensor<20x32x12xf32>, tensor<12xf32>) -> tensor<20x32x12xf32>
      nn.yield %y : tensor<20x32x12xf32>
    } : (tensor<20x32x12xf32>) -> tensor<20x32x12xf32>
    nn.yield %n : tensor<20x32x12xf32>
  } : (tensor<20x32x12xf32>) -> tensor<20x32x12xf32>
  return %r : tensor<20x32x12xf32>
}
//--- 17.yaml
# CHECK: func.func @main(%arg0: tensor<5x32x12xf32>
# CHECK-SAME: -> (tensor<20x8x12xf32>
# CHECK: tp.all_to_all %arg0
mesh: {tp: 4}
plan:
  "": {style: PrepareModuleInput, input_layouts: Shard(0), desired_input_layouts: Shard(0)}
  norm: SequenceParallel

# ColwiseParallel(output_layouts=Replicate()) twice: 2 all-gathers.
//--- 18.mlir
func.func @main(%x: tensor<8x10xf32>) -> tensor<8x10xf32> {
  %ha = nn.module "dummy_encoder.net1" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x10xf32>):
    %w = nn.parameter "dummy_encoder.net1.weight" : tensor<16x10xf32>
    %b = nn.parameter "dummy_encoder.net1.bias" : tensor<16xf32>
    %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
    %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    nn.yield %z : tensor<8x16xf32>
  } : (tensor<8x10xf32>) -> tensor<8x16xf32>
  %ga = nn.relu %ha : tensor<8x16xf32>
  %a = nn.module "dummy_encoder.net2" class "Linear" (%ga as "input" at 0) {
  ^bb0(%input: tensor<8x16xf32>):
    %w = nn.parameter "dummy_encoder.net2.weight" : tensor<10x16xf32>
    %b = nn.parameter "dummy_encoder.net2.bias" : tensor<10xf32>
    %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
    %z = nn.add %y, %b : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    nn.yield %z : tensor<8x10xf32>
  } : (tensor<8x16xf32>) -> tensor<8x10xf32>
  return %a : tensor<8x10xf32>
}
//--- 18.yaml
# CHECK: tp.all_gather
# CHECK: tp.all_gather
mesh: {tp: 2}
plan: {dummy_encoder.net?: {style: ColwiseParallel, output_layouts: Replicate}}

# A nested FQN.
//--- 19.mlir
func.func @main(%x: tensor<8x10xf32>) -> tensor<8x10xf32> {
  %ha = nn.module "dummy_encoder.net1" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x10xf32>):
    %w = nn.parameter "dummy_encoder.net1.weight" : tensor<16x10xf32>
    %b = nn.parameter "dummy_encoder.net1.bias" : tensor<16xf32>
    %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
    %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    nn.yield %z : tensor<8x16xf32>
  } : (tensor<8x10xf32>) -> tensor<8x16xf32>
  %ga = nn.relu %ha : tensor<8x16xf32>
  %a = nn.module "dummy_encoder.net2" class "Linear" (%ga as "input" at 0) {
  ^bb0(%input: tensor<8x16xf32>):
    %w = nn.parameter "dummy_encoder.net2.weight" : tensor<10x16xf32>
    %b = nn.parameter "dummy_encoder.net2.bias" : tensor<10xf32>
    %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
    %z = nn.add %y, %b : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    nn.yield %z : tensor<8x10xf32>
  } : (tensor<8x16xf32>) -> tensor<8x10xf32>
  return %a : tensor<8x10xf32>
}
//--- 19.yaml
# CHECK: nn.parameter "dummy_encoder.net1.weight" {{.*}} : tensor<8x10xf32>
# CHECK: nn.parameter "dummy_encoder.net2.weight" {{.*}} : tensor<10x8xf32>
# CHECK: tp.all_reduce sum
mesh: {tp: 2}
plan: {dummy_encoder.net1: ColwiseParallel, dummy_encoder.net2: RowwiseParallel}

# A Linear as the root module, RowwiseParallel.
//--- 20.mlir
func.func @main(%x: tensor<9x16xf32>) -> tensor<9x10xf32> {
  %r = nn.module "" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<9x16xf32>):
    %w = nn.parameter "weight" : tensor<10x16xf32>
    %b = nn.parameter "bias" : tensor<10xf32>
    %y = nn.linear %input, %w : (tensor<9x16xf32>, tensor<10x16xf32>) -> tensor<9x10xf32>
    %z = nn.add %y, %b : (tensor<9x10xf32>, tensor<10xf32>) -> tensor<9x10xf32>
    nn.yield %z : tensor<9x10xf32>
  } : (tensor<9x16xf32>) -> tensor<9x10xf32>
  return %r : tensor<9x10xf32>
}
//--- 20.yaml
# CHECK: func.func @main(%arg0: tensor<9x4xf32>
# CHECK-SAME: -> (tensor<9x10xf32>
# CHECK: nn.parameter "weight" {{.*}} : tensor<10x4xf32>
# CHECK: tp.all_reduce sum
mesh: {tp: 4}
plan: RowwiseParallel()

# A Linear as the root module, ColwiseParallel.
//--- 21.mlir
func.func @main(%x: tensor<8x10xf32>) -> tensor<8x16xf32> {
  %r = nn.module "" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x10xf32>):
    %w = nn.parameter "weight" : tensor<16x10xf32>
    %b = nn.parameter "bias" : tensor<16xf32>
    %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
    %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    nn.yield %z : tensor<8x16xf32>
  } : (tensor<8x10xf32>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
//--- 21.yaml
# CHECK: func.func @main(%arg0: tensor<8x10xf32>
# CHECK-SAME: -> (tensor<8x16xf32>
# CHECK: tp.all_gather %{{.+}} dim 1
mesh: {tp: 4}
plan: {style: ColwiseParallel, output_layouts: Replicate}

# PrepareModuleInput(Shard(0) to Replicate()).
//--- 22.mlir
func.func @main(%x: tensor<20x7xf32>) -> tensor<20x7xf32> {
  %r = nn.module "" class "Identity" (%x as "input" at 0) {
  ^bb0(%input: tensor<20x7xf32>):
    nn.yield %input : tensor<20x7xf32>
  } : (tensor<20x7xf32>) -> tensor<20x7xf32>
  return %r : tensor<20x7xf32>
}
//--- 22.yaml
# CHECK: func.func @main(%arg0: tensor<5x7xf32>
# CHECK-SAME: -> (tensor<20x7xf32>
# CHECK: tp.all_gather %arg0 dim 0
mesh: {tp: 4}
plan: {"": {style: PrepareModuleInput, input_layouts: Shard(0), desired_input_layouts: Replicate}}

# PrepareModuleOutput(Replicate() to Shard(0)).
//--- 23.mlir
func.func @main(%x: tensor<16x7xf32>) -> tensor<16x7xf32> {
  %r = nn.module "" class "Identity" (%x as "input" at 0) {
  ^bb0(%input: tensor<16x7xf32>):
    nn.yield %input : tensor<16x7xf32>
  } : (tensor<16x7xf32>) -> tensor<16x7xf32>
  return %r : tensor<16x7xf32>
}
//--- 23.yaml
# CHECK: func.func @main(%arg0: tensor<16x7xf32>
# CHECK-SAME: -> (tensor<4x7xf32>
# CHECK: tp.local_slice
mesh: {tp: 4}
plan: {"": {style: PrepareModuleOutput, output_layouts: Replicate, desired_output_layouts: Shard(0)}}

# PrepareModuleInputOutput of 7 columns over 4 ranks: the last one has one less. 1 all-gather, of
# which each rank uses a slice: an all-to-all moves less.
//--- 24.mlir
func.func @main(%x: tensor<20x7xf32>) -> tensor<20x7xf32> {
  %r = nn.module "" class "Identity" (%x as "input" at 0) {
  ^bb0(%input: tensor<20x7xf32>):
    nn.yield %input : tensor<20x7xf32>
  } : (tensor<20x7xf32>) -> tensor<20x7xf32>
  return %r : tensor<20x7xf32>
}
//--- 24.yaml
# CHECK: func.func @main(%arg0: tensor<5x7xf32>
# CHECK-SAME: -> (tensor<20x2xf32>
# CHECK: tp.all_to_all %arg0 split 1 concat 0
# CHECK: func.func @main_0(%arg0: tensor<5x7xf32>
# CHECK-SAME: -> (tensor<20x1xf32>
# CHECK: tp.all_to_all %arg0 split 1 concat 0
mesh: {tp: 4}
plan: {"": {style: PrepareModuleInputOutput, input_layouts: Shard(0), desired_input_layouts: Replicate, output_layouts: Replicate, desired_output_layouts: Shard(1)}}

# A star.
//--- 25.mlir
func.func @main(%x: tensor<8x10xf32>) -> tensor<8x10xf32> {
  %ha = nn.module "dummy_encoder.net1" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x10xf32>):
    %w = nn.parameter "dummy_encoder.net1.weight" : tensor<16x10xf32>
    %b = nn.parameter "dummy_encoder.net1.bias" : tensor<16xf32>
    %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
    %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    nn.yield %z : tensor<8x16xf32>
  } : (tensor<8x10xf32>) -> tensor<8x16xf32>
  %ga = nn.relu %ha : tensor<8x16xf32>
  %a = nn.module "dummy_encoder.net2" class "Linear" (%ga as "input" at 0) {
  ^bb0(%input: tensor<8x16xf32>):
    %w = nn.parameter "dummy_encoder.net2.weight" : tensor<10x16xf32>
    %b = nn.parameter "dummy_encoder.net2.bias" : tensor<10xf32>
    %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
    %z = nn.add %y, %b : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    nn.yield %z : tensor<8x10xf32>
  } : (tensor<8x16xf32>) -> tensor<8x10xf32>
  return %a : tensor<8x10xf32>
}
//--- 25.yaml
# CHECK: nn.parameter "dummy_encoder.net1.weight" {{.*}} : tensor<8x10xf32>
# CHECK: tp.all_gather
# CHECK: nn.parameter "dummy_encoder.net2.weight" {{.*}} : tensor<5x16xf32>
# CHECK: tp.all_gather
mesh: {tp: 2}
plan: {"dummy_encoder.net*": {style: ColwiseParallel, output_layouts: Replicate}}

# A range of characters.
//--- 27.mlir
func.func @main(%x: tensor<8x10xf32>) -> tensor<8x10xf32> {
  %ha = nn.module "dummy_encoder.net1" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x10xf32>):
    %w = nn.parameter "dummy_encoder.net1.weight" : tensor<16x10xf32>
    %b = nn.parameter "dummy_encoder.net1.bias" : tensor<16xf32>
    %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
    %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    nn.yield %z : tensor<8x16xf32>
  } : (tensor<8x10xf32>) -> tensor<8x16xf32>
  %ga = nn.relu %ha : tensor<8x16xf32>
  %a = nn.module "dummy_encoder.net2" class "Linear" (%ga as "input" at 0) {
  ^bb0(%input: tensor<8x16xf32>):
    %w = nn.parameter "dummy_encoder.net2.weight" : tensor<10x16xf32>
    %b = nn.parameter "dummy_encoder.net2.bias" : tensor<10xf32>
    %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
    %z = nn.add %y, %b : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    nn.yield %z : tensor<8x10xf32>
  } : (tensor<8x16xf32>) -> tensor<8x10xf32>
  return %a : tensor<8x10xf32>
}
//--- 27.yaml
# CHECK: nn.parameter "dummy_encoder.net1.weight" {{.*}} : tensor<8x10xf32>
# CHECK: tp.all_gather
# CHECK: nn.parameter "dummy_encoder.net2.weight" {{.*}} : tensor<5x16xf32>
# CHECK: tp.all_gather
mesh: {tp: 2}
plan: {"dummy_encoder.net[1-2]": {style: ColwiseParallel, output_layouts: Replicate}}

# Stacked layers, matched token by token: 1 all-reduce each (rows 28 and 57).
//--- 28.mlir
func.func @main(%x: tensor<8x10xf32>) -> tensor<8x10xf32> {
  %ha = nn.module "layers.0.net1" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x10xf32>):
    %w = nn.parameter "layers.0.net1.weight" : tensor<16x10xf32>
    %b = nn.parameter "layers.0.net1.bias" : tensor<16xf32>
    %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
    %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    nn.yield %z : tensor<8x16xf32>
  } : (tensor<8x10xf32>) -> tensor<8x16xf32>
  %ga = nn.relu %ha : tensor<8x16xf32>
  %a = nn.module "layers.0.net2" class "Linear" (%ga as "input" at 0) {
  ^bb0(%input: tensor<8x16xf32>):
    %w = nn.parameter "layers.0.net2.weight" : tensor<10x16xf32>
    %b = nn.parameter "layers.0.net2.bias" : tensor<10xf32>
    %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
    %z = nn.add %y, %b : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    nn.yield %z : tensor<8x10xf32>
  } : (tensor<8x16xf32>) -> tensor<8x10xf32>
  %hc = nn.module "layers.1.net1" class "Linear" (%a as "input" at 0) {
  ^bb0(%input: tensor<8x10xf32>):
    %w = nn.parameter "layers.1.net1.weight" : tensor<16x10xf32>
    %b = nn.parameter "layers.1.net1.bias" : tensor<16xf32>
    %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
    %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    nn.yield %z : tensor<8x16xf32>
  } : (tensor<8x10xf32>) -> tensor<8x16xf32>
  %gc = nn.relu %hc : tensor<8x16xf32>
  %c = nn.module "layers.1.net2" class "Linear" (%gc as "input" at 0) {
  ^bb0(%input: tensor<8x16xf32>):
    %w = nn.parameter "layers.1.net2.weight" : tensor<10x16xf32>
    %b = nn.parameter "layers.1.net2.bias" : tensor<10xf32>
    %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
    %z = nn.add %y, %b : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
    nn.yield %z : tensor<8x10xf32>
  } : (tensor<8x16xf32>) -> tensor<8x10xf32>
  return %c : tensor<8x10xf32>
}
//--- 28.yaml
# CHECK: nn.parameter "layers.0.net1.weight" {{.*}} : tensor<8x10xf32>
# CHECK: tp.all_reduce sum
# CHECK: nn.parameter "layers.1.net2.weight" {{.*}} : tensor<10x8xf32>
# CHECK: tp.all_reduce sum
mesh: {tp: 2}
plan: {"layers.*.net[1]": ColwiseParallel, "layers.*.net[2]": RowwiseParallel}

# A root entry around both layers: a reduce-scatter and an all-gather, no gather of what came whole.
//--- 30.mlir
func.func @main(%x: tensor<8x10xf32>) -> tensor<8x10xf32> {
  %r = nn.module "" class "MLP" (%x as "x" at 0) {
  ^bb0(%in: tensor<8x10xf32>):
    %ha = nn.module "net1" class "Linear" (%in as "input" at 0) {
    ^bb0(%input: tensor<8x10xf32>):
      %w = nn.parameter "net1.weight" : tensor<16x10xf32>
      %b = nn.parameter "net1.bias" : tensor<16xf32>
      %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
      %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
      nn.yield %z : tensor<8x16xf32>
    } : (tensor<8x10xf32>) -> tensor<8x16xf32>
    %ga = nn.relu %ha : tensor<8x16xf32>
    %a = nn.module "net2" class "Linear" (%ga as "input" at 0) {
    ^bb0(%input: tensor<8x16xf32>):
      %w = nn.parameter "net2.weight" : tensor<10x16xf32>
      %b = nn.parameter "net2.bias" : tensor<10xf32>
      %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
      %z = nn.add %y, %b : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
      nn.yield %z : tensor<8x10xf32>
    } : (tensor<8x16xf32>) -> tensor<8x10xf32>
    nn.yield %a : tensor<8x10xf32>
  } : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return %r : tensor<8x10xf32>
}
//--- 30.yaml
# CHECK: func.func @main(%arg0: tensor<8x10xf32>
# CHECK-SAME: -> (tensor<8x10xf32>
# CHECK: tp.reduce_scatter sum
# CHECK: tp.all_gather
mesh: {tp: 2}
plan:
  "": {style: PrepareModuleInputOutput, input_layouts: Replicate, desired_input_layouts: Shard(0), output_layouts: Shard(0), desired_output_layouts: Replicate}
  net1: {style: ColwiseParallel, input_layouts: Shard(0)}
  net2: {style: RowwiseParallel, output_layouts: Shard(0)}
