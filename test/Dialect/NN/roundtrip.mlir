// RUN: tp-opt %s --verify-roundtrip | FileCheck %s
// RUN: tp-opt %s --mlir-print-op-generic | tp-opt | FileCheck %s

// CHECK-LABEL: func.func @structure
func.func @structure(%x: tensor<8x10xf32>) -> tensor<8x16xf32> {
  // CHECK: nn.module "mlp" class "MLP" (%{{.*}} as "input" at 0) {
  // CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<8x10xf32>):
  // CHECK: nn.parameter "mlp.weight" : tensor<16x10xf32>
  // CHECK: nn.yield %{{.*}} : tensor<8x16xf32>
  // CHECK: } : (tensor<8x10xf32>) -> tensor<8x16xf32>
  %r = nn.module "mlp" class "MLP" (%x as "input" at 0) {
  ^bb0(%input: tensor<8x10xf32>):
    %w = nn.parameter "mlp.weight" : tensor<16x10xf32>
    %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
    nn.yield %y : tensor<8x16xf32>
  } : (tensor<8x10xf32>) -> tensor<8x16xf32>
  // CHECK: nn.module "" class "Empty" () {
  // CHECK: } : () -> ()
  nn.module "" class "Empty" () {
  } : () -> ()
  // CHECK: nn.constant dense<1.000000e+00> : tensor<2x4xf32>
  %c = nn.constant dense<1.0> : tensor<2x4xf32>
  // CHECK: nn.iota dim 0 start 0.000000e+00 step 1.000000e+00 : tensor<64xi64>
  %i = nn.iota dim 0 start 0.0 step 1.0 : tensor<64xi64>
  return %r : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<2x4xf32>, %v: tensor<4xf32>, %b: tensor<2x4xi1>) {
  // CHECK: nn.neg %{{.*}} : tensor<2x4xf32>
  %0 = nn.neg %x : tensor<2x4xf32>
  // CHECK: nn.abs
  %1 = nn.abs %x : tensor<2x4xf32>
  // CHECK: nn.exp
  %2 = nn.exp %x : tensor<2x4xf32>
  // CHECK: nn.log
  %3 = nn.log %x : tensor<2x4xf32>
  // CHECK: nn.sqrt
  %4 = nn.sqrt %x : tensor<2x4xf32>
  // CHECK: nn.rsqrt
  %5 = nn.rsqrt %x : tensor<2x4xf32>
  // CHECK: nn.reciprocal
  %6 = nn.reciprocal %x : tensor<2x4xf32>
  // CHECK: nn.sin
  %7 = nn.sin %x : tensor<2x4xf32>
  // CHECK: nn.cos
  %8 = nn.cos %x : tensor<2x4xf32>
  // CHECK: nn.tanh
  %9 = nn.tanh %x : tensor<2x4xf32>
  // CHECK: nn.erf
  %10 = nn.erf %x : tensor<2x4xf32>
  // CHECK: nn.sigmoid
  %11 = nn.sigmoid %x : tensor<2x4xf32>
  // CHECK: nn.silu
  %12 = nn.silu %x : tensor<2x4xf32>
  // CHECK: nn.relu
  %13 = nn.relu %x : tensor<2x4xf32>
  // CHECK: nn.floor
  %14 = nn.floor %x : tensor<2x4xf32>
  // CHECK: nn.ceil
  %15 = nn.ceil %x : tensor<2x4xf32>
  // CHECK: nn.expm1
  %expm1 = nn.expm1 %x : tensor<2x4xf32>
  // CHECK: nn.log1p
  %log1p = nn.log1p %x : tensor<2x4xf32>
  // CHECK: nn.atan
  %atan = nn.atan %x : tensor<2x4xf32>
  // CHECK: nn.round
  %round = nn.round %x : tensor<2x4xf32>
  // CHECK: nn.logical_not %{{.*}} : tensor<2x4xi1>
  %16 = nn.logical_not %b : tensor<2x4xi1>
  // CHECK: nn.gelu %{{.*}} : tensor<2x4xf32>
  %17 = nn.gelu %x : tensor<2x4xf32>
  // CHECK: nn.gelu tanh %{{.*}} : tensor<2x4xf32>
  %18 = nn.gelu tanh %x : tensor<2x4xf32>
  // CHECK: nn.cast %{{.*}} : tensor<2x4xi1> -> tensor<2x4xf32>
  %19 = nn.cast %b : tensor<2x4xi1> -> tensor<2x4xf32>
  // CHECK: nn.add %{{.*}}, %{{.*}} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %20 = nn.add %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.sub
  %21 = nn.sub %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.mul
  %22 = nn.mul %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.div
  %23 = nn.div %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.floor_div
  %24 = nn.floor_div %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.remainder
  %25 = nn.remainder %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.pow
  %26 = nn.pow %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.maximum
  %27 = nn.maximum %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.minimum
  %28 = nn.minimum %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.logical_and
  %29 = nn.logical_and %b, %b : (tensor<2x4xi1>, tensor<2x4xi1>) -> tensor<2x4xi1>
  // CHECK: nn.logical_or
  %30 = nn.logical_or %b, %b : (tensor<2x4xi1>, tensor<2x4xi1>) -> tensor<2x4xi1>
  // CHECK: nn.logical_xor
  %31 = nn.logical_xor %b, %b : (tensor<2x4xi1>, tensor<2x4xi1>) -> tensor<2x4xi1>
  // CHECK: nn.compare le %{{.*}}, %{{.*}} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xi1>
  %32 = nn.compare le %x, %v : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xi1>
  // CHECK: nn.where %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x4xi1>, tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %33 = nn.where %b, %x, %v : (tensor<2x4xi1>, tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @contractions
func.func @contractions(%x: tensor<2x8x16xf32>, %w: tensor<32x16xf32>, %q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>,
                        %m: tensor<8x8xi1>, %ids: tensor<2x8xi64>, %o: tensor<i64>) {
  // CHECK: nn.linear %{{.*}}, %{{.*}} : (tensor<2x8x16xf32>, tensor<32x16xf32>) -> tensor<2x8x32xf32>
  %0 = nn.linear %x, %w : (tensor<2x8x16xf32>, tensor<32x16xf32>) -> tensor<2x8x32xf32>
  %t = nn.transpose %x [0, 2, 1] : tensor<2x8x16xf32> -> tensor<2x16x8xf32>
  // CHECK: nn.matmul %{{.*}}, %{{.*}} : (tensor<2x8x16xf32>, tensor<2x16x8xf32>) -> tensor<2x8x8xf32>
  %1 = nn.matmul %x, %t : (tensor<2x8x16xf32>, tensor<2x16x8xf32>) -> tensor<2x8x8xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} scale 2.500000e-01 : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<8x8xi1>) -> tensor<2x4x8x16xf32>
  %2 = nn.attention %q, %k, %k mask %m scale 0.25 : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<8x8xi1>) -> tensor<2x4x8x16xf32>
  // CHECK: nn.attention causal %{{.*}}, %{{.*}}, %{{.*}} scale 2.500000e-01
  %3 = nn.attention causal %q, %k, %k scale 0.25 : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>) -> tensor<2x4x8x16xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 2.500000e-01 context all_to_all {tp.fqn = "a"} :
  %5 = nn.attention %q, %k, %k scale 0.25 context all_to_all {tp.fqn = "a"} : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>) -> tensor<2x4x8x16xf32>
  // CHECK: nn.attention_block %{{.*}}, %{{.*}}, %{{.*}} offset %{{.*}} scale 2.500000e-01 : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<i64>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x1xf32>)
  %6:2 = nn.attention_block %q, %k, %k offset %o scale 0.25 : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<i64>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x1xf32>)
  // CHECK: nn.attention_block %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} scale 2.500000e-01
  %7:2 = nn.attention_block %q, %k, %k mask %m scale 0.25 : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<8x8xi1>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x1xf32>)
  // CHECK: nn.attention_block_gradient %{{.*}}, %{{.*}}, %{{.*}} gradient %{{.*}} lse %{{.*}} delta %{{.*}} offset %{{.*}} scale 2.500000e-01
  %8:3 = nn.attention_block_gradient %q, %k, %k gradient %q lse %6#1 delta %6#1 offset %o scale 0.25 : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x1xf32>, tensor<2x4x8x1xf32>, tensor<i64>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>)
  // CHECK: nn.embedding %{{.*}}, %{{.*}} : (tensor<2x8xi64>, tensor<32x16xf32>) -> tensor<2x8x16xf32>
  %4 = nn.embedding %ids, %w : (tensor<2x8xi64>, tensor<32x16xf32>) -> tensor<2x8x16xf32>
  return
}

