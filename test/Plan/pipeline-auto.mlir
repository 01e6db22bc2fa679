// With split: auto, the stages take equal times. The layers have 1, 1, 1 and 3 times the work, and as
// many parameters each.
// RUN: split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-apply-plan=plan=two.yaml | FileCheck %t/two.yaml
// RUN: tp-opt model.mlir --tp-print-plan=plan=two.yaml -o /dev/null | FileCheck %s --check-prefix=TEXT
// RUN: tp-opt model.mlir --tp-print-plan="plan=two.yaml format=json" -o /dev/null | FileCheck %s --check-prefix=JSON
// RUN: tp-opt model.mlir --tp-print-plan="plan=two.yaml format=python" -o /dev/null | FileCheck %s --check-prefix=PYTHON
// RUN: tp-opt model.mlir --tp-explain="plan=two.yaml" -o /dev/null | FileCheck %s --check-prefix=TEXT
// RUN: tp-opt model.mlir --tp-apply-plan=plan=interleaved.yaml | FileCheck %t/interleaved.yaml
// RUN: tp-opt model.mlir --tp-print-plan=plan=interleaved.yaml -o /dev/null | FileCheck %s --check-prefix=INTERLEAVED
// RUN: tp-opt model.mlir --tp-print-plan=plan=memory.yaml -o /dev/null | FileCheck %s --check-prefix=MEMORY
// RUN: tp-opt model.mlir --tp-print-plan=plan=fsdp.yaml -o /dev/null | FileCheck %s --check-prefix=FSDP
// RUN: not tp-opt model.mlir --tp-print-plan=plan=small.yaml -o /dev/null 2>&1 | FileCheck small.yaml --check-prefix=ERROR

// TEXT: pipeline: {pp: {split: [layers.3], schedule: 1F1B, microbatches: 2}}
// TEXT-NEXT: stage 0: 50% of the forward pass's time, 192 bytes of parameters per rank
// TEXT-NEXT: stage 1: 50% of the forward pass's time, 64 bytes of parameters per rank
// JSON: "pipeline": {
// JSON-NEXT: "mesh_dim": "pp",
// JSON-NEXT: "split": [
// JSON-NEXT: "layers.3"
// JSON-NEXT: ],
// JSON-NEXT: "stages_per_rank": 1,
// JSON-NEXT: "schedule": "1F1B",
// JSON-NEXT: "microbatches": 2
// PYTHON: # torch.distributed.pipelining over "pp": SplitPoint.BEGINNING at "layers.3"; Schedule1F1B, n_microbatches=2
// INTERLEAVED: pipeline: {pp: {split: [layers.1, layers.2, layers.3], schedule: Interleaved1F1B, microbatches: 2}}
// MEMORY: pipeline: {pp: {split: [layers.2], schedule: 1F1B, microbatches: 1}}

// FSDP splits parameters, so that they fit.
// FSDP: stage 0: 50% of the forward pass's time, 96 bytes of parameters per rank
// FSDP-NEXT: stage 1: 50% of the forward pass's time, 32 bytes of parameters per rank

//--- fsdp.yaml
mesh: {pp: 2, dp: 2}
data_parallel: {dp: fsdp}
pipeline: {pp: {split: auto, machine: small-machine.yaml}}

//--- two.yaml
mesh: {pp: 2}
pipeline: {pp: {split: auto, microbatches: 2}}
# CHECK: tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 2
# CHECK-NOT: tp.stage = 1
# CHECK: nn.module "layers.3"
# CHECK: tp.stage = 1

//--- interleaved.yaml
mesh: {pp: 2}
pipeline: {pp: {split: auto, schedule: Interleaved1F1B, microbatches: 2}}
# CHECK: tp.pipeline @mesh over "pp" schedule "Interleaved1F1B" microbatches 2 stages 4

//--- memory.yaml
mesh: {pp: 2}
# A rank has memory for two layers.
pipeline: {pp: {split: auto, machine: machine.yaml}}

//--- machine.yaml
device: {flops: {f64: 1e9, f32: 1e9, f16: 1e9, bf16: 1e9}, elementwise: 1e9, memory_bandwidth: 1e9, memory_capacity: 150}
links: [{name: link, latency: 1e-6, bandwidth: 1e9}]

//--- small.yaml
mesh: {pp: 2}
# ERROR: small.yaml:3:24: error: no cut between the model's modules gives each stage at most 100 bytes of parameters, its share of the memory of a rank of 'small-machine.yaml' (100 bytes, 1 stage per rank); use more ranks
pipeline: {pp: {split: auto, machine: small-machine.yaml}}

//--- small-machine.yaml
device: {flops: {f64: 1e9, f32: 1e9, f16: 1e9, bf16: 1e9}, elementwise: 1e9, memory_bandwidth: 1e9, memory_capacity: 100}
links: [{name: link, latency: 1e-6, bandwidth: 1e9}]

//--- model.mlir
func.func @main(%x: tensor<8x4xf32> {tp.name = "x"}) -> tensor<8x4xf32> {
  %0 = nn.module "layers.0" class "Layer" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x4xf32>):
    %w = nn.parameter "layers.0.weight" : tensor<4x4xf32>
    %y0 = nn.linear %input, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    nn.yield %y0 : tensor<8x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = nn.module "layers.1" class "Layer" (%0 as "input" at 0) {
  ^bb0(%input: tensor<8x4xf32>):
    %w = nn.parameter "layers.1.weight" : tensor<4x4xf32>
    %y0 = nn.linear %input, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    nn.yield %y0 : tensor<8x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = nn.module "layers.2" class "Layer" (%1 as "input" at 0) {
  ^bb0(%input: tensor<8x4xf32>):
    %w = nn.parameter "layers.2.weight" : tensor<4x4xf32>
    %y0 = nn.linear %input, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    nn.yield %y0 : tensor<8x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = nn.module "layers.3" class "Layer" (%2 as "input" at 0) {
  ^bb0(%input: tensor<8x4xf32>):
    %w = nn.parameter "layers.3.weight" : tensor<4x4xf32>
    %y0 = nn.linear %input, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %y1 = nn.linear %y0, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %y2 = nn.linear %y1, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    nn.yield %y2 : tensor<8x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
