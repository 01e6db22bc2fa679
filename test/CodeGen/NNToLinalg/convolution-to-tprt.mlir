// RUN: tp-opt %s --convert-convolution-to-tprt --split-input-file | FileCheck %s

// A batch normalization with known statistics, a residual and an activation.

// CHECK-LABEL: @block
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x4x8x8xf32>, %[[W:[a-z0-9]+]]: tensor<6x4x3x3xf32>, %[[MEAN:[a-z0-9]+]]: tensor<6x1x1xf32>, %[[SCALE:[a-z0-9]+]]: tensor<6xf32>, %[[SHIFT:[a-z0-9]+]]: tensor<1x6x1x1xf32>, %[[Y:[a-z0-9]+]]: tensor<2x6x4x4xf32>
// CHECK: %[[M:.+]] = nn.reshape %[[MEAN]]
// CHECK: %[[B0:.+]] = nn.neg %[[M]]
// CHECK: %[[F1:.+]] = nn.reshape %{{.+}} : tensor<6x1x1xf32> -> tensor<6xf32>
// CHECK: %[[B1:.+]] = nn.mul %[[B0]], %[[F1]]
// CHECK: %[[S:.+]] = nn.reshape %[[SHIFT]]
// CHECK: %[[B2:.+]] = nn.add %[[B1]], %[[S]]
// CHECK: %[[R:.+]] = tprt.convolution %[[X]], %[[W]] scale %[[F1]] bias %[[B2]] addend %[[Y]] activation relu into %{{.+}} groups 1 stride [2, 2] padding [1, 1] dilation [1, 1]
// CHECK-NOT: nn.
// CHECK: return %[[R]]
func.func @block(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %mean: tensor<6x1x1xf32>, %scale: tensor<6xf32>, %shift: tensor<1x6x1x1xf32>,
                 %y: tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32> {
  %0 = nn.convolution %x, %w stride [2, 2] padding [1, 1] dilation [1, 1] : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x4x4xf32>
  %1 = nn.sub %0, %mean : (tensor<2x6x4x4xf32>, tensor<6x1x1xf32>) -> tensor<2x6x4x4xf32>
  %2 = nn.reshape %scale : tensor<6xf32> -> tensor<6x1x1xf32>
  %3 = nn.mul %2, %1 : (tensor<6x1x1xf32>, tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32>
  %4 = nn.add %3, %shift : (tensor<2x6x4x4xf32>, tensor<1x6x1x1xf32>) -> tensor<2x6x4x4xf32>
  %5 = nn.add %y, %4 : (tensor<2x6x4x4xf32>, tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32>
  %6 = nn.relu %5 : tensor<2x6x4x4xf32>
  return %6 : tensor<2x6x4x4xf32>
}

// -----

// The groups and their channels are one dimension for the call. What follows
// may be written on them.

// CHECK-LABEL: @groups
// CHECK: tprt.convolution %{{.+}}, %{{.+}} bias %{{.+}} activation gelu into %{{.+}} groups 2 stride [1] padding [0] dilation [2] {{.*}}-> tensor<2x6x5xf32>
// CHECK-NOT: nn.
// CHECK: return
func.func @groups(%x: tensor<2x2x4x9xf32>, %w: tensor<2x3x4x3xf32>, %bias: tensor<6x1xf32>) -> tensor<2x6x5xf32> {
  %0 = nn.convolution %x, %w stride [1] padding [0] dilation [2] : (tensor<2x2x4x9xf32>, tensor<2x3x4x3xf32>) -> tensor<2x2x3x5xf32>
  %1 = nn.reshape %0 : tensor<2x2x3x5xf32> -> tensor<2x6x5xf32>
  %2 = nn.add %1, %bias : (tensor<2x6x5xf32>, tensor<6x1xf32>) -> tensor<2x6x5xf32>
  %3 = nn.gelu %2 : tensor<2x6x5xf32>
  return %3 : tensor<2x6x5xf32>
}

// -----

// A vector of another dimension isn't one of the channels, and a difference
// from a vector isn't a sum with it.

// CHECK-LABEL: @others
// CHECK: tprt.convolution %{{[a-z0-9]+}}, %{{[a-z0-9]+}} into
// CHECK: nn.add
// CHECK: tprt.convolution %{{[a-z0-9]+}}, %{{[a-z0-9]+}} into
// CHECK: nn.sub
func.func @others(%x: tensor<2x4x4xf32>, %w: tensor<4x4x1xf32>, %v: tensor<4xf32>, %u: tensor<4x1xf32>) -> (tensor<2x4x4xf32>, tensor<2x4x4xf32>) {
  %0 = nn.convolution %x, %w stride [1] padding [0] dilation [1] : (tensor<2x4x4xf32>, tensor<4x4x1xf32>) -> tensor<2x4x4xf32>
  %1 = nn.add %0, %v : (tensor<2x4x4xf32>, tensor<4xf32>) -> tensor<2x4x4xf32>
  %2 = nn.convolution %1, %w stride [1] padding [0] dilation [1] : (tensor<2x4x4xf32>, tensor<4x4x1xf32>) -> tensor<2x4x4xf32>
  %3 = nn.sub %u, %2 : (tensor<4x1xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return %1, %3 : tensor<2x4x4xf32>, tensor<2x4x4xf32>
}

// -----

// A value that is read elsewhere stays.

// CHECK-LABEL: @read
// CHECK: %[[C:.+]] = tprt.convolution %{{[a-z0-9]+}}, %{{[a-z0-9]+}} bias %{{[a-z0-9]+}} into
// CHECK: %[[R:.+]] = nn.relu %[[C]]
// CHECK: return %[[C]], %[[R]]
func.func @read(%x: tensor<2x4x4xf32>, %w: tensor<4x4x1xf32>, %u: tensor<4x1xf32>) -> (tensor<2x4x4xf32>, tensor<2x4x4xf32>) {
  %0 = nn.convolution %x, %w stride [1] padding [0] dilation [1] : (tensor<2x4x4xf32>, tensor<4x4x1xf32>) -> tensor<2x4x4xf32>
  %1 = nn.add %0, %u : (tensor<2x4x4xf32>, tensor<4x1xf32>) -> tensor<2x4x4xf32>
  %2 = nn.relu %1 : tensor<2x4x4xf32>
  return %1, %2 : tensor<2x4x4xf32>, tensor<2x4x4xf32>
}

// -----

// In 16 bits the op before the factor rounds.

// CHECK-LABEL: @narrow
// CHECK: tprt.convolution %{{[a-z0-9]+}}, %{{[a-z0-9]+}} bias %{{[a-z0-9]+}} into
// CHECK: nn.mul
func.func @narrow(%x: tensor<2x4x4xbf16>, %w: tensor<4x4x1xbf16>, %u: tensor<4x1xbf16>) -> tensor<2x4x4xbf16> {
  %0 = nn.convolution %x, %w stride [1] padding [0] dilation [1] : (tensor<2x4x4xbf16>, tensor<4x4x1xbf16>) -> tensor<2x4x4xbf16>
  %1 = nn.add %0, %u : (tensor<2x4x4xbf16>, tensor<4x1xbf16>) -> tensor<2x4x4xbf16>
  %2 = nn.mul %1, %u : (tensor<2x4x4xbf16>, tensor<4x1xbf16>) -> tensor<2x4x4xbf16>
  return %2 : tensor<2x4x4xbf16>
}

// -----

// In a training step, which has a loss, values have the bits that separate ops give. State alone doesn't make one.

// CHECK-LABEL: @training
// CHECK: tprt.convolution %{{[a-z0-9]+}}, %{{[a-z0-9]+}} into
// CHECK: nn.mul
func.func @training(%x: tensor<2x4x4xf32>, %w: tensor<4x4x1xf32>, %u: tensor<4x1xf32>) -> (tensor<2x4x4xf32> {tp.name = "loss"}) {
  %0 = nn.convolution %x, %w stride [1] padding [0] dilation [1] : (tensor<2x4x4xf32>, tensor<4x4x1xf32>) -> tensor<2x4x4xf32>
  %1 = nn.mul %0, %u : (tensor<2x4x4xf32>, tensor<4x1xf32>) -> tensor<2x4x4xf32>
  nn.assign "w", %w : tensor<4x4x1xf32>
  return %1 : tensor<2x4x4xf32>
}

// -----

// CHECK-LABEL: @state
// CHECK: tprt.convolution
// CHECK-NOT: nn.add
// CHECK: return
func.func @state(%x: tensor<2x4x4xf32>, %w: tensor<4x4x1xf32>, %u: tensor<4x1xf32>) -> (tensor<2x4x4xf32> {tp.name = "y"}) {
  %0 = nn.convolution %x, %w stride [1] padding [0] dilation [1] : (tensor<2x4x4xf32>, tensor<4x4x1xf32>) -> tensor<2x4x4xf32>
  %1 = nn.add %0, %u : (tensor<2x4x4xf32>, tensor<4x1xf32>) -> tensor<2x4x4xf32>
  nn.assign "w", %w : tensor<4x4x1xf32>
  return %1 : tensor<2x4x4xf32>
}

// -----

// Depthwise convolutions, and those of more dimensions than the call has, stay.

// CHECK-LABEL: @stay
// CHECK-NOT: tprt.convolution
func.func @stay(%x: tensor<2x4x1x9xf32>, %w: tensor<4x1x1x3xf32>, %y: tensor<1x2x3x3x3x3xf32>, %v: tensor<2x2x1x1x1x2xf32>) -> (tensor<2x4x1x7xf32>, tensor<1x2x3x3x3x2xf32>) {
  %0 = nn.convolution %x, %w stride [1] padding [0] dilation [1] : (tensor<2x4x1x9xf32>, tensor<4x1x1x3xf32>) -> tensor<2x4x1x7xf32>
  %1 = nn.convolution %y, %v stride [1, 1, 1, 1] padding [0, 0, 0, 0] dilation [1, 1, 1, 1] : (tensor<1x2x3x3x3x3xf32>, tensor<2x2x1x1x1x2xf32>) -> tensor<1x2x3x3x3x2xf32>
  return %0, %1 : tensor<2x4x1x7xf32>, tensor<1x2x3x3x3x2xf32>
}
