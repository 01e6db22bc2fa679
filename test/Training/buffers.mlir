// A model that counts its batches and keeps a running mean of its inputs.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/accumulate.yaml | FileCheck %t/accumulate.yaml
// RUN: tp-opt %t/cast.mlir --tp-grad=train=%t/accumulate.yaml | FileCheck %t/cast.mlir
// RUN: tp-opt %t/model.mlir --tp-grad=train=%t/bf16.yaml | FileCheck %t/bf16.yaml
// RUN: tp-opt %t/shared.mlir --tp-grad=train=%t/bf16.yaml | FileCheck %t/shared.mlir

//--- model.mlir
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<4x6xf32> {
  %w = nn.parameter "weight" : tensor<6x8xf32>
  %old = nn.parameter "mean" frozen {tp.buffer} : tensor<8xf32>
  %half = nn.constant dense<0.5> : tensor<f32>
  %now = nn.reduce mean %x dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  %sum = nn.add %old, %now : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %new = nn.mul %sum, %half : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  nn.assign "mean", %new : tensor<8xf32>
  %y = nn.linear %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

//--- shared.mlir
// The model reads the buffer, too.
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<4x6xf32> {
  %w = nn.parameter "weight" : tensor<6x8xf32>
  %old = nn.parameter "mean" frozen {tp.buffer} : tensor<8xf32>
  %half = nn.constant dense<0.5> : tensor<f32>
  %new = nn.mul %old, %half : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  nn.assign "mean", %new : tensor<8xf32>
  %c = nn.sub %x, %old : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %y = nn.linear %c, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
// CHECK: %[[OLD:.*]] = nn.parameter "mean" {{.*}} : tensor<8xf32>
// CHECK: %[[NARROW:.*]] = nn.cast %[[OLD]] : tensor<8xf32> -> tensor<8xbf16>
// CHECK: nn.mul %[[OLD]], %{{.*}} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK: nn.sub %{{.*}}, %[[NARROW]] : (tensor<4x8xbf16>, tensor<8xbf16>) -> tensor<4x8xbf16>

//--- cast.mlir
// The statistic is computed in f32 from a buffer in bf16.
func.func @main(%x: tensor<4x8xf32> {tp.name = "x"}) -> tensor<4x6xf32> {
  %w = nn.parameter "weight" : tensor<6x8xf32>
  %old = nn.parameter "mean" frozen {tp.buffer} : tensor<8xbf16>
  %wide = nn.cast %old : tensor<8xbf16> -> tensor<8xf32>
  %now = nn.reduce mean %x dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  %sum = nn.add %wide, %now : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %new = nn.cast %sum : tensor<8xf32> -> tensor<8xbf16>
  nn.assign "mean", %new : tensor<8xbf16>
  %y = nn.linear %x, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
// CHECK: %[[OLD:.*]] = nn.parameter "mean"
// CHECK: %[[WIDE:.*]] = nn.cast %[[OLD]]
// CHECK: %[[SUM:.*]] = nn.add %[[WIDE]],
// CHECK: %[[FIRST:.*]] = nn.cast %[[SUM]]
// CHECK: %[[WIDE:.*]] = nn.cast %[[FIRST]]
// CHECK: %[[SUM:.*]] = nn.add %[[WIDE]],
// CHECK: %[[SECOND:.*]] = nn.cast %[[SUM]]
// CHECK: nn.assign "mean", %[[SECOND]]

//--- accumulate.yaml
loss: mse
optimizer: {name: SGD, lr: 0.1}
accumulate: 2
# The second batch begins with what the first one has written, and alone assigns.
# CHECK: %[[OLD:.*]] = nn.parameter "mean"
# CHECK: %[[SUM:.*]] = nn.add %[[OLD]], %{{.*}} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
# CHECK: %[[FIRST:.*]] = nn.mul %[[SUM]],
# CHECK-NOT: nn.assign
# CHECK: %[[SUM:.*]] = nn.add %[[FIRST]], %{{.*}} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
# CHECK: %[[SECOND:.*]] = nn.mul %[[SUM]],
# CHECK: nn.assign "mean", %[[SECOND]]
# CHECK-NOT: nn.assign "mean"

//--- bf16.yaml
loss: mse
optimizer: {name: SGD, lr: 0.1}
compute: bf16
# The input of the statistic is narrow already, the buffer isn't.
# CHECK: %[[OLD:.*]] = nn.parameter "mean"
# CHECK: %[[NOW:.*]] = nn.reduce mean %{{.*}} dims [0] : tensor<4x8xf32> -> tensor<8xf32>
# CHECK: %[[SUM:.*]] = nn.add %[[OLD]], %[[NOW]] : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
# CHECK: %[[NEW:.*]] = nn.mul %[[SUM]]
# CHECK: nn.assign "mean", %[[NEW]] : tensor<8xf32>
# CHECK: nn.linear {{.*}} -> tensor<4x6xbf16>
