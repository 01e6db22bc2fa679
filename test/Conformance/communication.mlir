// Who asks for collectives, and how many: what PyTorch's debug/test_comm_mode_features.py and
// experimental/test_tp_transform.py assert of the forward pass, and test_tp_examples.py of an MLP.
// DEFINE: %{check} = FileCheck --implicit-check-not=tp.all_ --implicit-check-not=tp.reduce_scatter --implicit-check-not=tp.exchange --implicit-check-not=tp.permute
// RUN: split-file %s %t
// RUN: tp-opt %S/../Plan/Inputs/mlp.mlir --tp-parallelize=plan=%t/mlp.yaml | %{check} %t/mlp.yaml
// RUN: tp-opt %S/../Plan/Inputs/mlp.mlir --tp-parallelize=plan=%t/sequence.yaml | %{check} %t/sequence.yaml
// RUN: tp-opt %t/two.mlir --tp-parallelize=plan=%t/two.yaml | %{check} %t/two.yaml

//--- mlp.yaml
# One all-reduce, and it is net2's.
# CHECK: tp.all_reduce sum %{{.*}} over @mesh {tp} {bytes = {{[0-9]+}} : i64, fqn = "net2"
mesh: {tp: 2}
plan: {net1: ColwiseParallel, net2: RowwiseParallel}

//--- sequence.yaml
# Split along the batch outside: an all-gather and a reduce-scatter.
# CHECK: tp.all_gather %{{.*}} dim 0 over @mesh {tp} {bytes = {{[0-9]+}} : i64, fqn = "net1"
# CHECK: tp.reduce_scatter sum %{{.*}} dim 0 over @mesh {tp} {bytes = {{[0-9]+}} : i64, fqn = "net2"
mesh: {tp: 2}
plan:
  net1: {style: ColwiseParallel, input_layouts: Shard(0)}
  net2: {style: RowwiseParallel, output_layouts: Shard(0)}


//--- two.yaml
# Two of them without biases, of sizes that the ranks do not divide: one all-reduce each.
# CHECK: func.func @main
# CHECK: tp.all_reduce sum {{.*}}fqn = "layers.0.net2"
# CHECK: tp.all_reduce sum {{.*}}fqn = "layers.1.net2"
# CHECK: func.func @main_0
# CHECK-SAME: tp.ranks = array<i64: 3>
# CHECK: tp.all_reduce sum {{.*}}fqn = "layers.0.net2"
# CHECK: tp.all_reduce sum {{.*}}fqn = "layers.1.net2"
mesh: {tp: 4}
plan: {layers.*.net1: ColwiseParallel, layers.*.net2: RowwiseParallel}
//--- two.mlir
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = nn.module "" class "Stack" (%x as "x" at 0) {
  ^bb0(%a: tensor<4x6xf32>):
    %h0 = nn.module "layers.0.net1" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<4x6xf32>):
      %w = nn.parameter "layers.0.net1.weight" : tensor<18x6xf32>
      %y = nn.linear %input, %w : (tensor<4x6xf32>, tensor<18x6xf32>) -> tensor<4x18xf32>
      nn.yield %y : tensor<4x18xf32>
    } : (tensor<4x6xf32>) -> tensor<4x18xf32>
    %g0 = nn.relu %h0 : tensor<4x18xf32>
    %o0 = nn.module "layers.0.net2" class "Linear" (%g0 as "input" at 0) {
    ^bb0(%input: tensor<4x18xf32>):
      %w = nn.parameter "layers.0.net2.weight" : tensor<6x18xf32>
      %y = nn.linear %input, %w : (tensor<4x18xf32>, tensor<6x18xf32>) -> tensor<4x6xf32>
      nn.yield %y : tensor<4x6xf32>
    } : (tensor<4x18xf32>) -> tensor<4x6xf32>
    %h1 = nn.module "layers.1.net1" class "Linear" (%o0 as "input" at 0) {
    ^bb0(%input: tensor<4x6xf32>):
      %w = nn.parameter "layers.1.net1.weight" : tensor<18x6xf32>
      %y = nn.linear %input, %w : (tensor<4x6xf32>, tensor<18x6xf32>) -> tensor<4x18xf32>
      nn.yield %y : tensor<4x18xf32>
    } : (tensor<4x6xf32>) -> tensor<4x18xf32>
    %g1 = nn.relu %h1 : tensor<4x18xf32>
    %o1 = nn.module "layers.1.net2" class "Linear" (%g1 as "input" at 0) {
    ^bb0(%input: tensor<4x18xf32>):
      %w = nn.parameter "layers.1.net2.weight" : tensor<6x18xf32>
      %y = nn.linear %input, %w : (tensor<4x18xf32>, tensor<6x18xf32>) -> tensor<4x6xf32>
      nn.yield %y : tensor<4x6xf32>
    } : (tensor<4x18xf32>) -> tensor<4x6xf32>
    nn.yield %o1 : tensor<4x6xf32>
  } : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
