// Why values of Megatron's MLP are placed as they are, and what is reduced.
// RUN: split-file %s %t
// RUN: tp-opt %S/../Transforms/Inputs/norm_mlp.mlir --tp-explain=plan=%t/plan.yaml | FileCheck %t/text.check --implicit-check-not=module
// RUN: tp-opt %S/../Transforms/Inputs/norm_mlp.mlir --tp-explain="plan=%t/plan.yaml format=json" | %python -m json.tool --compact --sort-keys | FileCheck %t/json.check
// RUN: tp-opt %S/../Transforms/Inputs/norm_mlp.mlir --tp-explain="plan=%t/plan.yaml value=up.weight" | FileCheck %t/filter.check
// RUN: tp-opt %S/../Transforms/Inputs/norm_mlp.mlir --tp-explain="plan=%t/sequence.yaml strategy=greedy" | FileCheck %t/sequence.check
// RUN: tp-opt %S/../Transforms/Inputs/norm_mlp.mlir --tp-explain=plan=%t/data.yaml | FileCheck %t/data.check

// The program is printed on request alone, and isn't changed; the explanation may go to a file.
// RUN: tp-opt %S/../Transforms/Inputs/norm_mlp.mlir --tp-explain="plan=%t/plan.yaml file=%t/explained.txt" | count 0
// RUN: FileCheck %t/text.check --input-file=%t/explained.txt
// RUN: tp-opt %S/../Transforms/Inputs/norm_mlp.mlir --tp-explain="plan=%t/plan.yaml file=%t/explained.txt" -o %t/program.mlir
// RUN: tp-opt %S/../Transforms/Inputs/norm_mlp.mlir -o %t/same.mlir
// RUN: diff %t/program.mlir %t/same.mlir

//--- plan.yaml
mesh: {tp: 2}
plan:
  up: ColwiseParallel
  down: RowwiseParallel

//--- sequence.yaml
mesh: {tp: 2}
plan:
  norm: {style: SequenceParallel, sequence_dim: 0}
  up: {style: ColwiseParallel, input_layouts: Shard(0)}
  down: {style: RowwiseParallel, output_layouts: Shard(0)}

//--- data.yaml
mesh: {dp: 2}
data_parallel: {dp: fsdp}

//--- data.check
CHECK: argument 0 'x': 8x16xf32 (Shard(0))
CHECK-NEXT: dp: argument 0 'x' Shard(0) [data.yaml:2:17: data_parallel]
CHECK: 'up.weight': 64x16xf32 (Shard(0))
CHECK-NEXT: dp: 'up.weight' Shard(0) [data.yaml:2:17: fsdp]
CHECK: nn.linear (up): 8x64xf32 (Shard(0))
CHECK-NEXT: dp: argument 0 'x' Shard(0) [data.yaml:2:17: data_parallel] -> nn.layer_norm (norm) dimension 0 -> nn.linear (up) factor b0

//--- text.check
CHECK: mesh tp=2
CHECK-NEXT: total as propagated: 1 KiB (1024 bytes) received by all ranks, 1 collective
CHECK-NEXT: total after tp-optimize-collectives: 1 KiB (1024 bytes) received by all ranks, 1 collective
CHECK: placements
CHECK-NEXT: @main
CHECK-NEXT: argument 0 'x': 8x16xf32 (Replicate)
CHECK-NEXT: tp: argument 0 'x' Replicate [replicated by default]
CHECK: 'up.weight': 64x16xf32 (Shard(0))
CHECK-NEXT: tp: 'up.weight' Shard(0) [plan.yaml:3:3: ColwiseParallel]
CHECK-NEXT: nn.linear (up): 8x64xf32 (Shard(1))
CHECK-NEXT: tp: 'up.weight' Shard(0) [plan.yaml:3:3: ColwiseParallel] -> nn.linear (up) factor n Shard(1)
CHECK-NEXT: nn.relu (norm_mlp.mlir:{{.*}}): 8x64xf32 (Shard(1))
CHECK-NEXT: tp: up Shard(1) [plan.yaml:3:3: ColwiseParallel output_layouts Shard(-1)] -> nn.relu (norm_mlp.mlir:{{.*}}) dimension 1
CHECK: nn.linear (down): 8x16xf32 (Partial(sum))
CHECK-NEXT: tp: down Shard(1) [plan.yaml:4:3: RowwiseParallel input_layouts Shard(-1)] -> nn.linear (down) factor k Partial(sum)
CHECK: collectives
CHECK-NEXT: 1. all_reduce over {tp}
CHECK-NEXT: of nn.linear (down), 8x16xf32, (Partial(sum)) to (Replicate), at norm_mlp.mlir:{{.*}}
CHECK-NEXT: cause: plan.yaml:4:3: RowwiseParallel output_layouts Replicate, in 'down'
CHECK-NEXT: bytes: 1 KiB (1024 bytes) received by all ranks, 512 bytes by one
CHECK-NEXT: over tp: the requested placement takes precedence
CHECK-NEXT: lost: Partial(sum), from down Shard(1)
CHECK-NEXT: won:  Replicate, from down Replicate [plan.yaml:4:3: RowwiseParallel output_layouts Replicate]
CHECK-NEXT: otherwise: nn.linear split along tp: factor n, (Replicate), (Shard(0)) -> (Shard(1))
CHECK-NEXT: +{{.*}} bytes), +2 collectives

