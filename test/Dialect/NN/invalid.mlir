// RUN: tp-opt %s --split-input-file --verify-diagnostics

func.func @module_types(%x: tensor<8xf32>) {
  // expected-error@+1 {{block arguments must have the operands' types}}
  nn.module "m" class "M" (%x as "x" at 0) {
  ^bb0(%y: tensor<4xf32>):
    nn.yield
  } : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @yield_types(%x: tensor<8xf32>) {
  // expected-error@+1 {{'nn.yield' must have the results' types}}
  %r = nn.module "m" class "M" (%x as "x" at 0) {
  ^bb0(%y: tensor<8xf32>):
    nn.yield
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @linear(%x: tensor<8x10xf32>, %w: tensor<16x12xf32>) {
  // expected-error@+1 {{needs (b…, k) and (n, k), found 'tensor<8x10xf32>' and 'tensor<16x12xf32>'}}
  %0 = nn.linear %x, %w : (tensor<8x10xf32>, tensor<16x12xf32>) -> tensor<8x16xf32>
  return
}

// -----

func.func @linear_result(%x: tensor<8x10xf32>, %w: tensor<16x10xf32>) {
  // expected-error@+1 {{result should be 'tensor<8x16xf32>', found 'tensor<8x10xf32>'}}
  %0 = nn.linear %x, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x10xf32>
  return
}

// -----

func.func @linear_element(%x: tensor<8x10xf32>, %w: tensor<16x10xf16>) {
  // expected-error@+1 {{operands and result must have one element type, found 'tensor<16x10xf16>' and 'tensor<8x16xf32>'}}
  %0 = nn.linear %x, %w : (tensor<8x10xf32>, tensor<16x10xf16>) -> tensor<8x16xf32>
  return
}

// -----

func.func @matmul(%a: tensor<2x8x10xf32>, %b: tensor<3x10x4xf32>) {
  // expected-error@+1 {{batch dimensions of 'tensor<2x8x10xf32>' and 'tensor<3x10x4xf32>' don't broadcast}}
  %0 = nn.matmul %a, %b : (tensor<2x8x10xf32>, tensor<3x10x4xf32>) -> tensor<2x8x4xf32>
  return
}

// -----

func.func @heads(%q: tensor<2x4x8x16xf32>, %k: tensor<2x3x8x16xf32>) {
  // expected-error@+1 {{with hk dividing h}}
  %0 = nn.attention %q, %k, %k scale 1.0 : (tensor<2x4x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @mask(%q: tensor<2x4x8x16xf32>, %m: tensor<8x4xi1>) {
  // expected-error@+1 {{mask 'tensor<8x4xi1>' doesn't broadcast to the scores' shape 'tensor<2x4x8x8xf32>'}}
  %0 = nn.attention %q, %q, %q mask %m scale 1.0 : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<8x4xi1>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @norm(%x: tensor<2x8xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{weight and bias must have the shape of the normalized dimensions of 'tensor<2x8xf32>', found 'tensor<4xf32>'}}
  %0 = nn.rms_norm %x weight %w over 1 eps 1.0e-5 : (tensor<2x8xf32>, tensor<4xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @norm_dims(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{can't normalize 3 dimensions of 'tensor<2x8xf32>'}}
  %0 = nn.layer_norm %x over 3 eps 1.0e-5 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @softmax(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{dimension 2 is out of range for 'tensor<2x8xf32>'}}
  %0 = nn.softmax %x dim 2 : tensor<2x8xf32>
  return
}

// -----

func.func @reduce(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{dims must be distinct and ascending}}
  %0 = nn.reduce sum %x dims [1, 0] : tensor<2x8xf32> -> tensor<f32>
  return
}

// -----

func.func @reshape(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{input has 16 elements, result 15}}
  %0 = nn.reshape %x : tensor<2x8xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @transpose(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{permutation must name each dimension once}}
  %0 = nn.transpose %x [0, 0] : tensor<2x8xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @broadcast(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{doesn't broadcast to 'tensor<3x8xf32>'}}
  %0 = nn.broadcast %x : tensor<2x8xf32> -> tensor<3x8xf32>
  return
}

// -----

func.func @slice(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{range of 4 elements from 5 by 1 leaves dimension 1 of size 8}}
  %0 = nn.slice %x dim 1 start 5 step 1 : tensor<2x8xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @slice_scatter_range(%x: tensor<2x8xf32>, %y: tensor<2x4xf32>) {
  // expected-error@+1 {{range of 4 elements from 2 by 2 leaves dimension 1 of size 8}}
  %0 = nn.slice_scatter %x, %y dim 1 start 2 step 2 : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @slice_scatter_source(%x: tensor<2x8xf32>, %y: tensor<3x4xf32>) {
  // expected-error@+1 {{source should be 'tensor<2x4xf32>', found 'tensor<3x4xf32>'}}
  %0 = nn.slice_scatter %x, %y dim 1 start 0 step 1 : (tensor<2x8xf32>, tensor<3x4xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @slice_scatter_element(%x: tensor<2x8xf32>, %y: tensor<2x4xi64>) {
  // expected-error@+1 {{input 'tensor<2x8xf32>' and source 'tensor<2x4xi64>' must differ in dimension 1 only}}
  %0 = nn.slice_scatter %x, %y dim 1 start 0 step 1 : (tensor<2x8xf32>, tensor<2x4xi64>) -> tensor<2x8xf32>
  return
}

// -----

func.func @slice_scatter_dim(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{dimension 2 is out of range for 'tensor<2x8xf32>'}}
  %0 = nn.slice_scatter %x, %x dim 2 start 0 step 1 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @concat(%x: tensor<2x8xf32>, %y: tensor<3x8xf32>) {
  // expected-error@+1 {{operands must agree in all dimensions but 1}}
  %0 = nn.concat %x, %y dim 1 : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<2x16xf32>
  return
}

// -----

func.func @gather(%x: tensor<2x8xf32>, %i: tensor<3x3xi64>) {
  // expected-error@+1 {{is larger than input 'tensor<2x8xf32>' in dimension 0}}
  %0 = nn.gather %x, %i dim 1 : (tensor<2x8xf32>, tensor<3x3xi64>) -> tensor<3x3xf32>
  return
}

// -----

func.func @cross_entropy(%x: tensor<8x16xf32>, %t: tensor<4xi64>) {
  // expected-error@+1 {{target should have the shape of 'tensor<8xi64>', found 'tensor<4xi64>'}}
  %0 = nn.cross_entropy mean %x, %t ignore -100 smoothing 0.0 : (tensor<8x16xf32>, tensor<4xi64>) -> tensor<f32>
  return
}

// -----

func.func @smoothing(%x: tensor<8x16xf32>, %t: tensor<8xi64>) {
  // expected-error@+1 {{label smoothing must be between 0 and 1}}
  %0 = nn.cross_entropy mean %x, %t ignore -100 smoothing 1.5 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
  return
}

// -----

func.func @elementwise(%x: tensor<2x8xf32>, %y: tensor<3x8xf32>) {
  // expected-error@+1 {{op operands don't have broadcast-compatible shapes}}
  %0 = nn.add %x, %y : (tensor<2x8xf32>, tensor<3x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @smoothed(%x: tensor<8x16xf32>, %t: tensor<8xi64>) {
  // expected-error@+1 {{loss_parallel doesn't support label smoothing}}
  %l = nn.cross_entropy mean %x, %t ignore -100 smoothing 0.1 loss_parallel : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f32>
  return
}

// -----

func.func @attention_gradient(%q: tensor<2x4x8x16xf32>, %k: tensor<2x3x8x16xf32>) {
  // expected-error@+1 {{with hk dividing h}}
  %0:3 = nn.attention_gradient %q, %k, %k gradient %q scale 1.0 : (tensor<2x4x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @attention_gradient_mask(%q: tensor<2x4x8x16xf32>, %m: tensor<8x8xi1>) {
  // expected-error@+1 {{takes either 'causal' or a mask}}
  %0:3 = nn.attention_gradient causal %q, %q, %q gradient %q mask %m scale 1.0 : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<8x8xi1>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @attention_gradient_element(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xbf16>) {
  // expected-error@+1 {{key must be 'tensor<2x4x8x16xf32>', found 'tensor<2x4x8x16xbf16>'}}
  %0:3 = nn.attention_gradient %q, %k, %k gradient %q scale 1.0 : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @attention_gradient_gradient(%q: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x6xf32>) {
  // expected-error@+1 {{gradient must be 'tensor<2x4x8x6xf32>', found 'tensor<2x4x8x16xf32>'}}
  %0:3 = nn.attention_gradient %q, %q, %v gradient %q scale 1.0 : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x6xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x6xf32>)
  return
}

// -----

func.func @attention_gradient_result(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>) {
  // expected-error@+1 {{the key's gradient must be 'tensor<2x4x8x16xf32>', found 'tensor<2x2x8x16xf32>'}}
  %0:3 = nn.attention_gradient %q, %k, %k gradient %q scale 1.0 : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>)
  return
}

// -----

func.func @outer_sum(%g: tensor<2x8x4xf32>, %x: tensor<2x9x16xf32>) {
  // expected-error@+1 {{needs (b…, m) and (b…, n), found 'tensor<2x8x4xf32>' and 'tensor<2x9x16xf32>'}}
  %0 = nn.outer_sum %g, %x : (tensor<2x8x4xf32>, tensor<2x9x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @outer_sum_result(%g: tensor<2x8x4xf32>, %x: tensor<2x8x16xf32>) {
  // expected-error@+1 {{result should be 'tensor<4x16xf32>', found 'tensor<16x4xf32>'}}
  %0 = nn.outer_sum %g, %x : (tensor<2x8x4xf32>, tensor<2x8x16xf32>) -> tensor<16x4xf32>
  return
}

// -----

func.func @outer_sum_element(%g: tensor<8x4xf32>, %x: tensor<8x16xbf16>) {
  // expected-error@+1 {{operands and result must have one element type, found 'tensor<8x16xbf16>' and 'tensor<4x16xf32>'}}
  %0 = nn.outer_sum %g, %x : (tensor<8x4xf32>, tensor<8x16xbf16>) -> tensor<4x16xf32>
  return
}

// -----

func.func @scatter_add_rows(%ids: tensor<2x8xi64>, %rows: tensor<2x9x16xf32>) {
  // expected-error@+1 {{needs (i…), (i…, d) and a result (v, d), found 'tensor<2x8xi64>', 'tensor<2x9x16xf32>' and 'tensor<4x16xf32>'}}
  %0 = nn.scatter_add_rows %ids, %rows : (tensor<2x8xi64>, tensor<2x9x16xf32>) -> tensor<4x16xf32>
  return
}

// -----

func.func @scatter_add_rows_element(%ids: tensor<8xi64>, %rows: tensor<8x16xf32>) {
  // expected-error@+1 {{result must have the rows' element type}}
  %0 = nn.scatter_add_rows %ids, %rows : (tensor<8xi64>, tensor<8x16xf32>) -> tensor<4x16xbf16>
  return
}

// -----

func.func @random_uniform(%step: tensor<1xi64>, %index: tensor<2x8xi64>, %stream: tensor<i64>) {
  // expected-error@+1 {{counter must be a scalar, found 'tensor<1xi64>'}}
  %0 = nn.random_uniform %step, %index stream %stream seed 0 : (tensor<1xi64>, tensor<2x8xi64>, tensor<i64>) -> tensor<2x8xf32>
  return
}

// -----

func.func @random_uniform_shape(%step: tensor<i64>, %index: tensor<2x8xi64>) {
  // expected-error@+1 {{result should be 'tensor<2x8xf32>', found 'tensor<8x2xf32>'}}
  %0 = nn.random_uniform %step, %index stream %step seed 0 : (tensor<i64>, tensor<2x8xi64>, tensor<i64>) -> tensor<8x2xf32>
  return
}

// -----

func.func @random_uniform_stream(%step: tensor<i64>, %index: tensor<2x8xi64>) {
  // expected-error@+1 {{stream must be a scalar, found 'tensor<2x8xi64>'}}
  %0 = nn.random_uniform %step, %index stream %index seed 0 : (tensor<i64>, tensor<2x8xi64>, tensor<2x8xi64>) -> tensor<2x8xf32>
  return
}

// -----

func.func @dropout(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{p must be from 0 to 1, found 1.5}}
  %0 = nn.dropout %x p 1.5 : tensor<2x8xf32>
  return
}

// -----

func.func @rate(%w: tensor<4xbf16>, %lr: tensor<f64>) {
  // expected-error@+1 {{rate for 'tensor<4xbf16>' must be 'f32', found 'tensor<f64>'}}
  %0:2 = nn.sgd %w, %w, %w lr %lr momentum 0.9 weight_decay 0.0 : tensor<4xbf16>, tensor<f64>
  return
}

// -----

func.func @class_sums(%x: tensor<4x8x3xf32>, %t: tensor<4xi64>) {
  // expected-error@+1 {{target must have the input's shape without its classes, found 'tensor<4x8x3xf32>' and 'tensor<4xi64>'}}
  %0:3 = nn.class_sums %x, %t : tensor<4x8x3xf32>, tensor<4xi64> -> tensor<4x1x3xf32>
  return
}

// -----

func.func @class_sums(%x: tensor<4x8xf32>, %t: tensor<4xi64>) {
  // expected-error@+1 {{results must be 'tensor<4x1xf32>', found 'tensor<4xf32>'}}
  %0:3 = nn.class_sums %x, %t : tensor<4x8xf32>, tensor<4xi64> -> tensor<4xf32>
  return
}

// -----

func.func @class_sums(%x: tensor<4x0xf32>, %t: tensor<4xi64>) {
  // expected-error@+1 {{input must have classes, found 'tensor<4x0xf32>'}}
  %0:3 = nn.class_sums %x, %t : tensor<4x0xf32>, tensor<4xi64> -> tensor<4x1xf32>
  return
}

// -----

func.func @class_sums_element(%x: tensor<4x8xf32>, %t: tensor<4xi64>) {
  // expected-error@+1 {{results must be 'tensor<4x1xf32>', found 'tensor<4x1xf64>'}}
  %0:3 = nn.class_sums %x, %t : tensor<4x8xf32>, tensor<4xi64> -> tensor<4x1xf64>
  return
}

// -----

func.func @embedding_element(%ids: tensor<2xi64>, %w: tensor<8x4xf32>) {
  // expected-error@+1 {{result should be 'tensor<2x4xf32>', found 'tensor<2x4xf16>'}}
  %0 = nn.embedding %ids, %w : (tensor<2xi64>, tensor<8x4xf32>) -> tensor<2x4xf16>
  return
}

// -----

func.func @cross_entropy_element(%x: tensor<8x16xf32>, %t: tensor<8xi64>) {
  // expected-error@+1 {{result should be 'tensor<f32>', found 'tensor<f64>'}}
  %0 = nn.cross_entropy mean %x, %t ignore -100 smoothing 0.0 : (tensor<8x16xf32>, tensor<8xi64>) -> tensor<f64>
  return
}

// -----

func.func @argmax_result(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{result should be 'tensor<2x1xi64>', found 'tensor<2xi64>'}}
  %0 = nn.argmax %x dim 1 keepdim : tensor<2x8xf32> -> tensor<2xi64>
  return
}

// -----

func.func @index_select_result(%x: tensor<2x8xf32>, %i: tensor<3xi64>) {
  // expected-error@+1 {{result should be 'tensor<2x3xf32>', found 'tensor<3x8xf32>'}}
  %0 = nn.index_select %x, %i dim 1 : (tensor<2x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
  return
}

// -----

func.func @convolution_stride(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{stride needs 2 entries from 1 to 2147483647, found [1, 0]}}
  %0 = nn.convolution %x, %w stride [1, 0] padding [0, 0] dilation [1, 1] : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @convolution_padding(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{padding needs 2 entries from 0 to 2147483647, found [-1, 0]}}
  %0 = nn.convolution %x, %w stride [1, 1] padding [-1, 0] dilation [1, 1] : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @convolution_dilation(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{dilation needs 2 entries from 1 to 2147483647, found [1]}}
  %0 = nn.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1] : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @convolution_no_dims(%x: tensor<2x4xf32>, %w: tensor<6x4xf32>) {
  // expected-error@+1 {{stride needs an entry for each spatial dimension, found none}}
  %0 = nn.convolution %x, %w stride [] padding [] dilation [] : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @convolution_channels(%x: tensor<2x4x8x8xf32>, %w: tensor<6x3x3x3xf32>) {
  // expected-error@+1 {{needs input (b, c, s…), weight (m, c, k…) and result (b, m, p…), or all with g before their channels, with 2 spatial dimensions, found 'tensor<2x4x8x8xf32>', 'tensor<6x3x3x3xf32>' and 'tensor<2x6x6x6xf32>'}}
  %0 = nn.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<2x4x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @convolution_groups(%x: tensor<2x4x8x8xf32>, %w: tensor<3x6x8x3xf32>) {
  // expected-error@+1 {{with 1 spatial dimensions, found 'tensor<2x4x8x8xf32>', 'tensor<3x6x8x3xf32>' and 'tensor<2x4x6x6xf32>'}}
  %0 = nn.convolution %x, %w stride [1] padding [0] dilation [1] : (tensor<2x4x8x8xf32>, tensor<3x6x8x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @convolution_size(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error@+1 {{needs a padded input of at most 2^40 elements, but [6, 6] windows of [3, 3] elements of 'tensor<2x4x8x8xf32>' lie in a larger one}}
  %0 = nn.convolution %x, %w stride [1000000, 1] padding [0, 0] dilation [1, 1000000] : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @convolution_element(%x: tensor<2x4x8x8xf32>, %w: tensor<6x4x3x3xf16>) {
  // expected-error@+1 {{requires the same element type for all operands and results}}
  %0 = nn.convolution %x, %w stride [1, 1] padding [0, 0] dilation [1, 1] : (tensor<2x4x8x8xf32>, tensor<6x4x3x3xf16>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @windows(%x: tensor<2x8x8xf32>) {
  // expected-error@+1 {{needs (l…, s…) and (l…, k…, p…) with 2 spatial dimensions, found 'tensor<2x8x8xf32>' and 'tensor<3x2x2x4x4xf32>'}}
  %0 = nn.windows %x stride [2, 2] padding [0, 0] dilation [1, 1] outside 0.0 : tensor<2x8x8xf32> -> tensor<3x2x2x4x4xf32>
  return
}

// -----

func.func @fold(%x: tensor<2x2x4x4xf32>) {
  // expected-error@+1 {{needs (l…, k…, p…) and (l…, s…) with 2 spatial dimensions, found 'tensor<2x2x4x4xf32>' and 'tensor<2x8x8xf32>'}}
  %0 = nn.fold %x stride [2, 2] padding [0, 0] dilation [1, 1] : tensor<2x2x4x4xf32> -> tensor<2x8x8xf32>
  return
}

// -----

func.func @pool_kind(%x: tensor<2x8x8xf32>) {
  // expected-error@+1 {{needs the kind 'max' or 'sum', found 'mean'}}
  %0 = nn.pool mean %x size [2, 2] stride [2, 2] padding [0, 0] dilation [1, 1] : tensor<2x8x8xf32> -> tensor<2x4x4xf32>
  return
}

// -----

func.func @pool_size(%x: tensor<2x8x8xf32>) {
  // expected-error@+1 {{size needs 2 entries from 1 to 2147483647, found [2]}}
  %0 = nn.pool max %x size [2] stride [2, 2] padding [0, 0] dilation [1, 1] : tensor<2x8x8xf32> -> tensor<2x4x4xf32>
  return
}

// -----

func.func @pool_shape(%x: tensor<2x8x8xf32>) {
  // expected-error@+1 {{needs (l…, s…) and (l…, p…) with 2 spatial dimensions, found 'tensor<2x8x8xf32>' and 'tensor<3x4x4xf32>'}}
  %0 = nn.pool max %x size [2, 2] stride [2, 2] padding [0, 0] dilation [1, 1] : tensor<2x8x8xf32> -> tensor<3x4x4xf32>
  return
}

// -----

func.func @sort_dim(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'nn.sort' op dimension 2 is out of range for 'tensor<2x8xf32>'}}
  %0:2 = nn.sort %x dim 2 count 1 : tensor<2x8xf32> -> (tensor<2x8xf32>, tensor<2x8xi64>)
  return
}

// -----

func.func @sort_count(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'nn.sort' op count should be from 0 to 8, found 9}}
  %0:2 = nn.sort %x dim 1 count 9 : tensor<2x8xf32> -> (tensor<2x9xf32>, tensor<2x9xi64>)
  return
}

// -----

func.func @sort_results(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'nn.sort' op results should be 'tensor<2x3xf32>' and 'tensor<2x3xi64>', found 'tensor<2x8xf32>' and 'tensor<2x3xi64>'}}
  %0:2 = nn.sort %x dim 1 count 3 : tensor<2x8xf32> -> (tensor<2x8xf32>, tensor<2x3xi64>)
  return
}

// -----

func.func @cumsum_dim(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'nn.cumsum' op dimension 2 is out of range for 'tensor<2x8xf32>'}}
  %0 = nn.cumsum %x dim 2 : tensor<2x8xf32>
  return
}

// -----

func.func @scatter_dim(%x: tensor<2x8xf32>, %i: tensor<2x8xi64>) {
  // expected-error@+1 {{'nn.scatter' op dimension 2 is out of range for 'tensor<2x8xf32>'}}
  %0 = nn.scatter copy %x, %i, %x dim 2 : (tensor<2x8xf32>, tensor<2x8xi64>, tensor<2x8xf32>)
  return
}

// -----

func.func @scatter_element(%x: tensor<2x8xf32>, %i: tensor<2x8xi64>, %s: tensor<2x8xf64>) {
  // expected-error@+1 {{'nn.scatter' op input and source must have one rank and one element type, found 'tensor<2x8xf32>' and 'tensor<2x8xf64>'}}
  %0 = nn.scatter copy %x, %i, %s dim 1 : (tensor<2x8xf32>, tensor<2x8xi64>, tensor<2x8xf64>)
  return
}

// -----

func.func @scatter_index(%x: tensor<2x8xf32>, %i: tensor<2x4xi64>, %s: tensor<2x3xf32>) {
  // expected-error@+1 {{'nn.scatter' op index should have the shape of the source 'tensor<2x3xf32>', or only the size of its dimension 1, found 'tensor<2x4xi64>'}}
  %0 = nn.scatter copy %x, %i, %s dim 1 : (tensor<2x8xf32>, tensor<2x4xi64>, tensor<2x3xf32>)
  return
}

// -----

func.func @scatter_source(%x: tensor<2x8xf32>, %i: tensor<3xi64>, %s: tensor<1x3xf32>) {
  // expected-error@+1 {{'nn.scatter' op source 'tensor<1x3xf32>' doesn't fit input 'tensor<2x8xf32>' in dimension 0}}
  %0 = nn.scatter copy %x, %i, %s dim 1 : (tensor<2x8xf32>, tensor<3xi64>, tensor<1x3xf32>)
  return
}

// -----

func.func @scatter_kind(%x: tensor<8xi1>, %i: tensor<3xi64>, %s: tensor<3xi1>) {
  // expected-error@+1 {{'nn.scatter' op of kind 'add' needs numbers, found 'tensor<8xi1>'}}
  %0 = nn.scatter add %x, %i, %s dim 0 : (tensor<8xi1>, tensor<3xi64>, tensor<3xi1>)
  return
}

// -----

func.func @grouped_matmul(%x: tensor<16x8xf32>, %w: tensor<4x6x8xf32>, %e: tensor<5xi32>) {
  // expected-error@+1 {{'nn.grouped_matmul' op needs (m, k), (e, k, n) and bounds (e + 1), or (p, e / p + 1) where p divides m and e, found 'tensor<16x8xf32>', 'tensor<4x6x8xf32>' and 'tensor<5xi32>'}}
  %0 = nn.grouped_matmul %x, %w bounds %e : (tensor<16x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>) -> tensor<16x8xf32>
  return
}

// -----

func.func @grouped_matmul_element(%x: tensor<16x8xf32>, %w: tensor<4x8x6xf64>, %e: tensor<5xi32>) {
  // expected-error@+1 {{'nn.grouped_matmul' op operands must have one element type, found 'tensor<16x8xf32>' and 'tensor<4x8x6xf64>'}}
  %0 = nn.grouped_matmul %x, %w bounds %e : (tensor<16x8xf32>, tensor<4x8x6xf64>, tensor<5xi32>) -> tensor<16x6xf32>
  return
}

// -----

func.func @grouped_outer_sum(%x: tensor<16x8xf32>, %g: tensor<8x6xf32>, %e: tensor<5xi32>) {
  // expected-error@+1 {{'nn.grouped_outer_sum' op needs (m, k), (m, n) and bounds (e + 1), or (p, e / p + 1) where p divides m and e, found 'tensor<16x8xf32>', 'tensor<8x6xf32>' and 'tensor<5xi32>'}}
  %0 = nn.grouped_outer_sum %x, %g bounds %e : (tensor<16x8xf32>, tensor<8x6xf32>, tensor<5xi32>) -> tensor<4x8x6xf32>
  return
}

// -----

func.func @grouped_outer_sum_element(%x: tensor<16x8xf32>, %g: tensor<16x6xf64>, %e: tensor<5xi32>) {
  // expected-error@+1 {{'nn.grouped_outer_sum' op operands must have one element type, found 'tensor<16x8xf32>' and 'tensor<16x6xf64>'}}
  %0 = nn.grouped_outer_sum %x, %g bounds %e : (tensor<16x8xf32>, tensor<16x6xf64>, tensor<5xi32>) -> tensor<4x8x6xf32>
  return
}

// -----

func.func @ring(%q: tensor<2x8x16xf32>, %k: tensor<2x6x16xf32>) {
  // expected-error@+1 {{needs as many keys as queries in a ring, found 6 and 8}}
  %0 = nn.attention %q, %k, %k scale 1.0 context ring : (tensor<2x8x16xf32>, tensor<2x6x16xf32>, tensor<2x6x16xf32>) -> tensor<2x8x16xf32>
  return
}

// -----

func.func @context_method(%q: tensor<2x8x16xf32>) {
  // expected-error@+1 {{the context method must be cheapest, all_gather, all_to_all or ring, found 'rings'}}
  %0 = nn.attention %q, %q, %q scale 1.0 context rings : (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return
}

// -----

func.func @attention_block(%q: tensor<2x8x16xbf16>) {
  // expected-error@+1 {{the log-sum-exp must be 'tensor<2x8x1xf32>', found 'tensor<2x8x1xbf16>'}}
  %0:2 = nn.attention_block %q, %q, %q scale 1.0 : (tensor<2x8x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x16xbf16>) -> (tensor<2x8x16xbf16>, tensor<2x8x1xbf16>)
  return
}

// -----

func.func @attention_block_mask(%q: tensor<2x8x16xf32>, %m: tensor<8x8xi1>, %o: tensor<i64>) {
  // expected-error@+1 {{takes either an offset or a mask}}
  %0:2 = nn.attention_block %q, %q, %q mask %m offset %o scale 1.0 : (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<8x8xi1>, tensor<i64>) -> (tensor<2x8x16xf32>, tensor<2x8x1xf32>)
  return
}

// -----

func.func @attention_block_gradient(%q: tensor<2x8x16xf32>, %l: tensor<2x8xf32>) {
  // expected-error@+1 {{the log-sum-exp must be 'tensor<2x8x1xf32>', found 'tensor<2x8xf32>'}}
  %0:3 = nn.attention_block_gradient %q, %q, %q gradient %q lse %l delta %l scale 1.0 : (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>)
  return
}

// -----

func.func @dispatch_shape(%x: tensor<4x8xf32>, %s: tensor<2x6xi64>) {
  // expected-error@+1 {{'nn.dispatch' op needs tokens (t, d), slots (p, c) and rows (p, c, d), found 'tensor<4x8xf32>', 'tensor<2x6xi64>' and 'tensor<2x5x8xf32>'}}
  %0 = nn.dispatch %x to %s : (tensor<4x8xf32>, tensor<2x6xi64>) -> tensor<2x5x8xf32>
  return
}

// -----

func.func @dispatch_parts(%x: tensor<5x8xf32>, %s: tensor<2x6xi64>) {
  // expected-error@+1 {{'nn.dispatch' op the parts must divide the tokens, found 2 parts of 'tensor<5x8xf32>'}}
  %0 = nn.dispatch %x to %s : (tensor<5x8xf32>, tensor<2x6xi64>) -> tensor<2x6x8xf32>
  return
}

// -----

func.func @dispatch_groups(%x: tensor<4x8xf32>, %s: tensor<4x6xi64>) {
  // expected-error@+1 {{'nn.dispatch' op groups must be two positive numbers whose product divides 4, found [2, 4]}}
  %0 = nn.dispatch %x to %s {groups = array<i64: 2, 4>} : (tensor<4x8xf32>, tensor<4x6xi64>) -> tensor<4x6x8xf32>
  return
}

// -----

func.func @combine_element(%y: tensor<2x6x8xf32>, %s: tensor<2x6xi64>) {
  // expected-error@+1 {{'nn.combine' op tokens and rows must have one element type, found 'tensor<4x8xf64>' and 'tensor<2x6x8xf32>'}}
  %0 = nn.combine %y from %s : (tensor<2x6x8xf32>, tensor<2x6xi64>) -> tensor<4x8xf64>
  return
}

// -----

// The groups of a part have bounds of their own.
func.func @grouped_matmul_parts(%x: tensor<16x8xf32>, %w: tensor<4x8x6xf32>, %e: tensor<2x4xi32>) {
  // expected-error@+1 {{'nn.grouped_matmul' op needs (m, k), (e, k, n) and bounds (e + 1), or (p, e / p + 1) where p divides m and e, found 'tensor<16x8xf32>', 'tensor<4x8x6xf32>' and 'tensor<2x4xi32>'}}
  %0 = nn.grouped_matmul %x, %w bounds %e : (tensor<16x8xf32>, tensor<4x8x6xf32>, tensor<2x4xi32>) -> tensor<16x6xf32>
  return
}