// CHECK-LABEL: func.func @convolutions
func.func @convolutions(%x: tensor<2x4x9x8xf32>, %w: tensor<6x4x3x1xf32>, %y: tensor<2x3x4x9xf32>, %v: tensor<3x2x4x3xf32>) {
  // CHECK: nn.convolution %{{.*}}, %{{.*}} stride [2, 1] padding [1, 0] dilation [1, 3] : (tensor<2x4x9x8xf32>, tensor<6x4x3x1xf32>) -> tensor<2x6x5x8xf32>
  %0 = nn.convolution %x, %w stride [2, 1] padding [1, 0] dilation [1, 3] : (tensor<2x4x9x8xf32>, tensor<6x4x3x1xf32>) -> tensor<2x6x5x8xf32>
  // CHECK: nn.convolution %{{.*}}, %{{.*}} stride [2] padding [0] dilation [1] : (tensor<2x3x4x9xf32>, tensor<3x2x4x3xf32>) -> tensor<2x3x2x4xf32>
  %1 = nn.convolution %y, %v stride [2] padding [0] dilation [1] : (tensor<2x3x4x9xf32>, tensor<3x2x4x3xf32>) -> tensor<2x3x2x4xf32>
  // CHECK: %[[WINDOWS:.*]] = nn.windows %{{.*}} stride [2, 2] padding [1, 0] dilation [1, 1] outside 0.000000e+00 : tensor<2x4x9x8xf32> -> tensor<2x4x3x2x5x4xf32>
  %2 = nn.windows %x stride [2, 2] padding [1, 0] dilation [1, 1] outside 0.0 : tensor<2x4x9x8xf32> -> tensor<2x4x3x2x5x4xf32>
  // CHECK: nn.fold %[[WINDOWS]] stride [2, 2] padding [1, 0] dilation [1, 1] : tensor<2x4x3x2x5x4xf32> -> tensor<2x4x9x8xf32>
  %3 = nn.fold %2 stride [2, 2] padding [1, 0] dilation [1, 1] : tensor<2x4x3x2x5x4xf32> -> tensor<2x4x9x8xf32>
  // CHECK: nn.pool max %{{.*}} size [3, 2] stride [2, 2] padding [1, 0] dilation [1, 1] : tensor<2x4x9x8xf32> -> tensor<2x4x5x4xf32>
  %4 = nn.pool max %x size [3, 2] stride [2, 2] padding [1, 0] dilation [1, 1] : tensor<2x4x9x8xf32> -> tensor<2x4x5x4xf32>
  // CHECK: nn.pool sum
  %5 = nn.pool sum %x size [3, 2] stride [2, 2] padding [1, 0] dilation [1, 1] : tensor<2x4x9x8xf32> -> tensor<2x4x5x4xf32>
  return
}

