// The strings of transformers' tp_plan, versions 4 and 5.
// RUN: split-file %s %t
// RUN: tp-opt %S/Inputs/fused.mlir --tp-apply-plan=plan=%t/packed.yaml --verify-roundtrip | FileCheck %t/packed.yaml
// RUN: tp-opt %S/Inputs/fused.mlir --tp-apply-plan=plan=%t/segments.yaml | FileCheck %t/segments.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/gather.yaml | FileCheck %t/gather.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/gather4.yaml | FileCheck %t/gather.yaml
// RUN: tp-opt %S/Inputs/attention.mlir --tp-apply-plan=plan=%t/whole.yaml | FileCheck %t/whole.yaml
// RUN: tp-opt %t/embedding.mlir --tp-apply-plan=plan=%t/rows.yaml | FileCheck %t/rows.yaml
// RUN: tp-opt %t/embedding.mlir --tp-apply-plan=plan=%t/columns.yaml | FileCheck %t/columns.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/tables.yaml | FileCheck %t/tables.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/unmatched.yaml -o %t/out.mlir 2>&1 | FileCheck %t/unmatched.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/unmatched-direct.yaml -o %t/out.mlir 2>&1 | FileCheck %t/unmatched-direct.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/unmatched-error.yaml -o %t/out.mlir 2>&1 | FileCheck %t/unmatched-error.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/none.yaml -o %t/out.mlir 2>&1 | FileCheck %t/none.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/invalid.yaml -o %t/out.mlir 2>&1 | FileCheck %t/invalid.yaml --implicit-check-not=error:

// Each half of the weight is split on its own, and so is the output.
//--- packed.yaml
# CHECK: nn.parameter "gate_up.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp | 16, 16}, {}]>}
# CHECK: nn.parameter "gate_up.bias" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp | 16, 16}]>}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {tp | 16, 16}]> {fqn = "gate_up"
# CHECK: nn.parameter "down.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
mesh: {tp: 2}
match: hf
plan:
  gate_up: packed_colwise
  down: rowwise

//--- segments.yaml
# CHECK: nn.parameter "gate_up.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp | 24, 4, 4}, {}]>}
# CHECK: nn.parameter "down.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp | 4, 4, 4, 4}]>}
mesh: {tp: 2}
plan:
  gate_up: {style: packed_colwise, segments: [24, 4, 4]}
  down: {style: packed_rowwise, blocks: 4}

//--- gather.yaml
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {fqn = "net1", reason = "gather{{.*}}input_layouts Replicate"}
# CHECK: nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {fqn = "net1", reason = "gather{{.*}}output_layouts Replicate"}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {fqn = "net2", reason = "gather{{.*}} input_layouts Replicate"}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {tp}]> {fqn = "net2", reason = "gather{{.*}}desired_input_layouts Shard(-1)"}
# CHECK: nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
mesh: {tp: 2}
match: hf
plan: {net1: colwise_gather_output, net2: rowwise_split_input}

//--- gather4.yaml
mesh: {tp: 2}
match: fnmatch
plan: {net1: colwise_rep, net2: rowwise_rep}

//--- whole.yaml
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {tp}, {}]> {fqn = "norm", reason = "{{.*}}sequence_parallel input_layouts Shard(1)"}
# CHECK: nn.parameter "norm.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}]>}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {tp}, {}]> {fqn = "norm", reason = "{{.*}}sequence_parallel output_layouts Shard(1)"}
# CHECK: nn.parameter "wq.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {}]>}
# CHECK: nn.parameter "wo.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {}]>}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}, {}]> {fqn = "wo", reason = "{{.*}}all_reduce output_layouts Replicate"}
mesh: {tp: 2}
plan:
  norm: sequence_parallel
  wq: replicated_with_grad_allreduce
  "w[o]": NoParallel
  wo: all_reduce

//--- embedding.mlir
func.func @main(%i: tensor<4x2xi64>) -> tensor<4x2x8xf32> {
  %r = nn.module "embed" class "Embedding" (%i as "input" at 0) {
  ^bb0(%input: tensor<4x2xi64>):
    %w = nn.parameter "embed.weight" : tensor<16x8xf32>
    %y = nn.embedding %input, %w : (tensor<4x2xi64>, tensor<16x8xf32>) -> tensor<4x2x8xf32>
    nn.yield %y : tensor<4x2x8xf32>
  } : (tensor<4x2xi64>) -> tensor<4x2x8xf32>
  return %r : tensor<4x2x8xf32>
}

//--- rows.yaml
# CHECK: tensor<4x2xi64> {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {}]>}
# CHECK: nn.parameter "embed.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
mesh: {tp: 2}
plan: {embed: embedding_rowwise}

//--- columns.yaml
# CHECK: nn.parameter "embed.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
# CHECK: embedding_colwise output_layouts Replicate
mesh: {tp: 2}
plan: {embed: embedding_colwise}

//--- tables.yaml
# As the key of a parameter, which needn't be an embedding's.
# CHECK: nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
# CHECK: nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
mesh: {tp: 2}
plan: {net1.weight: embedding_rowwise, net2.weight: embedding_colwise}

//--- unmatched.yaml
# A rule for a module that only other configurations have.
# CHECK: :[[#@LINE+5]]:3: warning: pattern 'net3' matches no module
# CHECK-NOT: error:
mesh: {tp: 2}
match: hf
plan:
  net3: colwise
  net1: colwise

//--- unmatched-error.yaml
# CHECK: :[[#@LINE+5]]:3: error: pattern 'net3' matches no module
mesh: {tp: 2}
match: hf
on_unmatched: error
plan:
  net3: colwise
  net1: colwise

//--- unmatched-direct.yaml
# Two keys with other placements aren't one rule.
# CHECK: :[[#@LINE+5]]:3: error: pattern 'model.net1.weight' matches no parameter
mesh: {tp: 2}
match: hf
on_unmatched: error
plan:
  model.net1.weight: [Shard(0)]
  net1.weight: [Replicate]

//--- none.yaml
# CHECK: :[[#@LINE+5]]:3: error: pattern 'net3' matches no module
# CHECK: :[[#@LINE+5]]:3: error: pattern 'net4' matches no module
mesh: {tp: 2}
match: hf
plan:
  net3: colwise
  net4: colwise

//--- invalid.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:9: error: unknown style 'colwize'; did you mean 'colwise'?
  net?: colwize
# CHECK: :[[#@LINE+1]]:33: error: blocks are segments of one size; give either blocks or segments
  n*t1: {style: packed_colwise, blocks: 2, segments: [8, 8]}
# CHECK: :[[#@LINE+3]]:3: error: the segments of Shard(0, segments=[8, 4]) don't add up to the size 10 of dimension 0 of 'net2.weight'
# CHECK: :[[#@LINE+2]]:3: error: the segments of Shard(0, segments=[8, 4]) don't add up to the size 10 of dimension 0 of 'net2.bias'
# CHECK: :[[#@LINE+1]]:3: error: the segments of Shard(-1, segments=[8, 4]) don't add up to the size 10 of dimension 1 of output 0 of 'net2'
  n*t2: {style: packed_colwise, segments: [8, 4]}
# CHECK: :[[#@LINE+1]]:45: error: segments must be a list of positive integers, found '8'
  net[1]: {style: packed_rowwise, segments: 8}
# CHECK: :[[#@LINE+1]]:35: error: blocks must be at least 1, found 0
  net[2]: {style: packed_rowwise, blocks: 0}
