// The vocabulary of PyTorch 2.0 and 2.1.
// RUN: split-file %s %t
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-parallelize=plan=%t/pair.yaml | FileCheck %t/pair.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-parallelize=plan=%t/slides.yaml | FileCheck %t/pair.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-parallelize=plan=%t/sequence.yaml | FileCheck %t/sequence.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-parallelize=plan=%t/functions.yaml | FileCheck %t/sequence.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/all.yaml | FileCheck %t/all.yaml
// RUN: tp-opt %t/attention.mlir --tp-apply-plan=plan=%t/pair-attention.yaml | FileCheck %t/pair-attention.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/defaults.yaml | FileCheck %t/defaults.yaml
// RUN: tp-opt %t/blocks.mlir --tp-apply-plan=plan=%t/children.yaml | FileCheck %t/children.yaml
// RUN: tp-opt %t/blocks.mlir --tp-apply-plan=plan=%t/children-2d.yaml | FileCheck %t/children-2d.yaml
// RUN: tp-opt %t/blocks.mlir --tp-apply-plan=plan=%t/first-dim.yaml 2>&1 >%t/first-dim.mlir | FileCheck %t/first-dim.yaml --check-prefix=WARNING
// RUN: FileCheck %t/first-dim.yaml < %t/first-dim.mlir
// RUN: tp-opt %t/blocks.mlir --tp-apply-plan=plan=%t/children-sequence.yaml | FileCheck %t/children-sequence.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/invalid.yaml -o %t/out.mlir 2>&1 | FileCheck %t/invalid.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/grid.yaml -o %t/out.mlir 2>&1 | FileCheck %t/grid.yaml --implicit-check-not=error:

//--- pair.yaml
# CHECK:     nn.parameter "net1.weight" {{.*}} : tensor<8x10xf32>
# CHECK:     nn.parameter "net2.weight" {{.*}} : tensor<10x8xf32>
# CHECK:     tp.all_reduce sum {{.*}} : tensor<8x10xf32>
# CHECK-NOT: = tp.
mesh: {tp: 2}
plan: PairwiseParallel()

//--- slides.yaml
mesh: {tp: 2}
plan: {"": PairwiseParallelStyle}

# The SequenceParallel of then, on a module that calls pairs.
//--- sequence.yaml
# CHECK:     func.func @main(%{{.+}}: tensor<4x10xf32>
# CHECK:     tp.all_gather {{.*}} -> tensor<8x10xf32>
# CHECK:     tp.reduce_scatter sum {{.*}} -> tensor<4x10xf32>
# CHECK-NOT: = tp.
mesh: {tp: 2}
plan: SequenceParallel

//--- functions.yaml
mesh: {tp: 2}
plan:
  net1: {style: ColwiseParallel, _prepare_input: make_input_reshard_replicate, _prepare_output: make_sharded_output_tensor}
  net2: {style: RowwiseParallel, _prepare_input: make_input_shard_1d_last_dim, _prepare_output: make_output_reshard_tensor}

//--- all.yaml
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {tp}]> {fqn = "net1", reason = "all.yaml:[[#@LINE+8]]:34: ColwiseParallel _prepare_input Shard(1)"}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {fqn = "net1", reason = "{{.*}}desired_input_layouts Replicate"}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {fqn = "net1", reason = "all.yaml:[[#@LINE+6]]:80: ColwiseParallel _prepare_output Replicate"}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {fqn = "net2", reason = "{{.*}}_prepare_input Replicate"}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {tp}]> {fqn = "net2", reason = "{{.*}}desired_input_layouts Shard(-1)"}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{tp}, {}]> {fqn = "net2", reason = "{{.*}}_prepare_output Shard(0)"}
mesh: {tp: 2}
plan:
  net1: {style: ColwiseParallel, _prepare_input: make_input_shard_1d(dim=1),   _prepare_output: make_output_tensor}
  net2: {style: RowwiseParallel, _prepare_input: make_input_replicate_1d, _prepare_output: make_output_shard_1d(0)}

