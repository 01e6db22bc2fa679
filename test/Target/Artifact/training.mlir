// A training step writes parameters and optimizer state where they are: nothing is copied.

// REQUIRES: tp-compile
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/train.yaml -o %t/step.mlir
// RUN: tp-compile %t/step.mlir --emit=mlir -o - | FileCheck %s --implicit-check-not=memcpy
// RUN: tp-compile %t/step.mlir --emit=manifest -o - | FileCheck %s --check-prefix=MANIFEST

// CHECK: llvm.func @tpx_main
// MANIFEST: "parameters":[{"dtype":"i64","init":0,"name":"optimizer.step","placements":[],"shape":[],"shards":{{[^a-z]*}},"updated":true},
// MANIFEST-SAME: {"dtype":"f32","name":"up.weight","placements":[],"shape":[8,8],"shards":{{[^a-z]*}},"updated":true},
// MANIFEST-SAME: {"dtype":"f32","init":0,"name":"optimizer.exp_avg.up.weight","placements":[],"shape":[8,8],"shards":{{[^a-z]*}},"updated":true},

//--- model.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<4x6xf32> {
  %w = nn.parameter "up.weight" : tensor<8x8xf32>
  %y = nn.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %r = nn.gelu %y : tensor<4x8xf32>
  %v = nn.parameter "down.weight" : tensor<6x8xf32>
  %z = nn.linear %r, %v : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  return %z : tensor<4x6xf32>
}

//--- train.yaml
{loss: mse, optimizer: AdamW, clip_grad_norm: 1.0}
