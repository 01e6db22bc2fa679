// Each edit that is proposed is valid, and does what it says; totals are those of tp-report.
// RUN: split-file %s %t
// RUN: %python %S/Inputs/check_edits.py %S/../Transforms/Inputs/norm_mlp.mlir %t/megatron.yaml %t/megatron
// RUN: %python %S/Inputs/check_edits.py %S/../Transforms/Inputs/norm_mlp.mlir %t/sequence.yaml %t/sequence
// RUN: %python %S/Inputs/check_edits.py %S/../Transforms/Inputs/norm_mlp.mlir %t/gathered.yaml %t/gathered | FileCheck %s --check-prefix=DONE
// RUN: %python %S/Inputs/check_edits.py %S/../Plan/Inputs/mlp.mlir %t/mlp.yaml %t/mlp | FileCheck %s --check-prefix=DONE
// RUN: %python %S/Inputs/check_edits.py %S/../Plan/Inputs/mlp.mlir %t/direct.yaml %t/direct | FileCheck %s --check-prefix=DONE
// RUN: %python %S/Inputs/check_edits.py %S/../Plan/Inputs/grouped.mlir %t/grouped.yaml %t/grouped | FileCheck %s --check-prefix=DONE
// RUN: %python %S/Inputs/random_edits.py %t/random
// DONE: {{^[1-9][0-9]*}} edits do what they say

// The bytes of an edit are those of the whole program, and a layout that nobody needs is the first to go.
// RUN: tp-opt %S/../Transforms/Inputs/norm_mlp.mlir --tp-explain=plan=%t/gathered.yaml 2>/dev/null | FileCheck %t/gathered.check
// RUN: tp-opt %S/../Plan/Inputs/mlp.mlir --tp-explain=plan=%t/mlp.yaml | FileCheck %t/mlp.check
// RUN: tp-opt %S/../Plan/Inputs/grouped.mlir --tp-explain=plan=%t/grouped.yaml 2>/dev/null | FileCheck %t/grouped.check
// RUN: tp-opt %S/../Transforms/Inputs/norm_mlp.mlir --tp-explain="plan=%t/gathered.yaml trials=0" 2>/dev/null | FileCheck %t/untried.check
// RUN: tp-opt %S/../Transforms/Inputs/norm_mlp.mlir --tp-explain="plan=%t/gathered.yaml trials=2" 2>/dev/null | FileCheck %t/cut.check

//--- megatron.yaml
mesh: {tp: 2}
plan:
  up: ColwiseParallel
  down: RowwiseParallel

//--- sequence.yaml
mesh: {tp: 4}
plan:
  norm: {style: SequenceParallel, sequence_dim: 0}
  up: {style: ColwiseParallel, input_layouts: Shard(0)}
  down: {style: RowwiseParallel, output_layouts: Shard(0)}

//--- gathered.yaml
mesh: {tp: 2}
plan:
  up: {style: ColwiseParallel, output_layouts: Replicate}
  down: RowwiseParallel

//--- mlp.yaml
mesh: {dp: 2, tp: 2}
mesh_dim: tp
plan:
  net1: {style: ColwiseParallel, output_layouts: Replicate}
  net2: ColwiseParallel

# A pattern is proposed for the queries alone, and equal layers are explained once.
//--- grouped.yaml
mesh: {tp: 4}
plan:
  layers.*.attention.w[qkv]: ColwiseParallel
  layers.*.attention.wo: RowwiseParallel

//--- grouped.check
CHECK: 'layers.0.attention.wk.weight', and 1 more of other layers: 16x64xf32 (Shard(0))
CHECK-NOT: layers.1.attention.wk.weight'
CHECK: edit: replace grouped.yaml:3:3 by layers.*.attention.wq: ColwiseParallel
CHECK: the same in 1 other layer

//--- direct.yaml
mesh: {tp: 2}
plan:
  net1.weight: [Shard(1)]
  net2.weight: [Shard(0)]

//--- gathered.check
CHECK: total as propagated: 3 KiB (3072 bytes) received by all ranks, 2 collectives
CHECK-NEXT: total after tp-optimize-collectives: 1 KiB (1024 bytes) received by all ranks, 1 collective
CHECK: 1. all_gather over {tp}
CHECK-NEXT: of nn.linear (up), 8x64xf32, (Shard(1)) to (Replicate), at norm_mlp.mlir:{{.*}}
CHECK-NEXT: cause: gathered.yaml:3:32: ColwiseParallel output_layouts Replicate, in 'up'
CHECK-NEXT: bytes: 2 KiB
CHECK-NEXT: over tp: the requested placement takes precedence
CHECK-NEXT: lost: Shard(1), from 'up.weight' Shard(0) [gathered.yaml:3:3: ColwiseParallel] -> nn.linear (up) factor n Shard(1)
CHECK-NEXT: won:  Replicate, from up Replicate [gathered.yaml:3:32: ColwiseParallel output_layouts Replicate]
CHECK: edit: replace gathered.yaml:3:3 by up: ColwiseParallel
CHECK-NEXT: -2 KiB (2048 bytes), -1 collective

//--- mlp.check
The plan is over one of two mesh dimensions; what is said of the other isn't by its entries.
CHECK: 'net1.weight': 16x10xf32 (Replicate, Shard(0))
CHECK-NEXT: dp: 'net1.weight' Replicate [replicated by default]
CHECK-NEXT: tp: 'net1.weight' Shard(0) [mlp.yaml:4:3: ColwiseParallel]
CHECK: of nn.add (net1), 8x16xf32, (Replicate, Shard(1)) to (Replicate, Replicate)
CHECK: lost: Shard(1), from 'net1.bias' Shard(0) [mlp.yaml:4:3: ColwiseParallel] -> nn.add (net1) dimension 1 Shard(1)
CHECK: won:  Replicate, from net1 Replicate [mlp.yaml:4:34: ColwiseParallel output_layouts Replicate]

//--- untried.check
CHECK: collectives
CHECK-NOT: edit

//--- cut.check
CHECK: only 2 edits were tried; 'trials' allows more
