// RUN: tp-opt %s --tp-print-sharding-rules --verify-diagnostics

func.func @elementwise(%x: tensor<2x4xf32>, %row: tensor<1x4xf32>, %s: tensor<f32>) {
  // expected-remark@+1 {{([0][1]) -> ([0][1]) {0=2, 1=4}}}
  %0 = nn.exp %x : tensor<2x4xf32>
  // expected-remark@+1 {{([0][1], [_][1]) -> ([0][1]) {0=2, 1=4} linear={{0, 1}}}}
  %1 = nn.add %x, %row : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  // expected-remark@+1 {{([0][1], ) -> ([0][1]) {0=2, 1=4} linear={{0}, {1}}}}
  %2 = nn.mul %x, %s : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  // expected-remark@+1 {{([0][1]) -> ([0][1]) {0=2, 1=4} collective={1}}}
  %3 = nn.softmax %x dim 1 : tensor<2x4xf32>
  return
}

func.func @contractions(%x: tensor<2x8x16xf32>, %w: tensor<32x16xf32>, %q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>,
                        %m: tensor<2x1x8x8xi1>, %ids: tensor<2x8xi64>) {
  // expected-remark@+1 {{([0][1][3], [2][3]) -> ([0][1][2]) {0=2, 1=8, 2=32, 3=16} reduction={3} linear={{0}, {1}}}}
  %0 = nn.linear %x, %w : (tensor<2x8x16xf32>, tensor<32x16xf32>) -> tensor<2x8x32xf32>
  // Query heads are key heads (factor 4, major) times the group.
  // expected-remark@+1 {{([0][4*6][1][3], [0][4][5][3], [0][4][5][2], [0][_][1][5]) -> ([0][4*6][1][2]) {0=2, 1=8, 2=16, 3=16, 4=2, 5=8, 6=2} whole={1, 2, 3, 5}}}
  %1 = nn.attention %q, %k, %k mask %m scale 0.25 : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x1x8x8xi1>) -> tensor<2x4x8x16xf32>
  // expected-remark@+1 {{([0][1], [3][2]) -> ([0][1][2]) {0=2, 1=8, 2=16, 3=32} reduction={3}}}
  %2 = nn.embedding %ids, %w : (tensor<2x8xi64>, tensor<32x16xf32>) -> tensor<2x8x16xf32>
  return
}

func.func @reductions(%x: tensor<2x8x16xf32>) {
  // expected-remark@+1 {{([0][1][2]) -> ([0][1][_]) {0=2, 1=8, 2=16} reduction={2} linear={{0}}}}
  %0 = nn.reduce mean %x dims [2] keepdim : tensor<2x8x16xf32> -> tensor<2x8x1xf32>
  // expected-remark@+1 {{([0][1][2]) -> ([0][2]) {0=2, 1=8, 2=16} reduction={1}}}
  %1 = nn.reduce max %x dims [1] : tensor<2x8x16xf32> -> tensor<2x16xf32>
  // expected-remark@+1 {{([0][1][2]) -> ([0][1]) {0=2, 1=8, 2=16} whole={2}}}
  %2 = nn.argmax %x dim 2 : tensor<2x8x16xf32> -> tensor<2x8xi64>
  return
}