// CHECK-LABEL: func.func @normalizations
func.func @normalizations(%x: tensor<2x8x16xf32>, %w: tensor<16xf32>) {
  // CHECK: nn.layer_norm %{{.*}} weight %{{.*}} bias %{{.*}} over 1 eps 1.000000e-05 : (tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  %0 = nn.layer_norm %x weight %w bias %w over 1 eps 1.0e-5 : (tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  // CHECK: nn.layer_norm %{{.*}} over 2 eps 1.000000e-05 : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %1 = nn.layer_norm %x over 2 eps 1.0e-5 : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  // CHECK: nn.rms_norm %{{.*}} weight %{{.*}} over 1 eps 1.000000e-05
  %2 = nn.rms_norm %x weight %w over 1 eps 1.0e-5 : (tensor<2x8x16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  // CHECK: nn.softmax %{{.*}} dim 2 : tensor<2x8x16xf32>
  %3 = nn.softmax %x dim 2 : tensor<2x8x16xf32>
  // CHECK: nn.log_softmax %{{.*}} dim 1 : tensor<2x8x16xf32>
  %4 = nn.log_softmax %x dim 1 : tensor<2x8x16xf32>
  // CHECK: nn.reduce mean %{{.*}} dims [0, 2] keepdim : tensor<2x8x16xf32> -> tensor<1x8x1xf32>
  %5 = nn.reduce mean %x dims [0, 2] keepdim : tensor<2x8x16xf32> -> tensor<1x8x1xf32>
  // CHECK: nn.reduce max %{{.*}} dims [1] : tensor<2x8x16xf32> -> tensor<2x16xf32>
  %6 = nn.reduce max %x dims [1] : tensor<2x8x16xf32> -> tensor<2x16xf32>
  // CHECK: nn.argmax %{{.*}} dim 2 : tensor<2x8x16xf32> -> tensor<2x8xi64>
  %7 = nn.argmax %x dim 2 : tensor<2x8x16xf32> -> tensor<2x8xi64>
  return
}

// CHECK-LABEL: func.func @shapes
func.func @shapes(%x: tensor<2x8x16xf32>, %i: tensor<2x3x16xi64>, %j: tensor<3xi64>) {
  // CHECK: nn.reshape %{{.*}} : tensor<2x8x16xf32> -> tensor<16x16xf32>
  %0 = nn.reshape %x : tensor<2x8x16xf32> -> tensor<16x16xf32>
  // CHECK: nn.transpose %{{.*}} [2, 0, 1] : tensor<2x8x16xf32> -> tensor<16x2x8xf32>
  %1 = nn.transpose %x [2, 0, 1] : tensor<2x8x16xf32> -> tensor<16x2x8xf32>
  // CHECK: nn.broadcast %{{.*}} : tensor<2x8x16xf32> -> tensor<3x2x8x16xf32>
  %2 = nn.broadcast %x : tensor<2x8x16xf32> -> tensor<3x2x8x16xf32>
  // CHECK: nn.slice %{{.*}} dim 1 start 1 step 2 : tensor<2x8x16xf32> -> tensor<2x4x16xf32>
  %3 = nn.slice %x dim 1 start 1 step 2 : tensor<2x8x16xf32> -> tensor<2x4x16xf32>
  // CHECK: nn.slice_scatter %{{.*}}, %{{.*}} dim 1 start 1 step 2 : (tensor<2x8x16xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  %7 = nn.slice_scatter %x, %3 dim 1 start 1 step 2 : (tensor<2x8x16xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}} dim 1 : (tensor<2x8x16xf32>, tensor<2x4x16xf32>) -> tensor<2x12x16xf32>
  %4 = nn.concat %x, %3 dim 1 : (tensor<2x8x16xf32>, tensor<2x4x16xf32>) -> tensor<2x12x16xf32>
  // CHECK: nn.gather %{{.*}}, %{{.*}} dim 1 : (tensor<2x8x16xf32>, tensor<2x3x16xi64>) -> tensor<2x3x16xf32>
  %5 = nn.gather %x, %i dim 1 : (tensor<2x8x16xf32>, tensor<2x3x16xi64>) -> tensor<2x3x16xf32>
  // CHECK: nn.index_select %{{.*}}, %{{.*}} dim 1 : (tensor<2x8x16xf32>, tensor<3xi64>) -> tensor<2x3x16xf32>
  %6 = nn.index_select %x, %j dim 1 : (tensor<2x8x16xf32>, tensor<3xi64>) -> tensor<2x3x16xf32>
  return
}

// CHECK-LABEL: func.func @indices
func.func @indices(%x: tensor<4x8xf32>, %i: tensor<4x3xi64>, %j: tensor<3xi32>, %s: tensor<4x3xf32>, %b: tensor<8x2xi1>, %c: tensor<3x2xi1>) {
  // CHECK: nn.sort %{{.*}} dim 1 count 8 : tensor<4x8xf32> -> (tensor<4x8xf32>, tensor<4x8xi64>)
  %0:2 = nn.sort %x dim 1 count 8 : tensor<4x8xf32> -> (tensor<4x8xf32>, tensor<4x8xi64>)
  // CHECK: nn.sort descending %{{.*}} dim 0 count 2 : tensor<4x8xf32> -> (tensor<2x8xf32>, tensor<2x8xi64>)
  %1:2 = nn.sort descending %x dim 0 count 2 : tensor<4x8xf32> -> (tensor<2x8xf32>, tensor<2x8xi64>)
  // CHECK: nn.cumsum %{{.*}} dim 1 : tensor<4x8xf32>
  %2 = nn.cumsum %x dim 1 : tensor<4x8xf32>
  // CHECK: nn.cumsum reverse %{{.*}} dim 0 : tensor<4x8xf32>
  %3 = nn.cumsum reverse %x dim 0 : tensor<4x8xf32>
  // CHECK: nn.scatter copy %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<4x8xf32>, tensor<4x3xi64>, tensor<4x3xf32>)
  %4 = nn.scatter copy %x, %i, %s dim 1 : (tensor<4x8xf32>, tensor<4x3xi64>, tensor<4x3xf32>)
  // CHECK: nn.scatter add %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<4x8xf32>, tensor<3xi32>, tensor<4x3xf32>)
  %5 = nn.scatter add %x, %j, %s dim 1 : (tensor<4x8xf32>, tensor<3xi32>, tensor<4x3xf32>)
  // CHECK: nn.scatter max
  %6 = nn.scatter max %x, %i, %s dim 1 : (tensor<4x8xf32>, tensor<4x3xi64>, tensor<4x3xf32>)
  // CHECK: nn.scatter min
  %7 = nn.scatter min %x, %i, %s dim 1 : (tensor<4x8xf32>, tensor<4x3xi64>, tensor<4x3xf32>)
  // CHECK: nn.scatter copy %{{.*}} dim 0 : (tensor<8x2xi1>, tensor<3xi32>, tensor<3x2xi1>)
  %8 = nn.scatter copy %b, %j, %c dim 0 : (tensor<8x2xi1>, tensor<3xi32>, tensor<3x2xi1>)
  return
}

// CHECK-LABEL: func.func @groups
func.func @groups(%x: tensor<16x8xf32>, %w: tensor<4x8x6xf32>, %g: tensor<16x6xf32>, %e: tensor<5xi32>) {
  // CHECK: nn.grouped_matmul %{{.*}}, %{{.*}} bounds %{{.*}} : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x6xf32>
  %0 = nn.grouped_matmul %x, %w bounds %e : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x6xf32>
  // CHECK: nn.grouped_outer_sum %{{.*}}, %{{.*}} bounds %{{.*}} : (tensor<16x8xf32>, tensor<16x6xf32>, tensor<5xi32>) -> tensor<4x8x6xf32>
  %1 = nn.grouped_outer_sum %x, %g bounds %e : (tensor<16x8xf32>, tensor<16x6xf32>, tensor<5xi32>) -> tensor<4x8x6xf32>
  return
}

// CHECK-LABEL: func.func @parts
func.func @parts(%x: tensor<16x8xf32>, %w: tensor<4x8x6xf32>, %e: tensor<2x3xi32>, %s: tensor<2x5xi64>) {
  // CHECK: nn.grouped_matmul %{{.*}}, %{{.*}} bounds %{{.*}} : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<2x3xi32>) -> tensor<16x6xf32>
  %0 = nn.grouped_matmul %x, %w bounds %e : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<2x3xi32>) -> tensor<16x6xf32>
  // CHECK: nn.grouped_outer_sum %{{.*}}, %{{.*}} bounds %{{.*}} : (tensor<16x8xf32>, tensor<16x6xf32>, tensor<2x3xi32>) -> tensor<4x8x6xf32>
  %1 = nn.grouped_outer_sum %x, %0 bounds %e : (tensor<16x8xf32>, tensor<16x6xf32>, tensor<2x3xi32>) -> tensor<4x8x6xf32>
  // CHECK: nn.dispatch %{{.*}} to %{{.*}} : (tensor<16x8xf32>, tensor<2x5xi64>) -> tensor<2x5x8xf32>
  %2 = nn.dispatch %x to %s : (tensor<16x8xf32>, tensor<2x5xi64>) -> tensor<2x5x8xf32>
  // CHECK: nn.combine %{{.*}} from %{{.*}} : (tensor<2x5x8xf32>, tensor<2x5xi64>) -> tensor<16x8xf32>
  %3 = nn.combine %2 from %s : (tensor<2x5x8xf32>, tensor<2x5xi64>) -> tensor<16x8xf32>
  // CHECK: nn.dispatch %{{.*}} to %{{.*}} {groups = array<i64: 2, 1>} : (tensor<16x8xf32>, tensor<2x5xi64>) -> tensor<2x5x8xf32>
  %4 = nn.dispatch %x to %s {groups = array<i64: 2, 1>} : (tensor<16x8xf32>, tensor<2x5xi64>) -> tensor<2x5x8xf32>
  return
}

