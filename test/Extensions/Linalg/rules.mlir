// RUN: tp-opt %s --tp-print-sharding-rules --verify-diagnostics -o /dev/null

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

func.func @contractions(%a: tensor<8x4xf32>, %b: tensor<4x6xf32>, %init: tensor<8x6xf32>) {
  // expected-remark@+1 {{() -> () {}}}
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{() -> ([0][1]) {0=8, 1=6}}}
  %e = tensor.empty() : tensor<8x6xf32>
  // expected-remark-re@+1 {{{{^}}(, [0][1]) -> ([0][1]) {0=8, 1=6}{{$}}}}
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x6xf32>) -> tensor<8x6xf32>
  // expected-remark@+1 {{([0][2], [2][1], [0][1]) -> ([0][1]) {0=8, 1=6, 2=4} reduction={2} linear={{0}, {1}}}}
  %0 = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x6xf32>) outs(%f : tensor<8x6xf32>) -> tensor<8x6xf32>
  // An initial value is a term of the sum.
  // expected-remark@+1 {{([0][2], [2][1], [0][1]) -> ([0][1]) {0=8, 1=6, 2=4} reduction={2} linear={{0, 2}, {1, 2}} once={{0}, {1}}}}
  %1 = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x6xf32>) outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  return
}

func.func @reductions(%x: tensor<8x6xf32>, %init: tensor<8xf32>, %at: tensor<8xi64>) {
  // expected-remark@+1 {{([0][1], [0]) -> ([0]) {0=8, 1=6} reduction={1} linear={{0, 1}} once={{0}}}}
  %0 = linalg.reduce { arith.addf } ins(%x : tensor<8x6xf32>) outs(%init : tensor<8xf32>) dimensions = [1]
  // A maximum of parts is a Partial, but not linear.
  // expected-remark-re@+1 {{{{^}}([0][1], [0]) -> ([0]) {0=8, 1=6} reduction={1}{{$}}}}
  %1 = linalg.reduce { arith.maximumf } ins(%x : tensor<8x6xf32>) outs(%init : tensor<8xf32>) dimensions = [1]
  // It ignores what is no number, the collective gives it on.
  // expected-remark@+1 {{whole={1}}}
  %2 = linalg.reduce { arith.maxnumf } ins(%x : tensor<8x6xf32>) outs(%init : tensor<8xf32>) dimensions = [1]
  // Two accumulators that depend on each other.
  // expected-remark@+1 {{([0][1], [0], [0]) -> ([0], [0]) {0=8, 1=6} whole={1}}}
  %3:2 = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x6xf32>) outs(%init, %at : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%in: f32, %max: f32, %index: i64):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i64
    %more = arith.cmpf ogt, %in, %max : f32
    %m = arith.select %more, %in, %max : f32
    %i = arith.select %more, %n, %index : i64
    linalg.yield %m, %i : f32, i64
  } -> (tensor<8xf32>, tensor<8xi64>)
  return
}

// By the ops of the body.
func.func @linearity(%x: tensor<8x6xf32>, %y: tensor<8x6xf32>, %z: tensor<6xf32>) {
  // expected-remark@+1 {{() -> ([0][1]) {0=8, 1=6}}}
  %e = tensor.empty() : tensor<8x6xf32>
  // x · z + y
  // expected-remark@+1 {{([0][1], [0][1], [1], [0][1]) -> ([0][1]) {0=8, 1=6} linear={{0, 1}, {1, 2}}}}
  %0 = linalg.generic {indexing_maps = [#id, #id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y, %z : tensor<8x6xf32>, tensor<8x6xf32>, tensor<6xf32>) outs(%e : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %p, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x6xf32>
  // x · (x + y): linear in neither.
  // expected-remark-re@+1 {{{{^}}([0][1], [0][1], [0][1]) -> ([0][1]) {0=8, 1=6}{{$}}}}
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<8x6xf32>, tensor<8x6xf32>) outs(%e : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    %p = arith.mulf %a, %s : f32
    linalg.yield %p : f32
  } -> tensor<8x6xf32>
  // x + 1
  // expected-remark-re@+1 {{{{^}}([0][1], [0][1]) -> ([0][1]) {0=8, 1=6}{{$}}}}
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x6xf32>) outs(%e : tensor<8x6xf32>) {
  ^bb0(%a: f32, %out: f32):
    %one = arith.constant 1.0 : f32
    %s = arith.addf %a, %one : f32
    linalg.yield %s : f32
  } -> tensor<8x6xf32>
  return
}

func.func @maps(%x: tensor<6x6xf32>, %image: tensor<2x6x6x4xf32>, %kernel: tensor<3x3x4x8xf32>, %init: tensor<2x4x4x8xf32>) {
  // expected-remark@+1 {{() -> ([0]) {0=6}}}
  %e = tensor.empty() : tensor<6xf32>
  // A diagonal isn't made of diagonals of blocks.
  // expected-remark@+1 {{([0][0], [0]) -> ([0]) {0=6} whole={0}}}
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i, i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<6x6xf32>) outs(%e : tensor<6xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<6xf32>
  // Windows reach into neighbors' blocks; images and channels are split.
  // expected-remark@+1 {{([0][_][_][6], [4][5][6][3], [0][1][2][3]) -> ([0][1][2][3]) {0=2, 1=4, 2=4, 3=8, 4=3, 5=3, 6=4} reduction={6} whole={1, 2, 4, 5}}}
  %1 = linalg.conv_2d_nhwc_hwcf ins(%image, %kernel : tensor<2x6x6x4xf32>, tensor<3x3x4x8xf32>) outs(%init : tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  return
}

// A part of a sum may overflow where the sum doesn't: no rank has a part of its own.
func.func @overflows(%x: tensor<8x6xi32>, %init: tensor<8xi32>) {
  // expected-remark-re@+1 {{{{^}}([0][1], [0]) -> ([0]) {0=8, 1=6} whole={1}{{$}}}}
  %0 = linalg.reduce ins(%x : tensor<8x6xi32>) outs(%init : tensor<8xi32>) dimensions = [1] (%in: i32, %acc: i32) {
    %1 = arith.addi %in, %acc overflow<nsw> : i32
    linalg.yield %1 : i32
  }
  return
}

func.func @others(%x: tensor<8x6xf32>) {
  // expected-remark@+1 {{() -> ([0][1]) {0=8, 1=6}}}
  %e = tensor.empty() : tensor<8x6xf32>
  // expected-remark@+1 {{([0][1], [0][1]) -> ([0][1]) {0=8, 1=6} whole={1}}}
  %0 = linalg.softmax dimension(1) ins(%x : tensor<8x6xf32>) outs(%e : tensor<8x6xf32>) -> tensor<8x6xf32>
  // expected-remark@+1 {{() -> ([0][1][2]) {0=8, 1=3, 2=2}}}
  %p = tensor.empty() : tensor<8x3x2xf32>
  // By whole tiles.
  // expected-remark@+1 {{([0][1*2], [0][1][2]) -> ([0][1][2]) {0=8, 1=3, 2=2} whole={2} linear={{0}}}}
  %1 = linalg.pack %x inner_dims_pos = [1] inner_tiles = [2] into %p : tensor<8x6xf32> -> tensor<8x3x2xf32>
  return
}
