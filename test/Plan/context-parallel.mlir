// The sequence is split over the mesh dimension of context_parallel, and attention over it gets the method.
// RUN: split-file %s %t
// RUN: tp-opt %t/decoder.mlir --tp-apply-plan=plan=%t/ring.yaml | FileCheck %t/ring.yaml
// RUN: tp-opt %t/decoder.mlir --tp-apply-plan=plan=%t/method-only.yaml | FileCheck %t/method-only.yaml
// RUN: tp-opt %t/decoder.mlir --tp-apply-plan=plan=%t/default.yaml | FileCheck %t/default.yaml
// RUN: tp-opt %t/decoder.mlir --tp-apply-plan=plan=%t/named.yaml | FileCheck %t/named.yaml
// RUN: not tp-opt %t/decoder.mlir --tp-apply-plan=plan=%t/unknown.yaml -o %t/out.mlir 2>&1 | FileCheck %t/unknown.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/decoder.mlir --tp-apply-plan=plan=%t/method.yaml -o %t/out.mlir 2>&1 | FileCheck %t/method.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/decoder.mlir --tp-apply-plan=plan=%t/list.yaml -o %t/out.mlir 2>&1 | FileCheck %t/list.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/decoder.mlir --tp-apply-plan=plan=%t/two.yaml -o %t/out.mlir 2>&1 | FileCheck %t/two.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/decoder.mlir --tp-apply-plan=plan=%t/data.yaml -o %t/out.mlir 2>&1 | FileCheck %t/data.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/decoder.mlir --tp-apply-plan=plan=%t/tensor.yaml -o %t/out.mlir 2>&1 | FileCheck %t/tensor.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/decoder.mlir --tp-apply-plan=plan=%t/heads.yaml -o %t/out.mlir 2>&1 | FileCheck %t/heads.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/groups.mlir --tp-apply-plan=plan=%t/groups.yaml -o %t/out.mlir 2>&1 | FileCheck %t/groups.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/short.mlir --tp-apply-plan=plan=%t/short.yaml -o %t/out.mlir 2>&1 | FileCheck %t/short.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/uneven.mlir --tp-apply-plan=plan=%t/ring-uneven.yaml -o %t/out.mlir 2>&1 | FileCheck %t/ring-uneven.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/cross.mlir --tp-apply-plan=plan=%t/ring-keys.yaml -o %t/out.mlir 2>&1 | FileCheck %t/ring-keys.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/flat.mlir --tp-apply-plan=plan=%t/no-sequence.yaml -o %t/out.mlir 2>&1 | FileCheck %t/no-sequence.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/decoder.mlir --tp-apply-plan=plan=%t/inputs.yaml -o %t/out.mlir 2>&1 | FileCheck %t/inputs.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/short.mlir --tp-apply-plan=plan=%t/batch.yaml -o %t/out.mlir 2>&1 | FileCheck %t/batch.yaml --implicit-check-not=error:
// RUN: not ls %t/out.mlir

