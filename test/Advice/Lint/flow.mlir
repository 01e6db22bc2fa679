// Placements that don't match along the uses of a value.
// RUN: split-file %s %t
// RUN: tp-opt %S/../../Plan/Inputs/attention.mlir --tp-apply-plan=plan=%t/clean.yaml -o /dev/null 2>&1 | count 0
// RUN: tp-opt %S/../../Plan/Inputs/attention.mlir --tp-apply-plan=plan=%t/declared.yaml -o /dev/null 2>&1 | FileCheck %t/declared.yaml --implicit-check-not=warning:
// RUN: tp-opt %S/../../Plan/Inputs/attention.mlir --tp-apply-plan=plan=%t/gather.yaml -o /dev/null 2>&1 | FileCheck %t/gather.yaml --implicit-check-not=warning:
// RUN: tp-opt %S/../../Plan/Inputs/attention.mlir --tp-apply-plan=plan=%t/whole.yaml -o /dev/null 2>&1 | FileCheck %t/whole.yaml --implicit-check-not=warning:
// RUN: tp-opt %S/../../Plan/Inputs/attention.mlir --tp-apply-plan=plan=%t/heads.yaml -o /dev/null 2>&1 | FileCheck %t/heads.yaml --implicit-check-not=warning:
// RUN: tp-opt %S/../../Plan/Inputs/attention.mlir --tp-apply-plan=plan=%t/conflict.yaml -o /dev/null 2>&1 | FileCheck %t/conflict.yaml --implicit-check-not=warning:
// RUN: tp-opt %S/../../Plan/Inputs/fused.mlir --tp-apply-plan=plan=%t/segments.yaml -o /dev/null 2>&1 | FileCheck %t/segments.yaml --implicit-check-not=warning:
// RUN: tp-opt %S/../../Plan/Inputs/fused.mlir --tp-apply-plan="plan=%t/slices.yaml strict=true" -o /dev/null 2>&1 | count 0
// RUN: tp-opt %S/../../Plan/Inputs/fused.mlir --tp-apply-plan=plan=%t/packed.yaml -o /dev/null 2>&1 | FileCheck %t/packed.yaml --implicit-check-not=warning:

//--- clean.yaml
mesh: {tp: 2}
plan:
  norm: SequenceParallel
  wq: {style: ColwiseParallel, input_layouts: Shard(1)}
  wo: {style: RowwiseParallel, output_layouts: Shard(1)}

# The norm leaves the sequence split; PyTorch would take a rank's part for all.
//--- declared.yaml
mesh: {tp: 2}
plan:
  norm: SequenceParallel
# CHECK: :[[#@LINE+3]]:3: warning: input 'input' of 'wq' is declared Replicate, but comes as Shard(1) from sequence_dim at declared.yaml:[[#@LINE-1]]:3 [hidden-gather]
# CHECK: :[[#@LINE+2]]:3: note: cost: each rank receives 512 bytes here; PyTorch trusts the declaration, so with local tensors its result differs
# CHECK: :[[#@LINE+1]]:3: note: fix: declare Shard(1), or ask for Replicate at declared.yaml:[[#@LINE-3]]:3
  wq: ColwiseParallel
  wo: RowwiseParallel

//--- gather.yaml
mesh: {tp: 2}
plan:
  wq: {style: ColwiseParallel, output_layouts: Replicate}
# CHECK: :[[#@LINE+2]]:3: warning: input 'input' of 'wo' is declared Shard(2), but comes as Replicate from output_layouts at gather.yaml:[[#@LINE-1]]:32 [declared-layout]
# CHECK: :[[#@LINE+1]]:3: note: cost: nothing here; PyTorch trusts the declaration
  wo: RowwiseParallel

//--- whole.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+3]]:35: warning: 'nn.layer_norm' in 'norm' needs all of dimension 2 of its operand, which is Shard(2) because of sequence_dim [forced-gather]
# CHECK: :[[#@LINE+2]]:35: note: cost: each rank receives up to 512 bytes
# CHECK: :[[#@LINE+1]]:35: note: fix:
  norm: {style: SequenceParallel, sequence_dim: 2}

//--- heads.yaml
mesh: {tp: 8}
plan:
# CHECK: :[[#@LINE+3]]:3: warning: the root module reshapes a dimension of size 16 to 4 × 4; 4 can't be split evenly over mesh dimension 'tp' of size 8, as output_layouts asks [heads]
# CHECK: :[[#@LINE+2]]:3: note: cost: each rank receives 896 bytes, unless the parts can be split unevenly
# CHECK: :[[#@LINE+1]]:3: note: fix: use a size of the mesh dimension that divides 4: 2, 4{{$}}
  wq: ColwiseParallel

# Segments that aren't the pieces.
//--- segments.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+2]]:3: warning: the root module cuts a dimension that output_layouts splits in segments of 8, 24 into pieces of 16, 16: a rank's block isn't its part of each piece [packed-weight]
# CHECK: :[[#@LINE+1]]:3: note: fix: write {style: packed_colwise, segments: [16, 16]}
  gate_up: {style: packed_colwise, segments: [8, 24]}

# A slice of one segment is split in plain blocks.
//--- slices.yaml
mesh: {tp: 2}
plan:
  gate_up: packed_colwise
  down: RowwiseParallel

//--- packed.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+3]]:3: warning: the root module cuts a dimension that output_layouts splits in plain blocks into pieces of 16, 16: a rank's block isn't its part of each piece [packed-weight]
# CHECK: :[[#@LINE+2]]:3: note: cost: each rank receives 128 bytes
# CHECK: :[[#@LINE+1]]:3: note: fix: write {style: packed_colwise, segments: [16, 16]}
  gate_up: ColwiseParallel

# Rows of the batch and rows of the weight over one mesh dimension.
//--- conflict.yaml
mesh: {tp: 2}
plan:
  norm: {style: PrepareModuleInputOutput, input_layouts: Shard(0), desired_input_layouts: Shard(0),
# CHECK: :[[#@LINE+2]]:10: warning: 'nn.linear' in 'wq' has operands that are split differently; one of them is Shard(0) because of output_layouts [forced-gather]
# CHECK: :[[#@LINE+1]]:10: note: cost: each rank receives up to 512 bytes
         output_layouts: Shard(0), desired_output_layouts: Shard(0)}
  wq.weight: [Shard(0)]
