// Patterns that match no module, and modules that two entries match.
// RUN: split-file %s %t
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/patterns.yaml -o %t/out.mlir 2>&1 | FileCheck %t/patterns.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/twice.yaml -o %t/out.mlir 2>&1 | FileCheck %t/twice.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/class.yaml -o %t/out.mlir 2>&1 | FileCheck %t/class.yaml --implicit-check-not=error:

//--- model.mlir
func.func @main(%ids: tensor<2x8xi64>, %mask: tensor<2x8xf32>) -> (tensor<2x8x16xf32>, tensor<2x16xf32>) {
  %r:2 = nn.module "" class "Encoder" (%ids as "ids" at 0, %mask as "mask" at 1) {
  ^bb0(%i: tensor<2x8xi64>, %m: tensor<2x8xf32>):
    %e = nn.module "embed" class "Embedding" (%i as "input" at 0) {
    ^bb0(%input: tensor<2x8xi64>):
      %w = nn.parameter "embed.weight" : tensor<32x16xf32>
      %y = nn.embedding %input, %w : (tensor<2x8xi64>, tensor<32x16xf32>) -> tensor<2x8x16xf32>
      nn.yield %y : tensor<2x8x16xf32>
    } : (tensor<2x8xi64>) -> tensor<2x8x16xf32>
    %b:2 = nn.module "layers.0" class "Block" (%e as "x" at 0, %m as "mask" at 2) {
    ^bb0(%x: tensor<2x8x16xf32>, %mm: tensor<2x8xf32>):
      %n = nn.module "layers.0.norm" class "Scale" (%x as "x" at 0) {
      ^bb0(%input: tensor<2x8x16xf32>):
        %w = nn.parameter "layers.0.norm.weight" : tensor<16xf32>
        %y = nn.mul %input, %w : (tensor<2x8x16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
        nn.yield %y : tensor<2x8x16xf32>
      } : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
      nn.yield %n, %mm : tensor<2x8x16xf32>, tensor<2x8xf32>
    } : (tensor<2x8x16xf32>, tensor<2x8xf32>) -> (tensor<2x8x16xf32>, tensor<2x8xf32>)
    %h = nn.module "head" class "TiedLinear" (%b#1 as "input" at 0) {
    ^bb0(%input: tensor<2x8xf32>):
      %w = nn.parameter "head.weight" : tensor<16x8xf32>
      %y = nn.linear %input, %w : (tensor<2x8xf32>, tensor<16x8xf32>) -> tensor<2x16xf32>
      nn.yield %y : tensor<2x16xf32>
    } : (tensor<2x8xf32>) -> tensor<2x16xf32>
    nn.yield %b#0, %h : tensor<2x8x16xf32>, tensor<2x16xf32>
  } : (tensor<2x8xi64>, tensor<2x8xf32>) -> (tensor<2x8x16xf32>, tensor<2x16xf32>)
  return %r#0, %r#1 : tensor<2x8x16xf32>, tensor<2x16xf32>
}

//--- patterns.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: pattern 'heda' matches no module: no submodule 'heda' in the root module; did you mean 'head'?
  heda: ColwiseParallel
# CHECK: :[[#@LINE+1]]:3: error: pattern 'layers.*.nrom' matches no module: no submodule 'nrom' in 'layers.0'; did you mean 'norm'?
  layers.*.nrom: SequenceParallel
# CHECK: :[[#@LINE+1]]:3: error: pattern 'layers.*.attention' matches no module: no submodule 'attention' in 'layers.0'; its submodules are 'norm'
  layers.*.attention: SequenceParallel
# CHECK: :[[#@LINE+1]]:3: error: pattern 'head.weight' matches no module: 'head.weight' is a parameter; styles apply to modules, here 'head'
  head.weight: ColwiseParallel
# CHECK: :[[#@LINE+1]]:3: error: pattern 'layers' matches no module: the model never calls 'layers' itself, only its submodules '0'
  layers: SequenceParallel
# CHECK: :[[#@LINE+1]]:3: error: pattern '0.norm' matches no module: no submodule '0' in the root module; did you mean 'layers.0.norm'?
  0.norm: SequenceParallel
# CHECK: :[[#@LINE+1]]:3: error: pattern 'head.proj' matches no module: 'head' has no submodules
  head.proj: SequenceParallel
# CHECK: :[[#@LINE+1]]:3: error: pattern '*.norm' matches no module: a '*' stands for a part of one name, and never for a dot; did you mean 'layers.*.norm'?
  "*.norm": SequenceParallel
# CHECK: :[[#@LINE+1]]:3: error: pattern '*.*.*.*.*' matches no module: 'layers.0.norm' has no submodules
  "*.*.*.*.*": SequenceParallel

//--- twice.yaml
mesh: {tp: 2}
plan:
  head: ColwiseParallel
# CHECK: :[[#@LINE+2]]:3: error: module 'head' is matched by two entries
# CHECK: :[[#@LINE-2]]:3: note: it has ColwiseParallel from 'head' here
  h*: RowwiseParallel
  embed: {style: PrepareModuleInput, input_layouts: Shard(0), desired_input_layouts: Replicate}
# CHECK: :[[#@LINE+2]]:3: error: module 'embed' is matched by two entries
# CHECK: :[[#@LINE-2]]:3: note: it has PrepareModuleInput from 'embed' here
  embe?: {style: PrepareModuleInput, input_layouts: Shard(0), desired_input_layouts: Replicate}

//--- class.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: ColwiseParallel can't shard 'layers.0.norm' of class 'Scale'; it shards nn.Linear and nn.Embedding; a plan can place parameters of other modules by name: layers.0.norm.weight: [Shard(0)]
  layers.0.norm: ColwiseParallel
# CHECK: :[[#@LINE+1]]:3: error: RowwiseParallel can't shard the root module of class 'Encoder'; it shards nn.Linear and nn.Embedding
  "": RowwiseParallel
# CHECK: :[[#@LINE+1]]:3: error: RowwiseParallel can't shard 'layers.0' of class 'Block'; it shards nn.Linear and nn.Embedding
  layers.0: RowwiseParallel