// CHECK-LABEL: func.func @losses
func.func @losses(%x: tensor<8x16xf32>, %t: tensor<8xi64>, %w: tensor<16xf32>) {
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = nn.class_sums %{{.*}}, %{{.*}} : tensor<8x16xf32>, tensor<8xi64> -> tensor<8x1xf32>
  %sums:3 = nn.class_sums %x, %t : tensor<8x16xf32>, tensor<8xi64> -> tensor<8x1xf32>
  // CHECK: nn.cross_entropy mean %{{.*}}, %{{.*}} weight %{{.*}} ignore -100 smoothing 1.000000e-01 : (tensor<8x16xf32>, tensor<8xi64>, tensor<16xf32>) -> tensor<f32>
  %0 = nn.cross_entropy mean %x, %t weight %w ignore -100 smoothing 0.1 : (tensor<8x16xf32>, tensor<8xi64>, tensor<16xf32>) -> tensor<f32>
  // CHECK: nn.nll_loss none %{{.*}}, %{{.*}} ignore -100 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<8xf32>
  %1 = nn.nll_loss none %x, %t ignore -100 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<8xf32>
  return
}

// CHECK-LABEL: func.func @training
func.func @training(%ids: tensor<2x8xi64>, %x: tensor<2x8x16xf32>, %g: tensor<2x8x4xf32>, %lr: tensor<f32>,
                    %step: tensor<i64>, %q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %v: tensor<2x2x6x4xf32>,
                    %ga: tensor<2x4x8x4xf32>, %mask: tensor<8x6xi1>) {
  // CHECK: nn.parameter "w" : tensor<4x16xf32>
  %w = nn.parameter "w" : tensor<4x16xf32>
  // CHECK: nn.parameter "optimizer.exp_avg.w" frozen : tensor<4x16xf32>
  %m = nn.parameter "optimizer.exp_avg.w" frozen : tensor<4x16xf32>
  // CHECK: nn.embedding %{{.*}}, %{{.*}} padding 3 : (tensor<2x8xi64>, tensor<4x16xf32>) -> tensor<2x8x16xf32>
  %0 = nn.embedding %ids, %w padding 3 : (tensor<2x8xi64>, tensor<4x16xf32>) -> tensor<2x8x16xf32>
  // CHECK: nn.embedding %{{.*}}, %{{.*}} padding 3 scale_grad_by_freq : (tensor<2x8xi64>, tensor<4x16xf32>) -> tensor<2x8x16xf32>
  %scaled = nn.embedding %ids, %w padding 3 scale_grad_by_freq : (tensor<2x8xi64>, tensor<4x16xf32>) -> tensor<2x8x16xf32>
  // CHECK: nn.recompute %{{.*}} : tensor<2x8x16xf32>
  %1 = nn.recompute %0 : tensor<2x8x16xf32>
  // CHECK: nn.dropout %{{.*}} p 1.000000e-01 : tensor<2x8x16xf32>
  %2 = nn.dropout %1 p 0.1 : tensor<2x8x16xf32>
  // CHECK: nn.outer_sum %{{.*}}, %{{.*}} : (tensor<2x8x4xf32>, tensor<2x8x16xf32>) -> tensor<4x16xf32>
  %3 = nn.outer_sum %g, %2 : (tensor<2x8x4xf32>, tensor<2x8x16xf32>) -> tensor<4x16xf32>
  // CHECK: nn.attention_gradient causal %{{.*}}, %{{.*}}, %{{.*}} gradient %{{.*}} scale 5.000000e-01 : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x4xf32>, tensor<2x4x8x4xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x4xf32>)
  %c:3 = nn.attention_gradient causal %q, %k, %v gradient %ga scale 0.5 : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x4xf32>, tensor<2x4x8x4xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x4xf32>)
  // CHECK: nn.attention_gradient %{{.*}}, %{{.*}}, %{{.*}} gradient %{{.*}} mask %{{.*}} scale 5.000000e-01
  %d:3 = nn.attention_gradient %q, %k, %v gradient %ga mask %mask scale 0.5 : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x4xf32>, tensor<2x4x8x4xf32>, tensor<8x6xi1>) -> (tensor<2x4x8x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x4xf32>)
  // CHECK: nn.attention_gradient causal %{{.*}}, %{{.*}}, %{{.*}} gradient %{{.*}} scale 5.000000e-01 context all_gather :
  %e:3 = nn.attention_gradient causal %q, %k, %v gradient %ga scale 0.5 context all_gather : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x4xf32>, tensor<2x4x8x4xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x4xf32>)
  // CHECK: nn.scatter_add_rows %{{.*}}, %{{.*}} : (tensor<2x8xi64>, tensor<2x8x16xf32>) -> tensor<4x16xf32>
  %4 = nn.scatter_add_rows %ids, %x : (tensor<2x8xi64>, tensor<2x8x16xf32>) -> tensor<4x16xf32>
  // CHECK: nn.random_uniform %{{.*}}, %{{.*}} stream %{{.*}} seed 7 : (tensor<i64>, tensor<2x8xi64>, tensor<i64>) -> tensor<2x8xf32>
  %5 = nn.random_uniform %step, %ids stream %step seed 7 : (tensor<i64>, tensor<2x8xi64>, tensor<i64>) -> tensor<2x8xf32>
  // CHECK: nn.adam %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} lr %{{.*}} corrections %{{.*}}, %{{.*}} betas 9.000000e-01, 0.99{{[89]+}} eps 1.000000e-08 weight_decay 0.000000e+00 : tensor<4x16xf32>, tensor<f32>
  %6:3 = nn.adam %w, %3, %m, %m lr %lr corrections %lr, %lr betas 0.9, 0.999 eps 1.0e-8 weight_decay 0.0 : tensor<4x16xf32>, tensor<f32>
  // CHECK: nn.adam decoupled
  %7:3 = nn.adam decoupled %w, %3, %m, %m lr %lr corrections %lr, %lr betas 0.9, 0.999 eps 1.0e-8 weight_decay 0.01 : tensor<4x16xf32>, tensor<f32>
  // CHECK: nn.amsgrad decoupled %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} lr %{{.*}} corrections %{{.*}}, %{{.*}} betas 9.000000e-01, 0.99{{[89]+}} eps 1.000000e-08 weight_decay 1.000000e-02 : tensor<4x16xf32>, tensor<f32>
  %a:4 = nn.amsgrad decoupled %w, %3, %m, %m, %m lr %lr corrections %lr, %lr betas 0.9, 0.999 eps 1.0e-8 weight_decay 0.01 : tensor<4x16xf32>, tensor<f32>
  // CHECK: nn.sgd %{{.*}}, %{{.*}}, %{{.*}} lr %{{.*}} momentum 9.000000e-01 weight_decay 0.000000e+00 : tensor<4x16xf32>, tensor<f32>
  %8:2 = nn.sgd %w, %4, %m lr %lr momentum 0.9 weight_decay 0.0 : tensor<4x16xf32>, tensor<f32>
  // CHECK: nn.sgd nesterov
  %9:2 = nn.sgd nesterov %w, %4, %m lr %lr momentum 0.9 weight_decay 0.0 : tensor<4x16xf32>, tensor<f32>
  // CHECK: nn.assign "w", %{{.*}} : tensor<4x16xf32>
  nn.assign "w", %7#0 : tensor<4x16xf32>
  // CHECK: nn.assign "optimizer.exp_avg.w", %{{.*}} init 0.000000e+00 : tensor<4x16xf32>
  nn.assign "optimizer.exp_avg.w", %7#1 init 0.0 : tensor<4x16xf32>
  return
}
