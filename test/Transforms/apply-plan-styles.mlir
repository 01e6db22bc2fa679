// The placements of each style, on modules other than nn.Linear.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/embedding-colwise.yaml | FileCheck %t/embedding-colwise.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/embedding-rowwise.yaml | FileCheck %t/embedding-rowwise.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/subclass.yaml | FileCheck %t/subclass.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/sequence.yaml | FileCheck %t/sequence.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/sequence-dim.yaml | FileCheck %t/sequence-dim.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/input.yaml | FileCheck %t/input.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/keyword.yaml | FileCheck %t/keyword.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/output.yaml | FileCheck %t/output.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/both.yaml | FileCheck %t/both.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/two.yaml | FileCheck %t/two.yaml

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

//--- embedding-colwise.yaml
# CHECK: %[[IDS:.+]] = tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {{.*}} : tensor<2x8xi64>
# CHECK: %[[E:.+]] = nn.module "embed" class "Embedding" (%[[IDS]] as
# CHECK: nn.parameter "embed.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
# CHECK: tp.redistribute %[[E]] to <@mesh, {{\[}}{}, {}, {tp}]>
mesh: {tp: 2}
plan: {embed: ColwiseParallel}

//--- embedding-rowwise.yaml
# Rows are looked up by whole indices, however these come in.
# CHECK: %[[DECLARED:.+]] = tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {tp}]> {{.*}}RowwiseParallel input_layouts Shard(-1)"
# CHECK: %[[DESIRED:.+]] = tp.redistribute %[[DECLARED]] to <@mesh, {{\[}}{}, {}]> {{.*}}RowwiseParallel desired_input_layouts Replicate"
# CHECK: %[[E:.+]] = nn.module "embed" class "Embedding" (%[[DESIRED]] as
# CHECK: nn.parameter "embed.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
# CHECK: tp.redistribute %[[E]] to <@mesh, {{\[}}{}, {tp}, {}]> {{.*}}RowwiseParallel output_layouts Shard(1)"
mesh: {tp: 2}
plan: {embed: {style: RowwiseParallel, output_layouts: Shard(1)}}

//--- subclass.yaml
# A subclass of nn.Linear, known by what it holds.
# CHECK: nn.module "head" class "TiedLinear"
# CHECK: nn.parameter "head.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
mesh: {tp: 2}
plan: {head: {style: ColwiseParallel, output_layouts: Shard(0)}}
# CHECK: to <@mesh, {{\[}}{tp}, {}]> {{.*}}ColwiseParallel output_layouts Shard(0)"

//--- sequence.yaml
# CHECK: %[[IN:.+]] = tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {tp}, {}]> {fqn = "layers.0.norm", reason = "sequence.yaml:[[#@LINE+5]]:8: SequenceParallel sequence_dim Shard(1)"}
# CHECK: %[[N:.+]] = nn.module "layers.0.norm" class "Scale" (%[[IN]] as
# CHECK: nn.parameter "layers.0.norm.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}]>}
# CHECK: tp.redistribute %[[N]] to <@mesh, {{\[}}{}, {tp}, {}]>
mesh: {tp: 2}
plan: {layers.*.norm: SequenceParallel}

//--- sequence-dim.yaml
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}, {tp}]> {{.*}}SequenceParallel sequence_dim Shard(2)"
mesh: {tp: 2}
plan: {layers.*.norm: {style: SequenceParallel, sequence_dim: 2}}

//--- input.yaml
# The mask is argument 2 of forward; argument 1 is no tensor.
# CHECK: %[[D:.+]] = tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {tp}, {}]> {fqn = "layers.0", reason = "input.yaml:[[#@LINE+6]]:41: PrepareModuleInput input_layouts Shard(1)"}
# CHECK: %[[X:.+]] = tp.redistribute %[[D]] to <@mesh, {{\[}}{}, {}, {}]> {fqn = "layers.0", reason = "input.yaml:[[#@LINE+6]]:14: PrepareModuleInput desired_input_layouts Replicate"}
# CHECK: %[[M:.+]] = tp.redistribute %{{.+}} to <@mesh, {{\[}}{tp}, {}]> {{.*}}input_layouts Shard(0)"
# CHECK: nn.module "layers.0" class "Block" (%[[X]] as "x" at 0, %[[M]] as "mask" at 2)
mesh: {tp: 2}
plan:
  layers.0: {style: PrepareModuleInput, input_layouts: [Shard(1), null, Shard(0)],
             desired_input_layouts: [Replicate, null, null]}
