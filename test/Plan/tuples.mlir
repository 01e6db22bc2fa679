// An argument of forward that is a tuple of tensors has one position and one name.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/alone.yaml | FileCheck %t/alone.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/all.yaml | FileCheck %t/all.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/each.yaml | FileCheck %t/all.yaml --check-prefix=EACH
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/named.yaml | FileCheck %t/all.yaml --check-prefix=EACH
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/invalid.yaml -o %t/out.mlir 2>&1 | FileCheck %t/invalid.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/nothing.yaml -o %t/out.mlir 2>&1 | FileCheck %t/nothing.yaml --implicit-check-not=error:

//--- model.mlir
func.func @main(%x: tensor<4x8xf32>, %cos: tensor<4x8xf32>, %sin: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = nn.module "attn" class "Attention" (%x as "hidden_states" at 0, %cos as "position_embeddings.0" at 1, %sin as "position_embeddings.1" at 1) {
  ^bb0(%h: tensor<4x8xf32>, %c: tensor<4x8xf32>, %s: tensor<4x8xf32>):
    %0 = nn.mul %h, %c : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = nn.add %0, %s : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    nn.yield %1 : tensor<4x8xf32>
  } : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// PyTorch leaves the tuple alone.
//--- alone.yaml
# CHECK-COUNT-2: tp.redistribute %{{arg0|[0-9]+}}
# CHECK-NOT: tp.redistribute
mesh: {tp: 2}
plan:
  attn: {style: PrepareModuleInput, input_layouts: [Shard(1), null], desired_input_layouts: [Replicate, null]}

# One placement is for all tensors of the tuple.
//--- all.yaml
# CHECK: %[[H:.+]] = tp.redistribute %arg0 to <@mesh, {{\[}}{}, {tp}]>
# CHECK: %[[C:.+]] = tp.redistribute %arg1 to <@mesh, {{\[}}{tp}, {}]>
# CHECK: %[[S:.+]] = tp.redistribute %arg2 to <@mesh, {{\[}}{tp}, {}]>
# CHECK: nn.module "attn"
# EACH: tp.redistribute %arg1 to <@mesh, {{\[}}{tp}, {}]>
# EACH: tp.redistribute %{{[0-9]+}} to <@mesh, {{\[}}{}, {}]>
# EACH: tp.redistribute %arg2 to <@mesh, {{\[}}{}, {tp}]>
# EACH: tp.redistribute %{{[0-9]+}} to <@mesh, {{\[}}{}, {}]>
# EACH: nn.module "attn"
mesh: {tp: 2}
plan:
  attn: {style: PrepareModuleInput, input_layouts: [Shard(1), Shard(0)], desired_input_layouts: [Shard(1), Shard(0)]}

//--- each.yaml
mesh: {tp: 2}
plan:
  attn: {style: PrepareModuleInput, input_layouts: [null, [Shard(0), Shard(1)]], desired_input_layouts: [null, Replicate]}

//--- named.yaml
mesh: {tp: 2}
plan:
  attn:
    style: PrepareModuleInput
    input_kwarg_layouts: {position_embeddings: [Shard(0), Shard(1)]}
    desired_input_kwarg_layouts: {position_embeddings: [Replicate, Replicate]}

//--- invalid.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:37: error: input_layouts has 3 placements for 'position_embeddings' of 'attn', which has 2 tensors
  attn: {style: PrepareModuleInput, input_layouts: [null, [R, R, R]], desired_input_layouts: [null, R]}
# CHECK: :[[#@LINE+1]]:88: error: input_layouts and desired_input_layouts have 2 and 3 placements at position 1
  at[t]n: {style: PrepareModuleInput, input_layouts: [null, [S(0), S(0)]],             desired_input_layouts: [null, [R, R, R]]}
# CHECK: :[[#@LINE+1]]:61: error: input_kwarg_layouts of hidden_states: the list is empty; write null to leave the input unchanged
  att[n]: {style: PrepareModuleInput, input_kwarg_layouts: {hidden_states: []}, desired_input_kwarg_layouts: {hidden_states: R}}

//--- nothing.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:37: error: 'attn' has no tensor input 'sin'; its tensor inputs: 'hidden_states' at 0, 'position_embeddings' (2 tensors) at 1
  attn: {style: PrepareModuleInput, input_kwarg_layouts: {sin: S(0)}, desired_input_kwarg_layouts: {sin: R}}
