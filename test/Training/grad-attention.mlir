// RUN: tp-opt %s --tp-grad=inputs=true --split-input-file | FileCheck %s

// One op computes the three gradients; those of heads that share a key are summed.

// CHECK-LABEL: func.func @grouped
// CHECK: %[[DQ:.*]], %[[K:.*]], %[[V:.*]] = nn.attention_gradient causal %{{.*}}, %{{.*}}, %{{.*}} gradient %{{.*}} scale 5.000000e-01 : {{.*}} -> (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x6xf32>)
// CHECK-NOT: nn.softmax
// CHECK: %[[KS:.*]] = nn.reshape %[[K]] : tensor<2x4x5x8xf32> -> tensor<2x2x2x5x8xf32>
// CHECK: %[[DK:.*]] = nn.reduce sum %[[KS]] dims [2] : tensor<2x2x2x5x8xf32> -> tensor<2x2x5x8xf32>
// CHECK: %[[VS:.*]] = nn.reshape %[[V]] :
// CHECK: %[[DV:.*]] = nn.reduce sum %[[VS]] dims [2]
// CHECK: return %{{.*}}, %[[DQ]], %[[DK]], %[[DV]]
func.func @grouped(%q: tensor<2x4x5x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>) -> tensor<f32> {
  %0 = nn.attention causal %q, %k, %v scale 0.5 : (tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> tensor<2x4x5x6xf32>
  %1 = nn.reduce sum %0 dims [0, 1, 2, 3] : tensor<2x4x5x6xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// A mask's gradient needs all scores.

// CHECK-LABEL: func.func @mask
// CHECK-NOT: nn.attention_gradient
// CHECK: %[[SEEN:.*]] = nn.compare ne
// CHECK: nn.where %[[SEEN]]
// CHECK: %[[SOFTMAX:.*]] = nn.softmax
// CHECK: %[[P:.*]] = nn.where %[[SEEN]], %[[SOFTMAX]]
// CHECK: %[[REST:.*]] = nn.sub
// CHECK: %[[SCORES:.*]] = nn.mul %[[P]], %[[REST]]
// CHECK: %[[MASK:.*]] = nn.reduce sum %[[SCORES]] dims [0, 1] : tensor<2x4x5x5xf32> -> tensor<5x5xf32>
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[MASK]]
func.func @mask(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x5x8xf32>, %v: tensor<2x4x5x8xf32>, %m: tensor<5x5xf32>) -> tensor<f32> {
  %0 = nn.attention %q, %k, %v mask %m scale 0.5 : (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<5x5xf32>) -> tensor<2x4x5x8xf32>
  %1 = nn.reduce sum %0 dims [0, 1, 2, 3] : tensor<2x4x5x8xf32> -> tensor<f32>
  return %1 : tensor<f32>
}
