// What expert_parallel writes into the IR, and its errors.
// RUN: split-file %s %t
// RUN: tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/plan.yaml | FileCheck %t/plan.yaml
// RUN: tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/fsdp.yaml | FileCheck %t/fsdp.yaml
// RUN: not tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/method.yaml 2>&1 | FileCheck %t/method.yaml
// RUN: not tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/list.yaml 2>&1 | FileCheck %t/list.yaml
// RUN: not tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/unknown.yaml 2>&1 | FileCheck %t/unknown.yaml
// RUN: not tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/two.yaml 2>&1 | FileCheck %t/two.yaml
// RUN: tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/data.yaml | FileCheck %t/data.yaml
// RUN: tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/context.yaml | FileCheck %t/context.yaml
// RUN: not tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/many.yaml 2>&1 | FileCheck %t/many.yaml
// RUN: not tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/tensor.yaml 2>&1 | FileCheck %t/tensor.yaml
// RUN: not tp-opt %t/moe.mlir --tp-apply-plan=plan=%t/uneven.yaml 2>&1 | FileCheck %t/uneven.yaml
// RUN: not tp-opt %t/tokens.mlir --tp-apply-plan=plan=%t/tokens.yaml 2>&1 | FileCheck %t/tokens.yaml
// RUN: not tp-opt %t/none.mlir --tp-apply-plan=plan=%t/none.yaml 2>&1 | FileCheck %t/none.yaml
// RUN: not tp-opt %t/sum.mlir --tp-apply-plan=plan=%t/plan.yaml 2>&1 | FileCheck %t/sum.mlir
// RUN: not tp-opt %t/unsorted.mlir --tp-apply-plan=plan=%t/plan.yaml 2>&1 | FileCheck %t/unsorted.mlir
// RUN: not tp-opt %t/bounds.mlir --tp-apply-plan=plan=%t/plan.yaml 2>&1 | FileCheck %t/bounds.mlir
// RUN: tp-opt %t/modules.mlir --tp-apply-plan=plan=%t/pipeline.yaml | FileCheck %t/pipeline.yaml

//--- moe.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}, %ids: tensor<4x2xi64> {tp.name = "ids"}) -> tensor<4x8xf32> {
  %flat = nn.reshape %ids : tensor<4x2xi64> -> tensor<8xi64>
  %sorted, %order = nn.sort %flat dim 0 count 8 : tensor<8xi64> -> (tensor<8xi64>, tensor<8xi64>)
  %k = nn.constant dense<2> : tensor<i64>
  %token = nn.floor_div %order, %k : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
  %rows = nn.index_select %x, %token dim 0 : (tensor<4x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %ends = nn.constant dense<[2, 4, 6, 8]> : tensor<4xi32>
  %zero = nn.constant dense<0> : tensor<1xi32>
  %bounds = nn.concat %zero, %ends dim 0 : (tensor<1xi32>, tensor<4xi32>) -> tensor<5xi32>
  %w = nn.parameter "w" : tensor<4x8x8xf32>
  %y = nn.grouped_matmul %rows, %w bounds %bounds : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<5xi32>) -> tensor<8x8xf32>
  %z = nn.silu %y : tensor<8x8xf32>
  %none = nn.constant dense<0> : tensor<8xi64>
  %places = nn.iota dim 0 start 0.000000e+00 step 1.000000e+00 : tensor<8xi64>
  %inverse = nn.scatter copy %none, %order, %places dim 0 : (tensor<8xi64>, tensor<8xi64>, tensor<8xi64>)
  %back = nn.index_select %z, %inverse dim 0 : (tensor<8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %by = nn.reshape %back : tensor<8x8xf32> -> tensor<4x2x8xf32>
  %sum = nn.reduce sum %by dims [1] : tensor<4x2x8xf32> -> tensor<4x8xf32>
  %v = nn.parameter "v" : tensor<8x8xf32>
  %out = nn.linear %sum, %v : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %out : tensor<4x8xf32>
}