# Projections side by side are one half of a pair.
//--- attention.mlir
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = nn.module "attn" class "Attention" (%x as "x" at 0) {
  ^bb0(%a: tensor<4x8xf32>):
    %q = nn.module "attn.q" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<4x8xf32>):
      %w = nn.parameter "attn.q.weight" : tensor<8x8xf32>
      %y = nn.linear %input, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      nn.yield %y : tensor<4x8xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %k = nn.module "attn.k" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<4x8xf32>):
      %w = nn.parameter "attn.k.weight" : tensor<8x8xf32>
      %y = nn.linear %input, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      nn.yield %y : tensor<4x8xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %m = nn.mul %q, %k : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %o = nn.module "attn.o" class "Linear" (%m as "input" at 0) {
    ^bb0(%input: tensor<4x8xf32>):
      %w = nn.parameter "attn.o.weight" : tensor<8x8xf32>
      %y = nn.linear %input, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      nn.yield %y : tensor<4x8xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %last = nn.module "attn.last" class "Linear" (%o as "input" at 0) {
    ^bb0(%input: tensor<4x8xf32>):
      %w = nn.parameter "attn.last.weight" : tensor<8x8xf32>
      %y = nn.linear %input, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      nn.yield %y : tensor<4x8xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    nn.yield %last : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

//--- pair-attention.yaml
# CHECK: nn.parameter "attn.q.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
# CHECK: nn.parameter "attn.k.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
# CHECK: nn.parameter "attn.o.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
# CHECK: nn.parameter "attn.last.weight" :
mesh: {tp: 2}
plan: {attn: PairwiseParallel}

# A model whose MLPs are children: the first is one of three, of which the last has no partner; 'head' stands alone.
//--- blocks.mlir
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = nn.module "" class "Model" (%x as "x" at 0) {
  ^bb0(%a: tensor<4x8xf32>):
    %0 = nn.module "blocks.0" class "Block" (%a as "x" at 0) {
    ^bb0(%b: tensor<4x8xf32>):
      %m = nn.module "blocks.0.mlp" class "MLP" (%b as "x" at 0) {
      ^bb0(%c: tensor<4x8xf32>):
        %u = nn.module "blocks.0.mlp.up" class "Linear" (%c as "input" at 0) {
        ^bb0(%input: tensor<4x8xf32>):
          %w = nn.parameter "blocks.0.mlp.up.weight" : tensor<16x8xf32>
          %y = nn.linear %input, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
          nn.yield %y : tensor<4x16xf32>
        } : (tensor<4x8xf32>) -> tensor<4x16xf32>
        %g = nn.relu %u : tensor<4x16xf32>
        %d = nn.module "blocks.0.mlp.down" class "Linear" (%g as "input" at 0) {
        ^bb0(%input: tensor<4x16xf32>):
          %w = nn.parameter "blocks.0.mlp.down.weight" : tensor<8x16xf32>
          %y = nn.linear %input, %w : (tensor<4x16xf32>, tensor<8x16xf32>) -> tensor<4x8xf32>
          nn.yield %y : tensor<4x8xf32>
        } : (tensor<4x16xf32>) -> tensor<4x8xf32>
        %e = nn.module "blocks.0.mlp.extra" class "Linear" (%d as "input" at 0) {
        ^bb0(%input: tensor<4x8xf32>):
          %w = nn.parameter "blocks.0.mlp.extra.weight" : tensor<8x8xf32>
          %y = nn.linear %input, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
          nn.yield %y : tensor<4x8xf32>
        } : (tensor<4x8xf32>) -> tensor<4x8xf32>
        nn.yield %e : tensor<4x8xf32>
      } : (tensor<4x8xf32>) -> tensor<4x8xf32>
      nn.yield %m : tensor<4x8xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = nn.module "head" class "Linear" (%0 as "input" at 0) {
    ^bb0(%input: tensor<4x8xf32>):
      %w = nn.parameter "head.weight" : tensor<8x8xf32>
      %y = nn.linear %input, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      nn.yield %y : tensor<4x8xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    nn.yield %1 : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

//--- children.yaml
# CHECK: nn.parameter "blocks.0.mlp.up.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
# CHECK: nn.parameter "blocks.0.mlp.down.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {fqn = "blocks.0.mlp.down"
# CHECK: nn.parameter "blocks.0.mlp.extra.weight" :
# CHECK: nn.parameter "head.weight" :
mesh: {tp: 2}
plan: PairwiseParallel()

//--- children-2d.yaml
# CHECK: nn.parameter "blocks.0.mlp.up.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
# CHECK: nn.parameter "blocks.0.mlp.down.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
mesh: {dp: 2, tp: 2}
tp_mesh_dim: 1
plan: PairwiseParallel()

# The mesh dimension is 0 unless the plan says another.
//--- first-dim.yaml
# WARNING: first-dim.yaml:[[#@LINE+4]]:{{[0-9]+}}: warning: the plan splits over 'dp', dimension 0 of the mesh, as PyTorch 2.0 does; to split over another dimension, write for example mesh_dim: tp
# CHECK: nn.parameter "blocks.0.mlp.up.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{dp}, {}]>}
# CHECK: nn.parameter "blocks.0.mlp.down.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {dp}]>}

mesh: {dp: 2, tp: 2}
plan: PairwiseParallel()

# What comes after the last pair gets the layout of its end.
//--- children-sequence.yaml
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{tp}, {}]> {fqn = "blocks.0.mlp.up"
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{tp}, {}]> {fqn = "blocks.0.mlp.down", reason = "{{.*}}_prepare_output Shard(0)"}
mesh: {tp: 2}
plan: SequenceParallel()

# PyTorch 2.1's PrepareModuleInput() gathers, its PrepareModuleOutput() splits.
//--- defaults.yaml
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{tp}, {}]> {fqn = "", reason = "{{.*}}PrepareModuleInput input_layouts Shard(0)"}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {fqn = "", reason = "{{.*}}PrepareModuleInput desired_input_layouts Replicate"}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {fqn = "net2", reason = "{{.*}}PrepareModuleOutput output_layouts Replicate"}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{tp}, {}]> {fqn = "net2", reason = "{{.*}}PrepareModuleOutput desired_output_layouts Shard(0)"}
mesh: {tp: 2}
plan: {"": PrepareModuleInput(), net2: PrepareModuleOutput()}

//--- invalid.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:34: error: _prepare_input: there is no function 'make_input_shard_2d'; did you mean 'make_input_shard_1d'?
  net1: {style: ColwiseParallel, _prepare_input: make_input_shard_2d}
# CHECK: :[[#@LINE+1]]:34: error: _prepare_output: make_output_tensor takes no argument
  net2: {style: RowwiseParallel, _prepare_output: make_output_tensor(1)}
# CHECK: :[[#@LINE+1]]:60: error: _prepare_input and input_layouts say the same, the one in PyTorch 2.0, the other since 2.1
  net?: {style: RowwiseParallel, input_layouts: Shard(-1), _prepare_input: make_input_shard_1d_last_dim}
# CHECK: :[[#@LINE+1]]:3: error: PairwiseParallel needs two nn.Linear modules, one after the other, which neither 'net1' of class 'Linear' nor a module inside of it calls; give ColwiseParallel and RowwiseParallel to its parts instead
  ne[t]1: PairwiseParallel

# A function for a mesh of one dimension.
//--- grid.yaml
mesh: {dp: 2, tp: 2}
mesh_dim: [dp, tp]
plan:
# CHECK: :[[#@LINE+1]]:34: error: _prepare_input: make_input_shard_1d(1) takes a mesh of one dimension, but the plan is over 'dp, tp'
  net1: {style: ColwiseParallel, _prepare_input: make_input_shard_1d(1)}
