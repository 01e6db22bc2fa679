// The stages of a pipeline give the results of one device, and train to the same bits, for each schedule.
// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && split-file %s %t && cd %t
// RUN: %python data.py
// RUN: sed 's/tensor<2x/tensor<6x/g' model.mlir > whole.mlir
// RUN: tp-opt whole.mlir --tp-parallelize=plan=one.yaml -o one.mlir && tp-compile one.mlir -o one.tpx
// RUN: tp-run one.tpx --weights w.safetensors --input x=x.npy --output y.npy
// RUN: tp-opt model.mlir --tp-parallelize=plan=1F1B.yaml -o stages.mlir && tp-compile stages.mlir -o stages.tpx
// RUN: tp-run stages.tpx --weights w.safetensors --input x=x.npy --expect y.npy --rtol 0 --atol 1e-6 --json run.json
// RUN: FileCheck %s --check-prefix=BYTES < run.json
// Each of the two last ranks receives 3 microbatches of 2 x 4 numbers.
// BYTES: "total"
// BYTES-NEXT: "calls": 12
// BYTES-NEXT: "bytes": 192

// Ranks that share a device transfer values on it, and those on devices of their own by NCCL.
// RUN: tp-compile stages.mlir --target=cuda:emulated -o cuda.tpx
// RUN: env LD_LIBRARY_PATH=%fake_cuda tp-run cuda.tpx --weights w.safetensors --input x=x.npy --expect y.npy --rtol 1e-5 --atol 1e-6
// RUN: env LD_LIBRARY_PATH=%fake_cuda tp-run -n 3 cuda.tpx --weights w.safetensors --input x=x.npy --expect y.npy --rtol 1e-5 --atol 1e-6

// RUN: tp-opt model.mlir --tp-parallelize="plan=one.yaml train=accumulate.yaml" -o one.mlir && tp-compile one.mlir -o one.tpx
// RUN: tp-run one.tpx --weights w.safetensors --data x=x.npy --data target=t.npy --steps 4 --output-weights one.safetensors
// RUN: sed 's/1F1B/GPipe/' 1F1B.yaml > GPipe.yaml
// RUN: sed 's/1F1B/InterleavedZeroBubble/' 1F1B.yaml > InterleavedZeroBubble.yaml
// DEFINE: %{schedule} = 1F1B
// DEFINE: %{train} = tp-opt model.mlir --tp-parallelize="plan=%{schedule}.yaml train=train.yaml" -o stages.mlir && tp-compile stages.mlir -o stages.tpx && tp-run stages.tpx --weights w.safetensors --data x=x.npy --data target=t.npy --steps 4 --output-weights stages.safetensors && cmp one.safetensors stages.safetensors
// RUN: %{train}
// REDEFINE: %{schedule} = GPipe
// RUN: %{train}
// REDEFINE: %{schedule} = InterleavedZeroBubble
// RUN: %{train}

//--- data.py
import numpy as np
from safetensors.numpy import save_file
draw = np.random.default_rng(0)
np.save("x.npy", draw.standard_normal((6, 4), "f4"))
np.save("t.npy", draw.standard_normal((6, 4), "f4"))
save_file({f"{name}.weight": draw.standard_normal((4, 4), "f4") for name in ("a", "b", "c")}, "w.safetensors")

//--- one.yaml
mesh: {tp: 1}
plan: {a: ColwiseParallel}

//--- 1F1B.yaml
mesh: {pp: 3}
pipeline: {pp: {split: [b, c], schedule: 1F1B, microbatches: 3}}

//--- train.yaml
{"loss": "mse", "optimizer": "AdamW", "clip_grad_norm": 1.0}

//--- accumulate.yaml
{"loss": "mse", "optimizer": "AdamW", "clip_grad_norm": 1.0, "accumulate": 3}

//--- model.mlir
func.func @main(%x: tensor<2x4xf32> {tp.name = "x"}) -> (tensor<2x4xf32> {tp.name = "y"}) {
  %a = nn.module "a" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "a.weight" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %f = nn.tanh %a : tensor<2x4xf32>
  %b = nn.module "b" class "Linear" (%f as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "b.weight" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %g = nn.tanh %b : tensor<2x4xf32>
  // The residual enters the second stage twice.
  %h = nn.add %g, %f : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %c = nn.module "c" class "Linear" (%h as "input" at 0) {
  ^bb0(%input: tensor<2x4xf32>):
    %w = nn.parameter "c.weight" : tensor<4x4xf32>
    %y = nn.linear %input, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %c : tensor<2x4xf32>
}