//--- plan.yaml
mesh: {ep: 2}
expert_parallel: {ep: all_to_all}
# CHECK: func.func @main(%[[X:.+]]: tensor<4x8xf32> {tp.batch = ["ep"], tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{ep}, {}]>},
# CHECK-SAME: tensor<4x2xi64> {tp.batch = ["ep"],
# CHECK: nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{ep}, {}, {}]>}
# CHECK: nn.dispatch %[[X]] to %[[SLOTS:.+]] : (tensor<4x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
# CHECK: nn.grouped_matmul {{.*}} : (tensor<16x8xf32>, tensor<4x8x8xf32>, tensor<2x3xi32>) -> tensor<16x8xf32>
# CHECK: nn.silu {{.*}} : tensor<16x8xf32>
# CHECK: nn.combine %{{.+}} from %[[SLOTS]] : (tensor<2x8x8xf32>, tensor<2x8xi64>) -> tensor<4x8xf32>
# CHECK: nn.parameter "v" {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}

//--- fsdp.yaml
mesh: {ep: 2}
data_parallel: {ep: fsdp}
expert_parallel: {ep: all_to_all}
# CHECK: nn.parameter "w" {{.*}}tp.sharding = #tp.sharding<@mesh, [{ep}, {}, {}]>}
# CHECK: nn.parameter "v" {{.*}}tp.sharding = #tp.sharding<@mesh, [{ep}, {}]>}

//--- method.yaml
mesh: {ep: 2}
# CHECK: :[[#@LINE+1]]:23: error: the method of expert_parallel must be all_to_all, found 'ring'
expert_parallel: {ep: ring}

//--- list.yaml
mesh: {ep: 2}
# CHECK: :[[#@LINE+1]]:1: error: expert_parallel must map a mesh dimension to all_to_all, such as {ep: all_to_all}, found a list
expert_parallel: [ep]

//--- unknown.yaml
mesh: {ep: 2}
# CHECK: :[[#@LINE+1]]:19: error: the mesh has no dimension 'epp'; did you mean 'ep'?
expert_parallel: {epp: all_to_all}

//--- two.yaml
mesh: {ep: 2, fp: 2}
# CHECK: :[[#@LINE+1]]:35: error: expert_parallel takes one mesh dimension, and this is the second after 'ep'
expert_parallel: {ep: all_to_all, fp: all_to_all}

//--- data.yaml
# Ranks of data parallelism hold the same experts. Each of the two groups of tokens has lists of slots of its own: tokens 0 and 1
# of the first group are 0 and 1 of the batch, and those of the second one 2 and 3.
mesh: {ep: 2, dp: 2}
data_parallel: {dp: fsdp}
expert_parallel: {ep: all_to_all}
# CHECK: func.func @main(%[[X:.+]]: tensor<4x8xf32> {tp.batch = ["dp", "ep"], tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{dp, ep}, {}]>},
# CHECK: nn.parameter "w" {{.*}}tp.sharding = #tp.sharding<@mesh, [{ep, dp}, {}, {}]>}
# CHECK: %[[GROUPS:.+]], %{{.+}} = nn.sort %{{.+}} dim 0 count 8
# CHECK: nn.dispatch %[[X]] to %[[SLOTS:.+]] {groups = array<i64: 2, 1>} : (tensor<4x8xf32>, tensor<4x4xi64>) -> tensor<4x4x8xf32>
# CHECK: nn.broadcast {{.*}} : tensor<1x2x1x2x8x8xf32> -> tensor<2x2x1x2x8x8xf32>
# CHECK: nn.grouped_matmul {{.*}} : (tensor<16x8xf32>, tensor<8x8x8xf32>, tensor<4x3xi32>) -> tensor<16x8xf32>
# CHECK: nn.combine %{{.+}} from %[[SLOTS]] {groups = array<i64: 2, 1>} : (tensor<4x4x8xf32>, tensor<4x4xi64>) -> tensor<4x8xf32>

//--- context.yaml
# The sequence is minor to the batch.
mesh: {cp: 2, ep: 2}
expert_parallel: {ep: all_to_all}
context_parallel: {cp: {method: ring, inputs: {x: 1}}}
# CHECK: func.func @main(%[[X:.+]]: tensor<4x8xf32> {tp.batch = ["ep"], tp.name = "x", tp.sequence = ["cp"], tp.sharding = #tp.sharding<@mesh, [{ep}, {cp}]>},
# CHECK: nn.dispatch %[[X]] to %{{.+}} {groups = array<i64: 1, 2>} : (tensor<4x8xf32>, tensor<4x4xi64>) -> tensor<4x4x8xf32>