func.func @shapes(%x: tensor<2x8x16xf32>, %y: tensor<4x3x10xf32>, %i: tensor<2x3x16xi64>, %j: tensor<3xi64>) {
  // A split: the dimension's major factor carries a sharding through.
  // expected-remark@+1 {{([0][1][2*3]) -> ([0][1][2][3]) {0=2, 1=8, 2=4, 3=4} linear={{0}}}}
  %0 = nn.reshape %x : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  // expected-remark@+1 {{([0][1][2]) -> ([0*1][2]) {0=2, 1=8, 2=16} linear={{0}}}}
  %1 = nn.reshape %x : tensor<2x8x16xf32> -> tensor<16x16xf32>
  // Dimensions without a common factor stay whole; those around them are split.
  // expected-remark@+1 {{([0][3][2*1]) -> ([0][5][4*1]) {0=4, 1=2, 2=5, 3=3, 4=3, 5=5} whole={2, 3, 4, 5} linear={{0}}}}
  %r = nn.reshape %y : tensor<4x3x10xf32> -> tensor<4x5x6xf32>
  // expected-remark@+1 {{([1][2][0]) -> ([0][1][2]) {0=16, 1=2, 2=8} linear={{0}}}}
  %2 = nn.transpose %x [2, 0, 1] : tensor<2x8x16xf32> -> tensor<16x2x8xf32>
  // expected-remark@+1 {{([0][_][1]) -> ([0][_][1]) {0=2, 1=16} linear={{0}}}}
  %3 = nn.slice %x dim 1 start 0 step 2 : tensor<2x8x16xf32> -> tensor<2x4x16xf32>
  // expected-remark@+1 {{([0][2:0+8][1], [0][2:8+4][1]) -> ([0][2][1]) {0=2, 1=16, 2=12} linear={{0, 1}}}}
  %4 = nn.concat %x, %3 dim 1 : (tensor<2x8x16xf32>, tensor<2x4x16xf32>) -> tensor<2x12x16xf32>
  // expected-remark@+1 {{([0][2][1]) -> ([0][2:2+4][1]) {0=2, 1=16, 2=8} linear={{0}}}}
  %w = nn.slice %x dim 1 start 2 step 1 : tensor<2x8x16xf32> -> tensor<2x4x16xf32>
  // expected-remark@+1 {{([0][2][1], [0][2:2+4][1]) -> ([0][2][1]) {0=2, 1=16, 2=8} linear={{0, 1}}}}
  %v = nn.slice_scatter %x, %3 dim 1 start 2 step 1 : (tensor<2x8x16xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  // expected-remark@+1 {{([0][_][1], [0][_][1]) -> ([0][_][1]) {0=2, 1=16} linear={{0, 1}}}}
  %u = nn.slice_scatter %x, %3 dim 1 start 0 step 2 : (tensor<2x8x16xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  // A split of what is looked up in is a masked lookup.
  // expected-remark@+1 {{([0][3][1], [0][2][1]) -> ([0][2][1]) {0=2, 1=16, 2=3, 3=8} reduction={3} linear={{0}}}}
  %5 = nn.gather %x, %i dim 1 : (tensor<2x8x16xf32>, tensor<2x3x16xi64>) -> tensor<2x3x16xf32>
  // expected-remark@+1 {{([0][_][1], [2]) -> ([0][2][1]) {0=2, 1=16, 2=3} linear={{0}}}}
  %6 = nn.index_select %x, %j dim 1 : (tensor<2x8x16xf32>, tensor<3xi64>) -> tensor<2x3x16xf32>
  return
}

func.func @indices(%x: tensor<4x8xf32>, %i: tensor<3x2xi64>, %j: tensor<3xi64>, %s: tensor<3x2xf32>, %t: tensor<3x8xf32>) {
  // expected-remark@+1 {{([0][_]) -> ([0][_], [0][_]) {0=4}}}
  %0:2 = nn.sort descending %x dim 1 count 2 : tensor<4x8xf32> -> (tensor<4x2xf32>, tensor<4x2xi64>)
  // expected-remark@+1 {{([0][1]) -> ([0][1]) {0=4, 1=8} whole={1} linear={{0}}}}
  %1 = nn.cumsum %x dim 1 : tensor<4x8xf32>
  // expected-remark@+1 {{([_][0], [_][0], [_][0]) -> ([_][0]) {0=8} whole={0} linear={{0, 2}}}}
  %2 = nn.scatter copy %x, %i, %s dim 0 : (tensor<4x8xf32>, tensor<3x2xi64>, tensor<3x2xf32>)
  // expected-remark@+1 {{([_][0], [_], [_][0]) -> ([_][0]) {0=8} linear={{0, 2}}}}
  %3 = nn.scatter add %x, %j, %t dim 0 : (tensor<4x8xf32>, tensor<3xi64>, tensor<3x8xf32>)
  // What is scattered into zeros may be Partial by itself.
  %z = nn.constant dense<0.0> : tensor<4x8xf32> // expected-remark {{() -> ([0][1]) {0=4, 1=8}}}
  // expected-remark@+1 {{([_][0], [_], [_][0]) -> ([_][0]) {0=8} linear={{0, 2}, {2}}}}
  %5 = nn.scatter add %z, %j, %t dim 0 : (tensor<4x8xf32>, tensor<3xi64>, tensor<3x8xf32>)
  // expected-remark@+1 {{([_][0], [_], [_][0]) -> ([_][0]) {0=8}}}
  %4 = nn.scatter max %x, %j, %t dim 0 : (tensor<4x8xf32>, tensor<3xi64>, tensor<3x8xf32>)
  return
}

func.func @groups(%x: tensor<16x8xf32>, %w: tensor<4x8x6xf32>, %g: tensor<16x6xf32>, %e: tensor<5xi32>) {
  // Column-parallel along 1, row-parallel along 2, expert-parallel along 3.
  // expected-remark@+1 {{([0][2], [3][2][1], [4]) -> ([0][1]) {0=16, 1=6, 2=8, 3=4, 4=5} reduction={2, 3} whole={0, 4} linear={{0}, {1}}}}
  %0 = nn.grouped_matmul %x, %w bounds %e : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x6xf32>
  // expected-remark@+1 {{([3][1], [3][2], [4]) -> ([0][1][2]) {0=4, 1=8, 2=6, 3=16, 4=5} whole={3, 4} linear={{0}, {1}}}}
  %1 = nn.grouped_outer_sum %x, %g bounds %e : (tensor<16x8xf32>, tensor<16x6xf32>, tensor<5xi32>) -> tensor<4x8x6xf32>
  return
}

func.func @convolutions(%x: tensor<2x4x9x8xf32>, %w: tensor<6x4x3x1xf32>, %y: tensor<2x3x4x9xf32>, %v: tensor<3x2x4x3xf32>) {
  // expected-remark@+1 {{([0][4][2][3], [1][4][5][6]) -> ([0][1][2][3]) {0=2, 1=6, 2=5, 3=8, 4=4, 5=3, 6=1} reduction={4} whole={5, 6} halo={2: 9 of 3 by 2 from -1, 3: 8 of 1 by 1 from 0} linear={{0}, {1}}}}
  %0 = nn.convolution %x, %w stride [2, 1] padding [1, 0] dilation [1, 1] : (tensor<2x4x9x8xf32>, tensor<6x4x3x1xf32>) -> tensor<2x6x5x8xf32>
  // With groups.
  // expected-remark@+1 {{([0][1][4][3], [1][2][4][5]) -> ([0][1][2][3]) {0=2, 1=3, 2=2, 3=4, 4=4, 5=3} reduction={4} whole={5} halo={3: 9 of 3 by 2 from 0} linear={{0}, {1}}}}
  %1 = nn.convolution %y, %v stride [2] padding [0] dilation [1] : (tensor<2x3x4x9xf32>, tensor<3x2x4x3xf32>) -> tensor<2x3x2x4xf32>
  // expected-remark@+1 {{([0][1][4][5]) -> ([0][1][2][3][4][5]) {0=2, 1=4, 2=3, 3=2, 4=5, 5=4} whole={2, 3} halo={4: 9 of 3 by 2 from -1, 5: 8 of 2 by 2 from 0} linear={{0}}}}
  %2 = nn.windows %x stride [2, 2] padding [1, 0] dilation [1, 1] outside 0.0 : tensor<2x4x9x8xf32> -> tensor<2x4x3x2x5x4xf32>
  // What is outside would be added once per rank.
  // expected-remark@+1 {{([0][1][4][5]) -> ([0][1][2][3][4][5]) {0=2, 1=4, 2=3, 3=2, 4=5, 5=4} whole={2, 3} halo={4: 9 of 3 by 2 from -1, 5: 8 of 2 by 2 from 0}}}
  %3 = nn.windows %x stride [2, 2] padding [1, 0] dilation [1, 1] outside 1.0 : tensor<2x4x9x8xf32> -> tensor<2x4x3x2x5x4xf32>
  // expected-remark@+1 {{([0][1][4][5][2][3]) -> ([0][1][2][3]) {0=2, 1=4, 2=5, 3=4, 4=3, 5=2} whole={4, 5} halo={2: 9 of 3 by 2 from -1, 3: 8 of 2 by 2 from 0} linear={{0}}}}
  %4 = nn.fold %2 stride [2, 2] padding [1, 0] dilation [1, 1] : tensor<2x4x3x2x5x4xf32> -> tensor<2x4x9x8xf32>
  // expected-remark@+1 {{([0][1][2][3]) -> ([0][1][2][3]) {0=2, 1=4, 2=5, 3=4} halo={2: 9 of 3 by 2 from -1, 3: 8 of 2 by 2 from 0}}}
  %5 = nn.pool max %x size [3, 2] stride [2, 2] padding [1, 0] dilation [1, 1] : tensor<2x4x9x8xf32> -> tensor<2x4x5x4xf32>
  // expected-remark@+1 {{([0][1][2][3]) -> ([0][1][2][3]) {0=2, 1=4, 2=5, 3=4} halo={2: 9 of 3 by 2 from -1, 3: 8 of 2 by 2 from 0} linear={{0}}}}
  %6 = nn.pool sum %x size [3, 2] stride [2, 2] padding [1, 0] dilation [1, 1] : tensor<2x4x9x8xf32> -> tensor<2x4x5x4xf32>
  return
}

func.func @losses(%x: tensor<8x16xf32>, %t: tensor<8xi64>) {
  // expected-remark@+1 {{([0][1], [0]) -> ([0][_], [0][_], [0][_]) {0=8, 1=16} collective={1}}}
  %sums:3 = nn.class_sums %x, %t : tensor<8x16xf32>, tensor<8xi64> -> tensor<8x1xf32>
  // expected-remark@+1 {{([0][1], [0]) -> ([0]) {0=8, 1=16} collective={1}}}
  %0 = nn.cross_entropy none %x, %t ignore -100 smoothing 0.0 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<8xf32>
  // expected-remark@+1 {{([0][1], [0]) -> () {0=8, 1=16} reduction={0} collective={1}}}
  %1 = nn.cross_entropy sum %x, %t ignore -100 smoothing 0.0 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
  // expected-remark@+1 {{([0][1], [0]) -> () {0=8, 1=16} whole={0} collective={1}}}
  %2 = nn.cross_entropy mean %x, %t ignore -100 smoothing 0.0 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
  return
}

func.func @training(%g: tensor<2x8x4xf32>, %x: tensor<2x8x16xf32>, %ids: tensor<2x8xi64>, %step: tensor<i64>,
                    %w: tensor<4x16xf32>, %lr: tensor<f32>, %q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>,
                    %v: tensor<2x2x6x10xf32>, %ga: tensor<2x4x8x10xf32>, %m: tensor<2x1x8x6xi1>) {
  // Each query head has its own gradients of the key and value that it shares.
  // expected-remark@+1 {{([0][5*6][1][2], [0][5][3][2], [0][5][3][4], [0][5*6][1][4], [0][_][1][3]) -> ([0][5*6][1][2], [0][5*6][3][2], [0][5*6][3][4]) {0=2, 1=8, 2=16, 3=6, 4=10, 5=2, 6=2} whole={1, 2, 3, 4} linear={{3}}}}
  %d:3 = nn.attention_gradient %q, %k, %v gradient %ga mask %m scale 0.25 : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x10xf32>, tensor<2x4x8x10xf32>, tensor<2x1x8x6xi1>) -> (tensor<2x4x8x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x10xf32>)
  // Factors that aren't in the result are summed: batch and sequence.
  // expected-remark@+1 {{([2][3][0], [2][3][1]) -> ([0][1]) {0=4, 1=16, 2=2, 3=8} reduction={2, 3} linear={{0}, {1}}}}
  %0 = nn.outer_sum %g, %x : (tensor<2x8x4xf32>, tensor<2x8x16xf32>) -> tensor<4x16xf32>
  // expected-remark@+1 {{([2][3], [2][3][1]) -> ([0][1]) {0=4, 1=16, 2=2, 3=8} reduction={2, 3} linear={{1}}}}
  %1 = nn.scatter_add_rows %ids, %x : (tensor<2x8xi64>, tensor<2x8x16xf32>) -> tensor<4x16xf32>
  // expected-remark@+1 {{(, [0][1], ) -> ([0][1]) {0=2, 1=8}}}
  %2 = nn.random_uniform %step, %ids stream %step seed 0 : (tensor<i64>, tensor<2x8xi64>, tensor<i64>) -> tensor<2x8xf32>
  // expected-remark@+1 {{([0][1][2]) -> ([0][1][2]) {0=2, 1=8, 2=16} linear={{0}}}}
  %3 = nn.dropout %x p 0.1 : tensor<2x8x16xf32>
  // expected-remark@+1 {{([0][1][2]) -> ([0][1][2]) {0=2, 1=8, 2=16} linear={{0}}}}
  %4 = nn.recompute %x : tensor<2x8x16xf32>
  // Where a gradient is Partial, it is reduced before the update.
  // expected-remark@+1 {{([0][1], [0][1], [0][1], [0][1], , , ) -> ([0][1], [0][1], [0][1]) {0=4, 1=16}}}
  %5:3 = nn.adam %w, %0, %w, %w lr %lr corrections %lr, %lr betas 0.9, 0.999 eps 1.0e-8 weight_decay 0.0 : tensor<4x16xf32>, tensor<f32>
  // expected-remark@+1 {{([0][1], [0][1], [0][1], [0][1], [0][1], , , ) -> ([0][1], [0][1], [0][1], [0][1]) {0=4, 1=16}}}
  %a:4 = nn.amsgrad %w, %0, %w, %w, %w lr %lr corrections %lr, %lr betas 0.9, 0.999 eps 1.0e-8 weight_decay 0.0 : tensor<4x16xf32>, tensor<f32>
  // expected-remark@+1 {{([0][1], [0][1], [0][1], ) -> ([0][1], [0][1]) {0=4, 1=16}}}
  %6:2 = nn.sgd %w, %1, %w lr %lr momentum 0.9 weight_decay 0.0 : tensor<4x16xf32>, tensor<f32>
  // Integers are counted from a rank's own place on, floats aren't.
  // expected-remark@+1 {{() -> ([0]) {0=8}}}
  %7 = nn.iota dim 0 start 0.0 step 1.0 : tensor<8xi64>
  // expected-remark@+1 {{() -> ([0]) {0=8} whole={0}}}
  %8 = nn.iota dim 0 start 0.0 step 1.0 : tensor<8xf32>
  return
}
