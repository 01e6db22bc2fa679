// RUN: tp-opt %s --tp-print-sharding-rules --verify-diagnostics -o /dev/null

func.func @sources(%v: f32) {
  // expected-remark@+1 {{() -> ([0][1]) {0=8, 1=16}}}
  %0 = tensor.empty() : tensor<8x16xf32>
  // expected-remark@+1 {{() -> ([0][1]) {0=8, 1=16}}}
  %1 = tensor.splat %v : tensor<8x16xf32>
  // expected-remark@+1 {{() -> ([0]) {0=8}}}
  %2 = tensor.generate {
  ^bb0(%i: index):
    tensor.yield %v : f32
  } : tensor<8xf32>
  return
}

func.func @shapes(%x: tensor<4x6x15xf32>) {
  // expected-remark@+1 {{([0][1*2][3*4]) -> ([0][1][2][3][4]) {0=4, 1=2, 2=3, 3=5, 4=3} linear={{0}}}}
  %0 = tensor.expand_shape %x [[0], [1, 2], [3, 4]] output_shape [4, 2, 3, 5, 3] : tensor<4x6x15xf32> into tensor<4x2x3x5x3xf32>
  // expected-remark@+1 {{([0][1][2]) -> ([0*1][2]) {0=4, 1=6, 2=15} linear={{0}}}}
  %1 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<4x6x15xf32> into tensor<24x15xf32>
  // expected-remark@+1 {{([0][1][2]) -> ([0][1][2]) {0=4, 1=6, 2=15} linear={{0}}}}
  %2 = tensor.cast %x : tensor<4x6x15xf32> to tensor<4x6x15xf32>
  // expected-remark@+1 {{() -> () {}}}
  %c = arith.constant 1 : index
  // The size is known whoever holds the elements.
  // expected-remark@+1 {{([0][1][2], ) -> () {0=4, 1=6, 2=15} collective={0, 1, 2}}}
  %3 = tensor.dim %x, %c : tensor<4x6x15xf32>
  return
}

func.func @slices(%x: tensor<4x6x15xf32>, %y: tensor<4x2x15xf32>, %r: tensor<6x15xf32>, %i: index) {
  // expected-remark@+1 {{([0][1][2]) -> ([0][1:2+2][2]) {0=4, 1=6, 2=15} linear={{0}}}}
  %0 = tensor.extract_slice %x[0, 2, 0][4, 2, 15][1, 1, 1] : tensor<4x6x15xf32> to tensor<4x2x15xf32>
  // A dropped dimension, one with steps, and one from a place that is computed correspond to nothing.
  // expected-remark@+1 {{([_][0][1]) -> ([0][1]) {0=6, 1=15} linear={{0}}}}
  %1 = tensor.extract_slice %x[3, 0, 0][1, 6, 15][1, 1, 1] : tensor<4x6x15xf32> to tensor<6x15xf32>
  // expected-remark@+1 {{([0][_][1]) -> ([0][_][1]) {0=4, 1=15} linear={{0}}}}
  %2 = tensor.extract_slice %x[0, 1, 0][4, 2, 15][1, 3, 1] : tensor<4x6x15xf32> to tensor<4x2x15xf32>
  // expected-remark@+1 {{([0][_][1], ) -> ([0][_][1]) {0=4, 1=15} linear={{0}}}}
  %3 = tensor.extract_slice %x[0, %i, 0][4, 2, 15][1, 1, 1] : tensor<4x6x15xf32> to tensor<4x2x15xf32>
  // expected-remark@+1 {{([0][1:4+2][2], [0][1][2]) -> ([0][1][2]) {0=4, 1=6, 2=15} linear={{0, 1}}}}
  %4 = tensor.insert_slice %y into %x[0, 4, 0][4, 2, 15][1, 1, 1] : tensor<4x2x15xf32> into tensor<4x6x15xf32>
  // expected-remark@+1 {{([0][1], [_][0][1]) -> ([_][0][1]) {0=6, 1=15} linear={{0, 1}}}}
  %5 = tensor.insert_slice %r into %x[1, 0, 0][1, 6, 15][1, 1, 1] : tensor<6x15xf32> into tensor<4x6x15xf32>
  // expected-remark@+1 {{([0][1:0+6][2], [0][1:6+2][2]) -> ([0][1][2]) {0=4, 1=8, 2=15} linear={{0, 1}}}}
  %6 = tensor.concat dim(1) %x, %y : (tensor<4x6x15xf32>, tensor<4x2x15xf32>) -> tensor<4x8x15xf32>
  return
}

func.func @lookups(%x: tensor<4x6x5xf32>, %i: tensor<3x1xi64>, %j: tensor<2x3x2xindex>, %u: tensor<3x1x6x5xf32>, %v: tensor<2x3x1x6x1xf32>) {
  // A rank needs all that its indices may read, and has all that any index may write.
  // expected-remark@+1 {{([_][1][2], [0][_]) -> ([0][1][2]) {0=3, 1=6, 2=5} linear={{0}}}}
  %0 = tensor.gather %x[%i] gather_dims([0]) : (tensor<4x6x5xf32>, tensor<3x1xi64>) -> tensor<3x6x5xf32>
  // expected-remark@+1 {{([_][2][_], [0][1][_]) -> ([0][1][_][2][_]) {0=2, 1=3, 2=6} linear={{0}}}}
  %1 = tensor.gather %x[%j] gather_dims([0, 2]) : (tensor<4x6x5xf32>, tensor<2x3x2xindex>) -> tensor<2x3x1x6x1xf32>
  // expected-remark@+1 {{([_][_][0][1], [_][0][1], [_][_]) -> ([_][0][1]) {0=6, 1=5} linear={{0, 1}}}}
  %2 = tensor.scatter %u into %x[%i] scatter_dims([0]) unique : (tensor<3x1x6x5xf32>, tensor<4x6x5xf32>, tensor<3x1xi64>) -> tensor<4x6x5xf32>
  // expected-remark@+1 {{([_][_][_][0][_], [_][0][_], [_][_][_]) -> ([_][0][_]) {0=6} linear={{0, 1}}}}
  %3 = tensor.scatter %v into %x[%j] scatter_dims([0, 2]) unique : (tensor<2x3x1x6x1xf32>, tensor<4x6x5xf32>, tensor<2x3x2xindex>) -> tensor<4x6x5xf32>
  return
}

func.func @pads(%x: tensor<4x6xf32>, %v: f32, %c: index) {
  // expected-remark@+1 {{() -> () {}}}
  %zero = arith.constant 0.0 : f32
  // Zeros around a part of a sum are parts of zeros.
  // expected-remark@+1 {{([0][_]) -> ([0][_]) {0=4} linear={{0}}}}
  %0 = tensor.pad %x low[0, 1] high[0, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x6xf32> to tensor<4x9xf32>
  // expected-remark-re@+1 {{{{^}}([0][_]) -> ([0][_]) {0=4}{{$}}}}
  %1 = tensor.pad %x low[0, 1] high[0, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %v : f32
  } : tensor<4x6xf32> to tensor<4x9xf32>
  // An operand that is read at any index stays whole.
  // expected-remark@+1 {{([_][_], , ) -> () {}}}
  %2 = tensor.extract %x[%c, %c] : tensor<4x6xf32>
  return
}
