// The parts of a mesh dimension of 16 ranks, which a split by 8 heads mentions, have more combinations than a search looks at. An op
// then has the splits over the whole dimension, and FSDP is what it is on fewer ranks: one gather, one reduction, no activation moves.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/plan.yaml train=%t/train.yaml exhaustive-ops=0" | FileCheck %s

// CHECK-COUNT-1: tp.all_gather {{.*}} tensor<512xbf16> -> tensor<8192xbf16>
// CHECK-NOT: tp.all_gather
// CHECK: nn.linear {{.*}} -> tensor<2x4x64xbf16>
// CHECK: nn.attention{{.*}}tensor<2x8x4x8xbf16>
// CHECK: tp.reduce_scatter {{.*}} tensor<16x512xbf16>
// CHECK-NOT: tp.reduce_scatter

//--- model.mlir
func.func @main(%x: tensor<32x4x64xf32> {tp.name = "x"}) -> tensor<32x4x64xf32> {
  %wq = nn.parameter "wq.weight" : tensor<64x64xf32>
  %wo = nn.parameter "wo.weight" : tensor<64x64xf32>
  %q = nn.linear %x, %wq : (tensor<32x4x64xf32>, tensor<64x64xf32>) -> tensor<32x4x64xf32>
  %h = nn.reshape %q : tensor<32x4x64xf32> -> tensor<32x4x8x8xf32>
  %t = nn.transpose %h [0, 2, 1, 3] : tensor<32x4x8x8xf32> -> tensor<32x8x4x8xf32>
  %a = nn.attention causal %t, %t, %t scale 1.0 : (tensor<32x8x4x8xf32>, tensor<32x8x4x8xf32>, tensor<32x8x4x8xf32>) -> tensor<32x8x4x8xf32>
  %b = nn.transpose %a [0, 2, 1, 3] : tensor<32x8x4x8xf32> -> tensor<32x4x8x8xf32>
  %c = nn.reshape %b : tensor<32x4x8x8xf32> -> tensor<32x4x64xf32>
  %o = nn.linear %c, %wo : (tensor<32x4x64xf32>, tensor<64x64xf32>) -> tensor<32x4x64xf32>
  return %o : tensor<32x4x64xf32>
}

//--- plan.yaml
mesh: {dp: 16}
data_parallel: {dp: fsdp}

//--- train.yaml
loss: mse
optimizer: AdamW
compute: bf16
