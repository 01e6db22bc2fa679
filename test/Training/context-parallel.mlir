// The backward pass of a ring: keys and values travel again, and their gradients with them, one step further. The forward
// pass, where key and value are one tensor, isn't repeated. With whole keys and values, their gradients are summed and
// scattered. The target has the sequence, too.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/ring.yaml train=%t/train.yaml" -o %t/ring.mlir
// RUN: FileCheck %t/ring.yaml < %t/ring.mlir
// RUN: grep tp.permute %t/ring.mlir | count 7
// RUN: tp-opt %t/ring.mlir --tp-verify-spmd="reference=%t/model.mlir train=%t/train.yaml" -o %t/out.mlir 2>&1 | FileCheck %s --check-prefix=PROVEN
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/all_gather.yaml train=%t/train.yaml" | FileCheck %t/all_gather.yaml
// PROVEN: remark: 'main' is proven for 2 ranks

//--- model.mlir
func.func @main(%x: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %w = nn.parameter "w" : tensor<16x16xf32>
  %q0 = nn.linear %x, %w : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
  %q1 = nn.reshape %q0 : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %q = nn.transpose %q1 [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
  %r = nn.attention causal %q, %q, %q scale 0.5 : (tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>, tensor<2x4x8x4xf32>) -> tensor<2x4x8x4xf32>
  %y0 = nn.transpose %r [0, 2, 1, 3] : tensor<2x4x8x4xf32> -> tensor<2x8x4x4xf32>
  %y = nn.reshape %y0 : tensor<2x8x4x4xf32> -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}

//--- train.yaml
loss: mse
optimizer: {name: SGD, lr: 0.1}

//--- ring.yaml
mesh: {cp: 2}
context_parallel: {cp: ring}
# CHECK: func.func @main(%{{.*}}: tensor<2x4x16xf32> {{.*}}, %{{.*}}: tensor<2x4x16xf32> {{{.*}}tp.name = "target"
# CHECK-DAG: tp.permute {{.*}} reason = "nn.attention in a ring"} : tensor<2x4x4x4xf32>
# CHECK-DAG: nn.recompute
# CHECK-DAG: nn.attention_block_gradient
# CHECK-DAG: tp.permute {{.*}} reason = "nn.attention_gradient in a ring"} : tensor<2x4x4x4xf32>
# CHECK-NOT: tp.all_gather

//--- all_gather.yaml
mesh: {cp: 2}
context_parallel: {cp: all_gather}
# CHECK: tp.all_gather
# CHECK: nn.attention_block_gradient
# CHECK: tp.reduce_scatter sum {{.*}} over @mesh {cp}
