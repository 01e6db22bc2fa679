// What transformers' plans say about a mixture of experts and about parameters.
// Routed experts can't be imported, so the modules are written by hand: the
// weights of the experts are stacked, (experts, out, in), and every token takes
// all experts, weighted by the router.
// RUN: split-file %s %t
// RUN: tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/tp.yaml | FileCheck %t/tp.yaml
// RUN: tp-opt %t/moe.mlir --tp-parallelize=plan=%t/tp.yaml -o %t/tp.mlir
// RUN: FileCheck %s --check-prefix=TP < %t/tp.mlir
// RUN: tp-opt %t/tp.mlir --tp-verify-spmd=reference=%t/moe.mlir -o %t/out.mlir
// RUN: tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/ep.yaml | FileCheck %t/ep.yaml
// RUN: tp-opt %t/moe.mlir --tp-parallelize=plan=%t/ep.yaml -o %t/ep.mlir
// RUN: FileCheck %s --check-prefix=EP < %t/ep.mlir
// RUN: tp-opt %t/ep.mlir --tp-verify-spmd=reference=%t/moe.mlir -o %t/out.mlir
// RUN: tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/version4.yaml | FileCheck %t/version4.yaml
// RUN: tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/router.yaml | FileCheck %t/router.yaml
// RUN: tp-opt %t/attention.mlir --tp-apply-plan=plan=%t/attention.yaml | FileCheck %t/attention.yaml
// RUN: tp-opt %t/attention.mlir --tp-parallelize=plan=%t/attention.yaml | tp-opt --tp-verify-spmd=reference=%t/attention.mlir -o %t/out.mlir

// Each rank has a part of every expert, and the ranks' results are added.
// TP:     nn.parameter "model.layers.0.mlp.experts.gate_up_proj" {{.*}} : tensor<4x16x8xf32>
// TP:     nn.parameter "model.layers.0.mlp.experts.down_proj" {{.*}} : tensor<4x8x8xf32>
// TP:     tp.all_reduce
// TP-NOT: tp.all_

// Each rank has some of the experts.
// EP:     nn.parameter "model.layers.0.mlp.experts.gate_up_proj" {{.*}} : tensor<2x32x8xf32>
// EP:     nn.parameter "model.layers.0.mlp.experts.down_proj" {{.*}} : tensor<2x8x16xf32>
// EP:     tp.all_reduce
// EP-NOT: tp.all_