//--- json.check
CHECK: {"mesh":{"axes":[{"name":"tp","size":2}],"name":"mesh"},"redistributions":[{"alternatives":[{"bytes":
CHECK-SAME: "asked":true,"bytes":1024,"bytes_per_rank":512,"choice":{"fqn":"down","location":"{{[^"]*}}","op":"nn.linear"},"collectives":["all_reduce over {tp}"]
CHECK-SAME: "conflicts":[{"lost":{"left_out":0,"placement":"Partial(sum)","source":{"by":"plan.yaml:4:3: RowwiseParallel input_layouts Shard(-1)","kind":"layout","placement":"Shard(1)","what":"down"},"steps":[{"fqn":"down","location":"{{[^"]*}}","op":"nn.linear","placement":"Partial(sum)","split":"factor k"}]},"mesh_dim":"tp","verdict":"the requested placement takes precedence","won":
CHECK-SAME: "edits":[{{.*}}],"fqn":"down","from":["Partial(sum)"],"function":"main","least_bytes":1024,
CHECK-SAME: "reason":"plan.yaml:4:3: RowwiseParallel output_layouts Replicate","shape":[8,16],"times":1,"to":["Replicate"],"value":"nn.linear (down)","value_index":[[VALUE:[0-9]+]]}]
CHECK-SAME: "schema":1,"totals":{"bytes":1024,"collectives":1,"gap":0,"optimized":{"bytes":1024,"collectives":1}}
CHECK-SAME: "values":[{"chains":[{"left_out":0,"mesh_dim":"tp","placement":"Replicate","source":{"by":"replicated by default","kind":"argument","placement":"Replicate","what":"argument 0 'x'"},"steps":[]}],"dtype":"f32","function":"main","name":"argument 0 'x'","placements":["Replicate"],"shape":[8,16]}

//--- filter.check
CHECK: total as propagated: 1 KiB (1024 bytes) received by all ranks, 1 collective
CHECK-NEXT: total after tp-optimize-collectives: 1 KiB (1024 bytes) received by all ranks, 1 collective
CHECK: placements
CHECK-NEXT: @main
CHECK-NEXT: 'up.weight'
CHECK-NEXT: tp:
CHECK-EMPTY:
CHECK-NEXT: collectives
CHECK-NEXT: none

//--- sequence.check
CHECK: nn.layer_norm (norm): 8x16xf32 (Shard(0))
CHECK-NEXT: tp: norm Shard(0) [sequence.yaml:3:{{.*}}: SequenceParallel {{.*}}Shard(0)] -> nn.layer_norm (norm) dimension 0
CHECK: 1. all_gather over {tp}
CHECK: cause: sequence.yaml:4:32: ColwiseParallel desired_input_layouts Replicate, in 'up'
CHECK: 2. reduce_scatter over {tp}
CHECK: cause: sequence.yaml:5:{{.*}}: RowwiseParallel output_layouts Shard(0), in 'down'
