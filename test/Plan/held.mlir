// Modules whose parameters are used but which are never called, as in
// nn.MultiheadAttention: the styles for weights place them.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/plan.yaml | FileCheck %t/plan.yaml
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/invalid.yaml -o %t/out.mlir 2>&1 | FileCheck %t/invalid.yaml --implicit-check-not=error:

//--- model.mlir
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = nn.module "self_attn" class "MultiheadAttention" (%x as "query" at 0) {
  ^bb0(%q: tensor<4x8xf32>):
    %wi = nn.parameter "self_attn.in_proj_weight" : tensor<24x8xf32>
    %0 = nn.linear %q, %wi : (tensor<4x8xf32>, tensor<24x8xf32>) -> tensor<4x24xf32>
    %1 = nn.slice %0 dim 1 start 16 step 1 : tensor<4x24xf32> -> tensor<4x8xf32>
    %wo = nn.parameter "self_attn.out_proj.weight" : tensor<8x8xf32>
    %bo = nn.parameter "self_attn.out_proj.bias" : tensor<8xf32>
    %2 = nn.linear %1, %wo : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = nn.add %2, %bo : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    nn.yield %3 : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

//--- plan.yaml
# CHECK: nn.parameter "self_attn.in_proj_weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp | 8, 8, 8}, {}]>}
# CHECK: nn.parameter "self_attn.out_proj.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
# CHECK: nn.parameter "self_attn.out_proj.bias" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}]>}
mesh: {tp: 2}
plan:
  self_attn.in_proj_weight: {style: packed_colwise, blocks: 3}
  self_attn.out_proj: RowwiseParallel

//--- invalid.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: ColwiseParallel can't shard 'self_attn' of class 'MultiheadAttention'; it shards nn.Linear and nn.Embedding
  self_attn: ColwiseParallel
# CHECK: :[[#@LINE+1]]:3: error: pattern 'self_attn.out_proj' matches no module: the model never calls 'self_attn.out_proj', it uses its parameters; they can have a style for weights, such as ColwiseParallel, or placements
  self_attn.out_proj: SequenceParallel
# CHECK: :[[#@LINE+1]]:3: error: PairwiseParallel needs two nn.Linear modules, one after the other, which neither 'self_attn' of class 'MultiheadAttention' nor a module inside of it calls
  self_att?: PairwiseParallel
# CHECK: :[[#@LINE+1]]:3: error: pattern 'self_attn.in_proj_weight' matches no module: 'self_attn.in_proj_weight' is a parameter; styles apply to modules, here 'self_attn'
  self_attn.in_proj_weight: ColwiseParallel