# CHECK-NOT: tp.redistribute

//--- keyword.yaml
# CHECK-NOT: PrepareModuleInput input_layouts
# CHECK: %[[D:.+]] = tp.redistribute %{{.+}} to <@mesh, {{\[}}{tp}, {}]> {{.*}}PrepareModuleInput input_kwarg_layouts Shard(0)"
# CHECK: %[[M:.+]] = tp.redistribute %[[D]] to <@mesh, {{\[}}{}, {}]> {{.*}}PrepareModuleInput desired_input_kwarg_layouts Replicate"
# CHECK: nn.module "layers.0" class "Block" (%{{.+}} as "x" at 0, %[[M]] as "mask" at 2)
mesh: {tp: 2}
plan:
  layers.0:
    style: PrepareModuleInput
    input_kwarg_layouts: {mask: Shard(0)}
    desired_input_kwarg_layouts: {mask: Replicate}

//--- output.yaml
# CHECK: %[[B:.+]]:2 = nn.module "layers.0"
# CHECK: %[[D:.+]] = tp.redistribute %[[B]]#1 to <@mesh, {{\[}}{}, {}]> {{.*}}PrepareModuleOutput output_layouts Replicate"
# CHECK: %[[M:.+]] = tp.redistribute %[[D]] to <@mesh, {{\[}}{}, {tp}]> {{.*}}PrepareModuleOutput desired_output_layouts Shard(1)"
# CHECK: nn.module "head" class "TiedLinear" (%[[M]] as
mesh: {tp: 2}
plan:
  layers.0: {style: PrepareModuleOutput, output_layouts: [null, Replicate], desired_output_layouts: [null, Shard(1)]}

//--- both.yaml
# CHECK: %[[IDS:.+]] = tp.redistribute %arg0 to <@mesh, {{\[}}{tp}, {}]> {fqn = "", reason = "both.yaml:[[#@LINE+5]]:46: PrepareModuleInputOutput input_layouts Shard(0)"}
# CHECK: %[[R:.+]]:2 = nn.module "" class "Encoder" (%{{.+}} as "ids" at 0, %arg1 as "mask" at 1)
# CHECK: %[[OUT:.+]] = tp.redistribute %[[R]]#0 to <@mesh, {{\[}}{tp}, {}, {}]> {{.*}}PrepareModuleInputOutput output_layouts Shard(0)"
# CHECK: return %{{.+}}, %[[R]]#1
mesh: {tp: 2}
plan: {"": {style: PrepareModuleInputOutput, input_layouts: [Shard(0), null], desired_input_layouts: [Replicate, null],
            output_layouts: [Shard(0), null], desired_output_layouts: [Replicate, null]}}

//--- two.yaml
# Entries that decide about different things may meet at a module.
# CHECK: tp.redistribute %arg0 {{.*}}PrepareModuleInput input_layouts Shard(0)"
# CHECK: tp.redistribute %{{.+}}#1 {{.*}}PrepareModuleOutput output_layouts Replicate"
mesh: {tp: 2}
plan:
  "": {style: PrepareModuleInput, input_layouts: [Shard(0), null], desired_input_layouts: [Shard(0), null]}
  embed: RowwiseParallel
  "layers.?": {style: PrepareModuleOutput, output_layouts: [null, Replicate], desired_output_layouts: [null, Replicate]}
  "layers.[0-9]": {style: PrepareModuleInput, input_layouts: [Shard(1), null, null], desired_input_layouts: [Replicate, null, null]}