//--- many.yaml
mesh: {dp: 2, cp: 3, ep: 2}
data_parallel: {dp: ddp}
context_parallel: {cp: {method: ring, inputs: {x: 1}}}
# CHECK: :[[#@LINE+1]]:19: error: the 12 ranks of 'dp', 'ep' and 'cp' together don't divide the 4 tokens; expert_parallel needs a mesh dimension whose size divides the experts, and a number of tokens that all ranks that split them divide
expert_parallel: {ep: all_to_all}

//--- tensor.yaml
mesh: {ep: 2}
# CHECK: :[[#@LINE+1]]:19: error: 'ep' is in expert_parallel, so the plan can't split over it, too
expert_parallel: {ep: all_to_all}
plan: {w: Shard(0)}

//--- uneven.yaml
mesh: {ep: 3}
# CHECK: :[[#@LINE+2]]:19: error: the 3 ranks of 'ep' don't divide the 4 experts; expert_parallel needs a mesh dimension whose size divides the experts, and a number of tokens that all ranks that split them divide
# CHECK: note: the experts are here
expert_parallel: {ep: all_to_all}

//--- tokens.mlir
func.func @main(%x: tensor<3x8xf32>, %i: tensor<6xi64>, %b: tensor<5xi32>) -> tensor<6x8xf32> {
  %rows = nn.index_select %x, %i dim 0 : (tensor<3x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
  %w = nn.parameter "w" : tensor<4x8x8xf32>
  %y = nn.grouped_matmul %rows, %w bounds %b : (tensor<6x8xf32>, tensor<4x8x8xf32>, tensor<5xi32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

//--- tokens.yaml
mesh: {ep: 2}
# CHECK: :[[#@LINE+1]]:19: error: the 2 ranks of 'ep' don't divide the 3 tokens
expert_parallel: {ep: all_to_all}

//--- none.mlir
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}

//--- none.yaml
mesh: {ep: 2}
# CHECK: :[[#@LINE+1]]:19: error: the model has no experts that can be split: it has no 'nn.grouped_matmul'; import a transformers model with experts_implementation='grouped_mm'
expert_parallel: {ep: all_to_all}

//--- sum.mlir
func.func @main(%x: tensor<4x8xf32>, %ids: tensor<8xi64>) -> tensor<8x1xf32> {
  %ends = nn.constant dense<[2, 4, 6, 8]> : tensor<4xi32>
  %zero = nn.constant dense<0> : tensor<1xi32>
  %bounds = nn.concat %zero, %ends dim 0 : (tensor<1xi32>, tensor<4xi32>) -> tensor<5xi32>
  %sorted, %order = nn.sort %ids dim 0 count 8 : tensor<8xi64> -> (tensor<8xi64>, tensor<8xi64>)
  %k = nn.constant dense<2> : tensor<i64>
  %token = nn.floor_div %order, %k : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
  %rows = nn.index_select %x, %token dim 0 : (tensor<4x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %w = nn.parameter "w" : tensor<4x8x8xf32>
  // CHECK: [[#@LINE+1]]:8: error: these experts can't be divided by expert_parallel: an op between the sort and the sum over experts doesn't compute row by row
  %y = nn.grouped_matmul %rows, %w bounds %bounds : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<5xi32>) -> tensor<8x8xf32>
  // CHECK: [[#@LINE+1]]:8: note: 'nn.softmax' is here
  %s = nn.softmax %y dim 0 : tensor<8x8xf32>
  %r = nn.reduce sum %s dims [1] keepdim : tensor<8x8xf32> -> tensor<8x1xf32>
  return %r : tensor<8x1xf32>
}

//--- bounds.mlir
// Bounds that may not ascend: rows may be in several groups.
func.func @main(%x: tensor<4x8xf32>, %ids: tensor<8xi64>, %bounds: tensor<5xi32>) -> tensor<8x8xf32> {
  %sorted, %order = nn.sort %ids dim 0 count 8 : tensor<8xi64> -> (tensor<8xi64>, tensor<8xi64>)
  %k = nn.constant dense<2> : tensor<i64>
  %token = nn.floor_div %order, %k : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
  %rows = nn.index_select %x, %token dim 0 : (tensor<4x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %w = nn.parameter "w" : tensor<4x8x8xf32>
  // CHECK: [[#@LINE+1]]:8: error: these experts can't be divided by expert_parallel: their bounds aren't a 0 before a cumulative sum of how many rows each expert has
  %y = nn.grouped_matmul %rows, %w bounds %bounds : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<5xi32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

//--- modules.mlir
// The products are in modules of modules, and the function's body has none. A module in the experts' block begins a stage.
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}, %ids: tensor<8xi64> {tp.name = "ids"}) -> tensor<4x8xf32> {
  %sorted, %order = nn.sort %ids dim 0 count 8 : tensor<8xi64> -> (tensor<8xi64>, tensor<8xi64>)
  %k = nn.constant dense<2> : tensor<i64>
  %token = nn.floor_div %order, %k : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
  %rows = nn.index_select %x, %token dim 0 : (tensor<4x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %ends = nn.constant dense<[2, 4, 6, 8]> : tensor<4xi32>
  %zero = nn.constant dense<0> : tensor<1xi32>
  %bounds = nn.concat %zero, %ends dim 0 : (tensor<1xi32>, tensor<4xi32>) -> tensor<5xi32>
  %w = nn.parameter "w" : tensor<4x8x8xf32>
  %y = nn.grouped_matmul %rows, %w bounds %bounds : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<5xi32>) -> tensor<8x8xf32>
  %z = nn.module "act" class "Act" (%y as "x" at 0, %bounds as "b" at 1) {
  ^bb0(%i: tensor<8x8xf32>, %b: tensor<5xi32>):
    %s = nn.silu %i : tensor<8x8xf32>
    %p = nn.parameter "act.p" : tensor<4x8x8xf32>
    %v = nn.grouped_matmul %s, %p bounds %b : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<5xi32>) -> tensor<8x8xf32>
    nn.yield %v : tensor<8x8xf32>
  } : (tensor<8x8xf32>, tensor<5xi32>) -> tensor<8x8xf32>
  %none = nn.constant dense<0> : tensor<8xi64>
  %places = nn.iota dim 0 start 0.000000e+00 step 1.000000e+00 : tensor<8xi64>
  %inverse = nn.scatter copy %none, %order, %places dim 0 : (tensor<8xi64>, tensor<8xi64>, tensor<8xi64>)
  %back = nn.index_select %z, %inverse dim 0 : (tensor<8x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %by = nn.reshape %back : tensor<8x8xf32> -> tensor<4x2x8xf32>
  %sum = nn.reduce sum %by dims [1] : tensor<4x2x8xf32> -> tensor<4x8xf32>
  %out = nn.module "head" class "Head" (%sum as "x" at 0) {
  ^bb0(%i: tensor<4x8xf32>):
    %v = nn.parameter "head.v" : tensor<8x8xf32>
    %o = nn.linear %i, %v : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    nn.yield %o : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %out : tensor<4x8xf32>
}

//--- pipeline.yaml
mesh: {pp: 2, ep: 2}
expert_parallel: {ep: all_to_all}
pipeline: {pp: {split: [head]}}
# CHECK: nn.dispatch {{.*}} {tp.stage = 0 : i64}
# CHECK: nn.grouped_matmul {{.*}} {tp.stage = 0 : i64}
# CHECK: nn.silu {{.*}} {tp.fqn = "act", tp.stage = 0 : i64}
# CHECK: nn.grouped_matmul {{.*}} {tp.fqn = "act", tp.stage = 0 : i64}
# CHECK: nn.combine {{.*}} {tp.stage = 0 : i64}
# CHECK: nn.linear {{.*}} {tp.fqn = "head", tp.stage = 1 : i64}

//--- unsorted.mlir
func.func @main(%x: tensor<4x8xf32>, %i: tensor<8xi64>) -> tensor<8x8xf32> {
  %ends = nn.constant dense<[2, 4, 6, 8]> : tensor<4xi32>
  %zero = nn.constant dense<0> : tensor<1xi32>
  %bounds = nn.concat %zero, %ends dim 0 : (tensor<1xi32>, tensor<4xi32>) -> tensor<5xi32>
  %rows = nn.index_select %x, %i dim 0 : (tensor<4x8xf32>, tensor<8xi64>) -> tensor<8x8xf32>
  %w = nn.parameter "w" : tensor<4x8x8xf32>
  // CHECK: [[#@LINE+1]]:8: error: these experts can't be divided by expert_parallel: their rows aren't in the order of a sort of the tokens' experts
  %y = nn.grouped_matmul %rows, %w bounds %bounds : (tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<5xi32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
