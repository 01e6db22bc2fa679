// Plans that aren't YAML, or aren't plans.
// RUN: split-file %s %t
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/flow.yaml -o %t/out.mlir 2>&1 | FileCheck %t/flow.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/trunc.json -o %t/out.mlir 2>&1 | FileCheck %t/trunc.check
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/alias.yaml -o %t/out.mlir 2>&1 | FileCheck %t/alias.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/documents.yaml -o %t/out.mlir 2>&1 | FileCheck %t/documents.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/deep.yaml -o %t/out.mlir 2>&1 | FileCheck %t/deep.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/key.yaml -o %t/out.mlir 2>&1 | FileCheck %t/key.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/list.yaml -o %t/out.mlir 2>&1 | FileCheck %t/list.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/nothing.yaml -o %t/out.mlir 2>&1 | FileCheck %t/nothing.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/keys.yaml -o %t/out.mlir 2>&1 | FileCheck %t/keys.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/twice.yaml -o %t/out.mlir 2>&1 | FileCheck %t/twice.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/mesh-empty.yaml -o %t/out.mlir 2>&1 | FileCheck %t/mesh-empty.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/mesh.yaml -o %t/out.mlir 2>&1 | FileCheck %t/mesh.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/mesh-size.yaml -o %t/out.mlir 2>&1 | FileCheck %t/mesh-size.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/mesh-dim.yaml -o %t/out.mlir 2>&1 | FileCheck %t/mesh-dim.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/mesh-dim-missing.yaml -o %t/out.mlir 2>&1 | FileCheck %t/mesh-dim-missing.yaml --implicit-check-not=error:
// RUN: not ls %t/out.mlir

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

//--- flow.yaml
# CHECK: flow.yaml:[[#@LINE+1]]:7: error: '{' is never closed
mesh: {tp: 2
plan:
  net1: ColwiseParallel

//--- trunc.json
{"mesh": {"tp": 2}, "plan": {"net1": "Colwise

//--- trunc.check
CHECK: trunc.json:1:38: error: the text that begins with this quote is never closed

//--- alias.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: '*.net1' is a YAML alias, which a plan doesn't have; put quotes around a text that begins with '*'
  *.net1: ColwiseParallel

//--- documents.yaml
mesh: {tp: 2}
plan: {net1: ColwiseParallel}
---
# CHECK: :[[#@LINE+1]]:1: error: a plan is one document, but another one begins here
mesh: {tp: 4}

//--- deep.yaml
# CHECK: :[[#@LINE+1]]:{{[0-9]+}}: error: values are nested too deeply for a plan
plan: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]

//--- key.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:4: error: a key must be a text, found a list
? [plan]
: {}

//--- list.yaml
# A list.
# CHECK: :1:1: error: a plan is a map with the keys 'mesh' and 'plan', found a list
- mesh

//--- nothing.yaml
# Only comments.
# CHECK: :1:1: error: a plan is a map with the keys 'mesh' and 'plan', found nothing

//--- keys.yaml
# The first line, where what is missing is reported.
# CHECK: :[[#@LINE+1]]:1: error: unknown key 'plna'; did you mean 'plan'?
plna: {net1: ColwiseParallel}
# CHECK: :1:1: error: key 'mesh' is missing; write one such as mesh: {tp: 2}
# CHECK: :1:1: error: key 'plan' is missing; it maps modules to styles

//--- twice.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:1: error: 'mesh' comes twice in this plan file
mesh: {tp: 4}
plan:
  net1: ColwiseParallel
# CHECK: :[[#@LINE+1]]:3: error: 'net1' comes twice in this plan
  net1: RowwiseParallel

//--- mesh-empty.yaml
# CHECK: :[[#@LINE+1]]:1: error: mesh must name at least one dimension and its size, such as {tp: 2}
mesh: {}
plan: {net1: ColwiseParallel}

//--- mesh.yaml
plan: {net1: ColwiseParallel}
mesh:
# CHECK: :[[#@LINE+1]]:7: error: mesh dimension 'dp' must have an integer size of at least 1, found '0'
  dp: 0
# CHECK: :[[#@LINE+1]]:7: error: mesh dimension 'tp' must have an integer size of at least 1, found '-2'
  tp: -2
# CHECK: :[[#@LINE+1]]:7: error: mesh dimension 'cp' must have an integer size of at least 1, found '1.5'
  cp: 1.5
# CHECK: :[[#@LINE+1]]:7: error: mesh dimension 'ep' must have an integer size of at least 1, found '2'
  ep: "2"
# CHECK: :[[#@LINE+1]]:3: error: mesh dimension 'e p' must be named by letters, digits and underscores, a letter first
  e p: 2
# CHECK: :[[#@LINE+1]]:3: error: 'tp' comes twice in this mesh
  tp: 3

//--- mesh-size.yaml
# CHECK: :[[#@LINE+1]]:23: error: the mesh has more than 2147483647 ranks
mesh: {tp: 65536, dp: 65536}
plan: {net1: ColwiseParallel}

//--- mesh-dim.yaml
mesh: {dp: 2, tp: 2}
# CHECK: :[[#@LINE+1]]:11: error: the mesh has no dimension 'td'; did you mean 'tp'?
mesh_dim: td
plan: {net1: ColwiseParallel}

//--- mesh-dim-missing.yaml
# CHECK: :[[#@LINE+1]]:1: error: the mesh has 2 dimensions; say which one the plan parallelizes over, such as mesh_dim: tp
mesh: {dp: 2, tp: 2}
parallelize: [{plan: {net1: ColwiseParallel}}]
