// With data parallelism each rank computes its part of the batch, and gradients are reduced: all-reduced where
// parameters are replicated, reduce-scattered where they are split. FSDP gathers for forward, and again for backward; weights, also
// where activations would be less. A gradient is reduced where it is computed, on behalf of its parameter.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/ddp.yaml train=%t/adamw.yaml bucket-bytes=0" | FileCheck %s --check-prefix=DDP
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/fsdp.yaml train=%t/train.yaml bucket-bytes=0" | FileCheck %s --check-prefix=FSDP
// RUN: tp-opt %t/small.mlir --tp-parallelize="plan=%t/fsdp.yaml train=%t/train.yaml bucket-bytes=0" | FileCheck %s --check-prefix=FSDP
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/kept.yaml train=%t/train.yaml bucket-bytes=0" | FileCheck %s --check-prefix=KEPT
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/hsdp.yaml train=%t/adamw.yaml" | FileCheck %s --check-prefix=HSDP
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/fsdp.yaml train=%t/train.yaml overlap" | FileCheck %s --check-prefix=OVERLAP

// DDP-NOT: tp.all_gather
// DDP: nn.linear %{{.*}} : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
// DDP: nn.outer_sum %{{.*}} : (tensor<256x64xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
// DDP-NEXT: tp.all_reduce sum %{{.*}} fqn = "down.weight", {{.*}} : tensor<64x64xf32>
// DDP: nn.outer_sum %{{.*}} : (tensor<256x64xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
// DDP-NEXT: tp.all_reduce sum %{{.*}} fqn = "up.weight", {{.*}} : tensor<64x64xf32>
// DDP-NOT: tp.all_gather

// FSDP: nn.parameter "up.weight" {{.*}} : tensor<32x64xf32>
// FSDP-COUNT-2: tp.all_gather %{{.*}} dim 0 over @mesh {dp} {{.*}}fsdp.yaml:2:17: fsdp"} : tensor<32x64xf32> -> tensor<64x64xf32>
// FSDP: nn.sub
// The input needs no gradient: backward reads one weight.
// FSDP-COUNT-1: tp.all_gather %{{.*}} dim 0 over @mesh {dp} {{.*}}fsdp.yaml:2:17: fsdp"}
// FSDP-NOT: tp.all_gather
// FSDP: %[[DOWN:.*]] = nn.outer_sum
// FSDP-NEXT: tp.reduce_scatter sum %[[DOWN]] dim 0 over @mesh {dp} {{.*}}fqn = "down.weight"{{.*}} : tensor<64x64xf32> -> tensor<32x64xf32>
// FSDP-NOT: tp.all_gather
// FSDP: %[[UP:.*]] = nn.outer_sum
// FSDP-NEXT: tp.reduce_scatter sum %[[UP]] dim 0 over @mesh {dp} {{.*}}fqn = "up.weight"{{.*}} : tensor<64x64xf32> -> tensor<32x64xf32>
// FSDP-NOT: tp.all_gather

// HSDP reduces over both mesh dimensions: what is scattered over one, in one bucket over the other. Without blocks, all
// parameters are the root's.
// HSDP: tp.all_gather %{{.*}} dim 0 over @mesh {dp} {{.*}}fqn = "up, down"
// HSDP-NOT: tp.all_gather
// HSDP: tp.reduce_scatter sum %{{.*}} dim 0 over @mesh {dp} {{.*}}fqn = "down.weight, up.weight"{{.*}} : tensor<2x4096xf32> -> tensor<1x4096xf32>
// HSDP-NOT: tp.reduce_scatter
// HSDP: tp.all_reduce sum %{{.*}} over @mesh {replicate} {{.*}}fqn = "down.weight, up.weight"{{.*}} : tensor<4096xf32>

// The second module's weight is gathered while the first computes.
// OVERLAP: tp.start
// OVERLAP-NEXT: tp.all_gather {{.*}}fqn = "up"
// OVERLAP: tp.start
// OVERLAP-NEXT: tp.all_gather {{.*}}fqn = "down"
// OVERLAP: tp.wait
// OVERLAP-NEXT: nn.linear
// OVERLAP: tp.wait
// OVERLAP-NEXT: nn.linear

// KEPT-COUNT-2: tp.all_gather
// KEPT-NOT: tp.all_gather
// KEPT-COUNT-2: tp.reduce_scatter

//--- model.mlir
func.func @main(%x: tensor<512x64xf32> {tp.name = "x"}) -> tensor<512x64xf32> {
  %h = nn.module "up" class "Up" (%x as "input" at 0) {
  ^bb0(%a: tensor<512x64xf32>):
    %w = nn.parameter "up.weight" : tensor<64x64xf32>
    %y = nn.linear %a, %w : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
    %r = nn.relu %y : tensor<512x64xf32>
    nn.yield %r : tensor<512x64xf32>
  } : (tensor<512x64xf32>) -> tensor<512x64xf32>
  %0 = nn.module "down" class "Linear" (%h as "input" at 0) {
  ^bb0(%a: tensor<512x64xf32>):
    %w = nn.parameter "down.weight" : tensor<64x64xf32>
    %y = nn.linear %a, %w : (tensor<512x64xf32>, tensor<64x64xf32>) -> tensor<512x64xf32>
    nn.yield %y : tensor<512x64xf32>
  } : (tensor<512x64xf32>) -> tensor<512x64xf32>
  return %0 : tensor<512x64xf32>
}

//--- small.mlir
func.func @main(%x: tensor<2x64xf32> {tp.name = "x"}) -> tensor<2x64xf32> {
  %h = nn.module "up" class "Up" (%x as "input" at 0) {
  ^bb0(%a: tensor<2x64xf32>):
    %w = nn.parameter "up.weight" : tensor<64x64xf32>
    %y = nn.linear %a, %w : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    %r = nn.relu %y : tensor<2x64xf32>
    nn.yield %r : tensor<2x64xf32>
  } : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %0 = nn.module "down" class "Linear" (%h as "input" at 0) {
  ^bb0(%a: tensor<2x64xf32>):
    %w = nn.parameter "down.weight" : tensor<64x64xf32>
    %y = nn.linear %a, %w : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
    nn.yield %y : tensor<2x64xf32>
  } : (tensor<2x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}

//--- ddp.yaml
mesh: {dp: 2}
data_parallel: {dp: ddp}

//--- fsdp.yaml
mesh: {dp: 2}
data_parallel: {dp: {style: fsdp, modules: [up, down]}}

//--- kept.yaml
mesh: {dp: 2}
data_parallel: {dp: {style: fsdp, reshard_after_forward: false}}

//--- hsdp.yaml
mesh: {replicate: 2, dp: 2}
data_parallel: {replicate: ddp, dp: fsdp}

//--- train.yaml
{loss: mse, optimizer: {name: SGD, lr: 0.1}}

//--- adamw.yaml
{loss: mse, optimizer: AdamW}