//--- decoder.mlir
func.func @main(%ids: tensor<2x8xi64> {tp.name = "ids"}, %mask: tensor<1x8xi1> {tp.name = "mask"}, %table: tensor<8x8xf32> {tp.name = "table"}) -> tensor<2x4x8x4xf32> {
  %w = nn.parameter "w" : tensor<12x16xf32>
  %x = nn.embedding %ids, %w : (tensor<2x8xi64>, tensor<12x16xf32>) -> tensor<2x8x16xf32>
  %s = nn.reshape %x : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %q = nn.transpose %s [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
  %r = nn.attention causal %q, %q, %q scale 0.5 : (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>) -> tensor<2x4x8x4xf32>
  return %r : tensor<2x4x8x4xf32>
}

//--- short.mlir
func.func @main(%x: tensor<2x3x16xf32> {tp.name = "x"}) -> tensor<2x3x16xf32> {
  return %x : tensor<2x3x16xf32>
}

//--- uneven.mlir
func.func @main(%q: tensor<2x7x16xf32> {tp.name = "q"}) -> tensor<2x7x16xf32> {
  return %q : tensor<2x7x16xf32>
}

//--- cross.mlir
func.func @main(%q: tensor<2x8x16xf32> {tp.name = "q"}, %k: tensor<2x6x16xf32> {tp.name = "k"}) -> tensor<2x8x16xf32> {
  %r = nn.attention %q, %k, %k scale 0.5 : (tensor<2x8x16xf32>, tensor<2x6x16xf32>, tensor<2x6x16xf32>) -> tensor<2x8x16xf32>
  return %r : tensor<2x8x16xf32>
}

//--- groups.mlir
func.func @main(%q: tensor<2x6x8x4xf32> {tp.name = "q"}, %k: tensor<2x2x8x4xf32> {tp.name = "k"}) -> tensor<2x6x8x4xf32> {
  %r = nn.attention causal %q, %k, %k scale 0.5 : (tensor<2x6x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>) -> tensor<2x6x8x4xf32>
  return %r : tensor<2x6x8x4xf32>
}

//--- flat.mlir
func.func @main(%x: tensor<8xf32> {tp.name = "x"}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

//--- ring.yaml
mesh: {dp: 2, cp: 2}
data_parallel: {dp: ddp}
context_parallel: {cp: {method: ring}}
# The table has another first dimension than the batch. Results stay split.
# CHECK: func.func @main(%{{.*}}: tensor<2x8xi64> {tp.batch = ["dp"], tp.name = "ids", tp.sequence = ["cp"], tp.sharding = #tp.sharding<@mesh, [{dp}, {cp}]>},
# CHECK-SAME: %{{.*}}: tensor<1x8xi1> {tp.name = "mask", tp.sequence = ["cp"], tp.sharding = #tp.sharding<@mesh, [{}, {cp}]>},
# CHECK-SAME: %{{.*}}: tensor<8x8xf32> {tp.name = "table"}) -> (tensor<2x4x8x4xf32> {tp.open})
# CHECK: nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {}]>}
# CHECK: nn.attention causal %{{.*}} scale 5.000000e-01 context ring :

//--- method-only.yaml
mesh: {cp: 2}
context_parallel: {cp: all_to_all}
# CHECK: nn.attention causal %{{.*}} scale 5.000000e-01 context all_to_all :

//--- default.yaml
mesh: {cp: 2}
context_parallel: {cp: {}}
# CHECK: nn.attention causal %{{.*}} scale 5.000000e-01 context cheapest :

//--- named.yaml
mesh: {cp: 2}
context_parallel: {cp: {inputs: {ids: -1, table: 0}}}
# CHECK: func.func @main(%{{.*}}: tensor<2x8xi64> {tp.name = "ids", tp.sequence = ["cp"], tp.sharding = #tp.sharding<@mesh, [{}, {cp}]>},
# CHECK-SAME: %{{.*}}: tensor<1x8xi1> {tp.name = "mask"},
# CHECK-SAME: %{{.*}}: tensor<8x8xf32> {tp.name = "table", tp.sequence = ["cp"], tp.sharding = #tp.sharding<@mesh, [{cp}, {}]>})

//--- unknown.yaml
mesh: {cp: 2, tp: 2}
# CHECK: :[[#@LINE+1]]:20: error: the mesh has no dimension 'cpp'; did you mean 'cp'?
context_parallel: {cpp: ring}

//--- method.yaml
mesh: {cp: 2}
# CHECK: :[[#@LINE+1]]:33: error: the method of context_parallel must be ring, all_gather, all_to_all or cheapest, found 'allgather'; did you mean 'all_gather'?
context_parallel: {cp: {method: allgather}}

//--- list.yaml
mesh: {cp: 2}
# CHECK: :[[#@LINE+1]]:1: error: context_parallel must map a mesh dimension to a method or to a map with the keys 'method' and 'inputs', found a list
context_parallel: [cp]

//--- two.yaml
mesh: {cp: 2, sp: 2}
# CHECK: :[[#@LINE+1]]:30: error: context_parallel splits the sequence over one mesh dimension, and 'cp' is given, too
context_parallel: {cp: ring, sp: ring}

//--- data.yaml
mesh: {dp: 2}
data_parallel: {dp: ddp}
# CHECK: :[[#@LINE+1]]:20: error: 'dp' is in data_parallel, so context_parallel can't split over it, too
context_parallel: {dp: ring}

//--- tensor.yaml
mesh: {cp: 2}
# CHECK: :[[#@LINE+1]]:20: error: 'cp' is in context_parallel, so the plan can't split over it, too
context_parallel: {cp: ring}
plan: {w: Shard(0)}

//--- heads.yaml
mesh: {cp: 5}
# CHECK: :[[#@LINE+2]]:33: error: all_to_all splits heads, and an attention has 4 heads, fewer than the 5 ranks of 'cp'; ring and all_gather take any number of heads
# CHECK: note: the attention is here
context_parallel: {cp: {method: all_to_all}}

//--- groups.yaml
mesh: {cp: 4}
# CHECK: :[[#@LINE+2]]:33: error: all_to_all splits the 2 key heads of an attention, or the 3 query heads that share each of them, and the 4 ranks of 'cp' divide neither; ring and all_gather take any number of heads
# CHECK: groups.mlir:2:8: note: the attention is here
context_parallel: {cp: {method: all_to_all, inputs: {q: 2, k: 2}}}

//--- short.yaml
mesh: {cp: 4}
# CHECK: :[[#@LINE+1]]:20: error: the sequence has 3 positions, fewer than the 4 ranks of 'cp'
context_parallel: {cp: all_gather}

//--- ring-uneven.yaml
mesh: {cp: 2}
# CHECK: :[[#@LINE+1]]:24: error: a ring needs blocks of one size, and the 2 ranks of 'cp' don't divide the sequence of 7 positions; all_gather takes any size
context_parallel: {cp: ring}

//--- ring-keys.yaml
mesh: {cp: 2}
# CHECK: :[[#@LINE+2]]:24: error: a ring needs as many keys as queries, and an attention has 6 keys for 8 queries; all_gather takes any number
# CHECK: note: the attention is here
context_parallel: {cp: ring}

//--- no-sequence.yaml
mesh: {cp: 2}
# CHECK: :[[#@LINE+1]]:20: error: no input has a sequence: each has fewer than two dimensions; name the dimension with inputs, such as inputs: {ids: 0}
context_parallel: {cp: all_gather}

//--- batch.yaml
mesh: {dp: 2, cp: 2}
data_parallel: {dp: ddp}
batch: {x: 1}
# CHECK: :[[#@LINE+1]]:20: error: dimension 1 of argument 0 would be both the batch and the sequence; name the sequence's dimension with inputs, such as inputs: {ids: 0}
context_parallel: {cp: all_gather}

//--- inputs.yaml
mesh: {cp: 2}
context_parallel:
  cp:
    inputs:
      ids: 1
# CHECK: :[[#@LINE+1]]:7: error: the model has no input 'tabel'; did you mean 'table'?
      tabel: 0
# CHECK: :[[#@LINE+2]]:13: error: dimension 0 of 'mask' has size 1, and the sequence has 8
# CHECK: :[[#@LINE-4]]:12: note: in 'ids'
      mask: 0
