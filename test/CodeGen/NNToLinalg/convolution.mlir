// RUN: tp-opt %s --convert-nn-to-linalg --split-input-file | FileCheck %s

// Where every element is a window, the input is the matrix.
// CHECK-LABEL: @pointwise
// CHECK-NOT: tensor.pad
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<6x4xf32>, tensor<2x4x64xf32>) outs(%{{.*}} : tensor<2x6x64xf32>)
// CHECK-NOT: linalg.generic
func.func @pointwise(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x1x1xf32>) -> tensor<2x6x8x8xf32> {
  %0 = nn.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<2x4x8x8xf32>, tensor<6x4x1x1xf32>) -> tensor<2x6x8x8xf32>
  return %0 : tensor<2x6x8x8xf32>
}

// -----

// Others copy the windows. The last one ends before the padding does.
// CHECK: #[[WINDOWS:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4 * 2 + d2, d5 * 2 + d3)>
// CHECK: #[[ALL:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4, d5)>
// CHECK-LABEL: @convolution
// CHECK: %[[PADDED:.+]] = tensor.pad %{{.*}} low[0, 0, 1, 1] high[0, 0, 0, 0]
// CHECK: linalg.generic {indexing_maps = [#[[WINDOWS]], #[[ALL]]]{{.*}} ins(%[[PADDED]] : tensor<2x4x9x9xf32>) outs(%{{.*}} : tensor<2x4x3x3x4x4xf32>)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<6x36xf32>, tensor<2x36x16xf32>) outs(%{{.*}} : tensor<2x6x16xf32>)
func.func @convolution(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) -> tensor<2x6x4x4xf32> {
  %0 = nn.convolution %x, %w stride [2, 2] padding [1, 1] dilation [1, 1] : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x4x4xf32>
  return %0 : tensor<2x6x4x4xf32>
}

// -----

// A depthwise convolution reads its windows in place.
// CHECK: #[[WINDOWS:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 + d3)>
// CHECK-LABEL: @depthwise
// CHECK: linalg.generic {indexing_maps = [#[[WINDOWS]], {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<2x4x9xf32>, tensor<4x3xf32>) outs(%{{.*}} : tensor<2x4x7xf32>)
// CHECK-NOT: linalg.generic
func.func @depthwise(%x: tensor<2x4x1x9xf32>, %w: tensor<4x1x1x3xf32>) -> tensor<2x4x1x7xf32> {
  %0 = nn.convolution %x, %w stride [1] padding [0] dilation [1] : (tensor<2x4x1x9xf32>, tensor<4x1x1x3xf32>) -> tensor<2x4x1x7xf32>
  return %0 : tensor<2x4x1x7xf32>
}

// -----

// A maximum is padded by -inf; an operand without contents has the window's shape.
// CHECK: #[[WINDOWS:.+]] = affine_map<(d0, d1, d2) -> (d0, d1 * 2 + d2)>
// CHECK-LABEL: @pool
// CHECK: %[[LOWEST:.+]] = arith.constant 0xFF800000
// CHECK: tensor.pad
// CHECK: linalg.generic {indexing_maps = [#[[WINDOWS]], {{.*}} ins(%{{.*}}, %{{.*}} : tensor<2x9xf32>, tensor<3xf32>) outs(%{{.*}} : tensor<2x4xf32>)
// CHECK: arith.maximumf
func.func @pool(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
  %0 = nn.pool max %x size [3] stride [2] padding [1] dilation [1] : tensor<2x8xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// Windows with zeros between them are added up; windows side by side are only transposed.
// CHECK: #[[PLACES:.+]] = affine_map<(d0, d1, d2) -> (d0, d1, d2 - d1 + 2)>
// CHECK-LABEL: @fold
// CHECK: %[[SPREAD:.+]] = tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 1] [2, 3, 4] [1, 1, 2]
// CHECK: linalg.generic {indexing_maps = [#[[PLACES]], {{.*}} ins(%[[SPREAD]] : tensor<2x3x10xf32>) outs(%{{.*}} : tensor<2x8xf32>)
// CHECK: %[[MOVED:.+]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<2x3x4xf32>) outs(%{{.*}} : tensor<2x4x3xf32>)
// CHECK: tensor.collapse_shape %[[MOVED]] {{.*}} into tensor<2x12xf32>
func.func @fold(%x: tensor<2x3x4xf32>) -> (tensor<2x8xf32>, tensor<2x12xf32>) {
  %0 = nn.fold %x stride [2] padding [1] dilation [1] : tensor<2x3x4xf32> -> tensor<2x8xf32>
  %1 = nn.fold %x stride [3] padding [0] dilation [1] : tensor<2x3x4xf32> -> tensor<2x12xf32>
  return %0, %1 : tensor<2x8xf32>, tensor<2x12xf32>
}

// -----

// Windows needn't cover the whole input, nor reach into it.
// CHECK-LABEL: @covered
// CHECK-SAME: %[[X:.+]]: tensor<2x3x4xf32>
// CHECK: %[[PART:.+]] = tensor.extract_slice %[[X]][0, 0, 0] [2, 3, 3] [1, 1, 1]
// CHECK-NOT: tensor.pad
// CHECK: linalg.generic {{.*}} ins(%[[PART]] : tensor<2x3x3xf32>) outs(%{{.*}} : tensor<2x3x3x1xf32>)
// CHECK: %[[NONE:.+]] = tensor.extract_slice %[[X]][0, 0, 0] [2, 3, 0] [1, 1, 1]
// CHECK: tensor.pad %[[NONE]] low[0, 0, 2] high[0, 0, 0]
func.func @covered(%x: tensor<2x3x4xf32>) -> (tensor<2x3x3x1xf32>, tensor<2x3x2x1xf32>) {
  %0 = nn.windows %x stride [2] padding [0] dilation [1] outside 0.0 : tensor<2x3x4xf32> -> tensor<2x3x3x1xf32>
  %1 = nn.windows %x stride [1] padding [5] dilation [1] outside 0.0 : tensor<2x3x4xf32> -> tensor<2x3x2x1xf32>
  return %0, %1 : tensor<2x3x3x1xf32>, tensor<2x3x2x1xf32>
}

// -----

// Windows of one element each are the input with what is around it.
// CHECK-LABEL: @padding
// CHECK: %[[PADDED:.+]] = tensor.pad %{{.*}} low[0, 2] high[0, 1]
// CHECK-NOT: linalg.generic
// CHECK: tensor.expand_shape %[[PADDED]]
func.func @padding(%x: tensor<3x4xf32>) -> tensor<3x1x7xf32> {
  %0 = nn.windows %x stride [1] padding [2] dilation [1] outside 1.0 : tensor<3x4xf32> -> tensor<3x1x7xf32>
  return %0 : tensor<3x1x7xf32>
}