//--- moe.mlir
func.func @main(%x: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %r = nn.module "model" class "Model" (%x as "x" at 0) {
  ^bb0(%a: tensor<6x8xf32>):
    %y = nn.module "model.layers.0.mlp" class "SparseMoeBlock" (%a as "hidden_states" at 0) {
    ^bb0(%h: tensor<6x8xf32>):
      %s = nn.module "model.layers.0.mlp.gate" class "TopKRouter" (%h as "hidden_states" at 0) {
      ^bb0(%i: tensor<6x8xf32>):
        %w = nn.parameter "model.layers.0.mlp.gate.weight" : tensor<4x8xf32>
        %l = nn.linear %i, %w : (tensor<6x8xf32>, tensor<4x8xf32>) -> tensor<6x4xf32>
        %p = nn.softmax %l dim 1 : tensor<6x4xf32>
        nn.yield %p : tensor<6x4xf32>
      } : (tensor<6x8xf32>) -> tensor<6x4xf32>
      %e = nn.module "model.layers.0.mlp.experts" class "Experts" (%h as "hidden_states" at 0, %s as "top_k_weights" at 2) {
      ^bb0(%i: tensor<6x8xf32>, %k: tensor<6x4xf32>):
        %w0 = nn.parameter "model.layers.0.mlp.experts.gate_up_proj" : tensor<4x32x8xf32>
        %w1 = nn.parameter "model.layers.0.mlp.experts.down_proj" : tensor<4x8x16xf32>
        %i4 = nn.broadcast %i : tensor<6x8xf32> -> tensor<4x6x8xf32>
        %t0 = nn.transpose %w0 [0, 2, 1] : tensor<4x32x8xf32> -> tensor<4x8x32xf32>
        %gu = nn.matmul %i4, %t0 : (tensor<4x6x8xf32>, tensor<4x8x32xf32>) -> tensor<4x6x32xf32>
        %g = nn.slice %gu dim 2 start 0 step 1 : tensor<4x6x32xf32> -> tensor<4x6x16xf32>
        %u = nn.slice %gu dim 2 start 16 step 1 : tensor<4x6x32xf32> -> tensor<4x6x16xf32>
        %sg = nn.silu %g : tensor<4x6x16xf32>
        %m = nn.mul %sg, %u : (tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
        %t1 = nn.transpose %w1 [0, 2, 1] : tensor<4x8x16xf32> -> tensor<4x16x8xf32>
        %d = nn.matmul %m, %t1 : (tensor<4x6x16xf32>, tensor<4x16x8xf32>) -> tensor<4x6x8xf32>
        %kt = nn.transpose %k [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
        %kr = nn.reshape %kt : tensor<4x6xf32> -> tensor<4x6x1xf32>
        %dk = nn.mul %d, %kr : (tensor<4x6x8xf32>, tensor<4x6x1xf32>) -> tensor<4x6x8xf32>
        %o = nn.reduce sum %dk dims [0] : tensor<4x6x8xf32> -> tensor<6x8xf32>
        nn.yield %o : tensor<6x8xf32>
      } : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<6x8xf32>
      nn.yield %e : tensor<6x8xf32>
    } : (tensor<6x8xf32>) -> tensor<6x8xf32>
    nn.yield %y : tensor<6x8xf32>
  } : (tensor<6x8xf32>) -> tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}

//--- tp.yaml
# CHECK: nn.parameter "model.layers.0.mlp.gate.weight" : tensor<4x8xf32>
# CHECK-DAG: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {fqn = "model.layers.0.mlp.experts", reason = "{{.*}}moe_tp_experts input_layouts Replicate"} : tensor<6x8xf32>
# CHECK-DAG: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {fqn = "model.layers.0.mlp.experts", reason = "{{.*}}moe_tp_experts input_layouts Replicate"} : tensor<6x4xf32>
# CHECK: nn.parameter "model.layers.0.mlp.experts.gate_up_proj" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp | 16, 16}, {}]>}
# CHECK: nn.parameter "model.layers.0.mlp.experts.down_proj" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {}, {tp}]>}
# CHECK: tp.redistribute %{{.+}} to <@mesh, {{\[}}{}, {}]> {fqn = "model.layers.0.mlp.experts", reason = "{{.*}}moe_tp_experts output_layouts Replicate"}
mesh: {tp: 2}
match: hf
plan:
  layers.*.mlp.experts.gate_up_proj: packed_colwise
  layers.*.mlp.experts.down_proj: rowwise
  layers.*.mlp.experts: moe_tp_experts

//--- ep.yaml
# CHECK: nn.parameter "model.layers.0.mlp.experts.gate_up_proj" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}, {}]>}
# CHECK: nn.parameter "model.layers.0.mlp.experts.down_proj" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}, {}]>}
# CHECK: ep_dispatch_experts output_layouts Replicate
mesh: {tp: 2}
match: hf
plan:
  layers.*.mlp.experts: ep_dispatch_experts
  layers.*.mlp.experts.gate_up_proj: grouped_gemm
  layers.*.mlp.experts.down_proj: grouped_gemm

//--- version4.yaml
# Version 4 states each rule twice, and a parameter's own key comes before the
# one of its module.
# CHECK: nn.parameter "model.layers.0.mlp.experts.gate_up_proj" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {}, {tp | 4, 4}]>}
# CHECK: nn.parameter "model.layers.0.mlp.experts.down_proj" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}, {}]>}
# CHECK: gather output_layouts Replicate
# CHECK-NOT: gather output_layouts Replicate
mesh: {tp: 2}
match: hf
plan:
  layers.*.mlp.experts.gate_up_proj: local_packed_rowwise
  layers.*.mlp.experts.down_proj: local_colwise
  layers.*.mlp.experts: local
  layers.*.mlp: gather
  model.layers.*.mlp.experts.gate_up_proj: local_packed_rowwise
  model.layers.*.mlp.experts.down_proj: local_colwise
  model.layers.*.mlp.experts: local
  model.layers.*.mlp: gather

//--- router.yaml
# CHECK: nn.parameter "model.layers.0.mlp.gate.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {}]>}
# CHECK: ep_router output_layouts Replicate
# CHECK: nn.parameter "model.layers.0.mlp.experts.gate_up_proj" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}, {}]>}
mesh: {tp: 2}
match: hf
plan:
  layers.*.mlp.gate: ep_router
  layers.*.mlp.experts.gate_up_proj: grouped_gemm
  layers.*.mlp.experts: moe_identity_expert

//--- attention.mlir
func.func @main(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %r = nn.module "self_attn" class "Attention" (%x as "hidden_states" at 0) {
  ^bb0(%h: tensor<2x3x8xf32>):
    %n = nn.parameter "self_attn.norm.weight" : tensor<8xf32>
    %hn = nn.mul %h, %n : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
    %kv = nn.module "self_attn.kv_a_proj_with_mqa" class "Linear" (%hn as "input" at 0) {
    ^bb0(%i: tensor<2x3x8xf32>):
      %w = nn.parameter "self_attn.kv_a_proj_with_mqa.weight" : tensor<8x8xf32>
      %y = nn.linear %i, %w : (tensor<2x3x8xf32>, tensor<8x8xf32>) -> tensor<2x3x8xf32>
      nn.yield %y : tensor<2x3x8xf32>
    } : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    %q = nn.module "self_attn.q_proj" class "Linear" (%kv as "input" at 0) {
    ^bb0(%i: tensor<2x3x8xf32>):
      %w = nn.parameter "self_attn.q_proj.weight" : tensor<8x8xf32>
      %y = nn.linear %i, %w : (tensor<2x3x8xf32>, tensor<8x8xf32>) -> tensor<2x3x8xf32>
      nn.yield %y : tensor<2x3x8xf32>
    } : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    %s = nn.parameter "self_attn.sinks" : tensor<8xf32>
    %a = nn.mul %q, %s : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
    %c = nn.parameter "self_attn.scale" : tensor<8xf32>
    %b = nn.mul %a, %c : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
    nn.yield %b : tensor<2x3x8xf32>
  } : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %r : tensor<2x3x8xf32>
}

//--- attention.yaml
# The parameters of a module have keys of their own. A vector that isn't a bias
# is split by rowwise, too.
# CHECK-NOT: local_params
# CHECK: nn.parameter "self_attn.norm.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}]>}
# CHECK: nn.parameter "self_attn.kv_a_proj_with_mqa.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {}]>}
# CHECK: nn.parameter "self_attn.q_proj.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
# CHECK: nn.parameter "self_attn.sinks" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}]>}
# CHECK: nn.parameter "self_attn.scale" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}]>}
mesh: {tp: 2}
match: hf
plan:
  self_attn: local_params
  self_attn.norm.weight: sequence_parallel
  self_attn.kv_a_proj_with_mqa: mla_kv_a_proj
  self_attn.q_proj: colwise
  self_attn.sinks: colwise
  self_attn.scale: rowwise
