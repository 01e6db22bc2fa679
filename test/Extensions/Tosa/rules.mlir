// RUN: tp-opt %s --tp-print-sharding-rules --verify-diagnostics -o /dev/null

func.func @elementwise(%x: tensor<8x6x4xf32>, %y: tensor<8x1x4xf32>) {
  // expected-remark@+1 {{([0][1][2], [0][_][2]) -> ([0][1][2]) {0=8, 1=6, 2=4} linear={{0, 1}}}}
  %0 = tosa.add %x, %y : (tensor<8x6x4xf32>, tensor<8x1x4xf32>) -> tensor<8x6x4xf32>
  // expected-remark@+1 {{() -> ([0]) {0=1}}}
  %shift = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  // expected-remark@+1 {{([0][1][2], [0][_][2], [_]) -> ([0][1][2]) {0=8, 1=6, 2=4} linear={{0}, {1}}}}
  %1 = tosa.mul %x, %y, %shift : (tensor<8x6x4xf32>, tensor<8x1x4xf32>, tensor<1xi8>) -> tensor<8x6x4xf32>
  // expected-remark-re@+1 {{{{^}}([0][1][2]) -> ([0][1][2]) {0=8, 1=6, 2=4}{{$}}}}
  %2 = tosa.clamp %x {min_val = 0.0 : f32, max_val = 1.0 : f32} : (tensor<8x6x4xf32>) -> tensor<8x6x4xf32>
  return
}

func.func @sums(%x: tensor<8x6x4xf32>, %y: tensor<8x4x6xf32>, %zp: tensor<1xf32>) {
  // expected-remark@+1 {{([0][1][3], [0][3][2], [_], [_]) -> ([0][1][2]) {0=8, 1=6, 2=6, 3=4} reduction={3} linear={{0}, {1}}}}
  %0 = tosa.matmul %x, %y, %zp, %zp : (tensor<8x6x4xf32>, tensor<8x4x6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<8x6x6xf32>
  // expected-remark@+1 {{([0][1][2]) -> ([0][_][2]) {0=8, 1=6, 2=4} reduction={1} linear={{0}}}}
  %1 = tosa.reduce_sum %x {axis = 1 : i32} : (tensor<8x6x4xf32>) -> tensor<8x1x4xf32>
  // expected-remark-re@+1 {{reduction={1}{{$}}}}
  %2 = tosa.reduce_max %x {axis = 1 : i32} : (tensor<8x6x4xf32>) -> tensor<8x1x4xf32>
  // expected-remark@+1 {{whole={1}}}
  %3 = tosa.reduce_max %x {axis = 1 : i32, nan_mode = IGNORE} : (tensor<8x6x4xf32>) -> tensor<8x1x4xf32>
  // expected-remark@+1 {{([0][1][2]) -> ([0][2]) {0=8, 1=6, 2=4} whole={1}}}
  %4 = tosa.argmax %x {axis = 1 : i32} : (tensor<8x6x4xf32>) -> tensor<8x4xi32>
  return
}

func.func @shapes(%x: tensor<8x6x4xf32>) {
  // expected-remark@+1 {{() -> () {}}}
  %s = tosa.const_shape {values = dense<[8, 24]> : tensor<2xindex>} : () -> !tosa.shape<2>
  // expected-remark@+1 {{([0][1][2], ) -> ([0][1*2]) {0=8, 1=6, 2=4} linear={{0}}}}
  %0 = tosa.reshape %x, %s : (tensor<8x6x4xf32>, !tosa.shape<2>) -> tensor<8x24xf32>
  // expected-remark@+1 {{([2][0][1]) -> ([0][1][2]) {0=6, 1=4, 2=8} linear={{0}}}}
  %1 = tosa.transpose %x {perms = array<i32: 1, 2, 0>} : (tensor<8x6x4xf32>) -> tensor<6x4x8xf32>
  // expected-remark@+1 {{() -> () {}}}
  %b = tosa.const_shape {values = dense<[0, 2, 0]> : tensor<3xindex>} : () -> !tosa.shape<3>
  // expected-remark@+1 {{() -> () {}}}
  %n = tosa.const_shape {values = dense<[8, 3, 4]> : tensor<3xindex>} : () -> !tosa.shape<3>
  // expected-remark@+1 {{([0][1][2], , ) -> ([0][1:2+3][2]) {0=8, 1=6, 2=4} linear={{0}}}}
  %2 = tosa.slice %x, %b, %n : (tensor<8x6x4xf32>, !tosa.shape<3>, !tosa.shape<3>) -> tensor<8x3x4xf32>
  return
}
