// The Megatron pair, with defaults, in YAML and in JSON.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/mlp.yaml | FileCheck %t/mlp.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/mlp.json | FileCheck %t/json.check
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/grid.yaml | FileCheck %t/grid.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/empty.yaml 2>&1 | FileCheck %t/empty.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/none.yaml 2>&1 | FileCheck %t/none.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/mlp.yaml --verify-roundtrip -o /dev/null

//--- model.mlir
func.func @main(%x: tensor<8x10xf32>) -> tensor<8x10xf32> {
  %r = nn.module "" class "MLP" (%x as "x" at 0) {
  ^bb0(%a: tensor<8x10xf32>):
    %h = nn.module "net1" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<8x10xf32>):
      %w = nn.parameter "net1.weight" : tensor<16x10xf32>
      %b = nn.parameter "net1.bias" : tensor<16xf32>
      %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
      %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
      nn.yield %z : tensor<8x16xf32>
    } : (tensor<8x10xf32>) -> tensor<8x16xf32>
    %g = nn.relu %h : tensor<8x16xf32>
    %o = nn.module "net2" class "Linear" (%g as "input" at 0) {
    ^bb0(%input: tensor<8x16xf32>):
      %w = nn.parameter "net2.weight" : tensor<10x16xf32>
      %b = nn.parameter "net2.bias" : tensor<10xf32>
      %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
      %z = nn.add %y, %b : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
      nn.yield %z : tensor<8x10xf32>
    } : (tensor<8x16xf32>) -> tensor<8x10xf32>
    nn.yield %o : tensor<8x10xf32>
  } : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return %r : tensor<8x10xf32>
}

//--- mlp.yaml
# CHECK:      tp.mesh @mesh(tp = 2)
# CHECK:      nn.module ""
# CHECK-NEXT: ^bb0(%[[X:.+]]: tensor<8x10xf32>):
# CHECK-NEXT: %[[IN1:.+]] = tp.redistribute %[[X]] to <@mesh, {{\[}}{}, {}]>
# CHECK-SAME:   {fqn = "net1", reason = "mlp.yaml:[[#@LINE+14]]:3: ColwiseParallel input_layouts Replicate"}
# CHECK-NEXT: %[[NET1:.+]] = nn.module "net1" class "Linear" (%[[IN1]] as "input" at 0)
# CHECK:      nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
# CHECK-NEXT: nn.parameter "net1.bias" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}]>}
# CHECK:      %[[OUT1:.+]] = tp.redistribute %[[NET1]] to <@mesh, {{\[}}{}, {tp}]>
# CHECK-SAME:   reason = "mlp.yaml:[[#@LINE+9]]:3: ColwiseParallel output_layouts Shard(-1)"
# CHECK-NEXT: %[[RELU:.+]] = nn.relu %[[OUT1]]
# CHECK-NEXT: %[[IN2:.+]] = tp.redistribute %[[RELU]] to <@mesh, {{\[}}{}, {tp}]>
# CHECK-SAME:   {fqn = "net2", reason = "mlp.yaml:[[#@LINE+7]]:3: RowwiseParallel input_layouts Shard(-1)"}
# CHECK-NEXT: %[[NET2:.+]] = nn.module "net2" class "Linear" (%[[IN2]] as "input" at 0)

mesh: {tp: 2}
plan:
  # A comment of the plan's own.
  net1: ColwiseParallel
  net2: RowwiseParallel

# CHECK:      nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
# CHECK-NEXT: nn.parameter "net2.bias" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}]>}
# CHECK:      %[[OUT2:.+]] = tp.redistribute %[[NET2]] to <@mesh, {{\[}}{}, {}]>
# CHECK-SAME:   reason = "mlp.yaml:[[#@LINE-5]]:3: RowwiseParallel output_layouts Replicate"
# CHECK-NEXT: nn.yield %[[OUT2]]
# CHECK-NOT:  tp.redistribute

//--- mlp.json
{
  "mesh": {"tp": 2},
  "plan": {
    "net1": {"style": "ColwiseParallel", "input_layouts": "Replicate()"},
    "net2": {"style": "RowwiseParallel", "output_layouts": "Shard(0)", "use_local_output": false}
  }
}

//--- json.check
CHECK: reason = "mlp.json:4:42: ColwiseParallel input_layouts Replicate"
CHECK: reason = "mlp.json:4:5: ColwiseParallel output_layouts Shard(-1)"
CHECK: tp.redistribute {{.*}} to <@mesh, {{\[}}{tp}, {}]> {fqn = "net2", reason = "mlp.json:5:42: RowwiseParallel output_layouts Shard(0)"}

//--- grid.yaml
# Only the dimension that mesh_dim names is parallelized over.
# CHECK: tp.mesh @mesh(dp = 4, tp = 2)
# CHECK: nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
# CHECK: nn.parameter "net2.weight" :
mesh: {dp: 4, tp: 2}
mesh_dim: tp
plan: {net1: RowwiseParallel()}

//--- empty.yaml
# CHECK: empty.yaml:[[#@LINE+2]]:1: warning: the plan is empty: nothing is parallelized
mesh: {tp: 2}
plan: {}
# CHECK: tp.mesh @mesh(tp = 2)
# CHECK-NOT: tp.sharding
# CHECK-NOT: tp.redistribute

//--- none.yaml
# CHECK: none.yaml:[[#@LINE+2]]:1: warning: the plan is empty: nothing is parallelized
mesh: {tp: 2}
parallelize: []
