func.func @main(%x: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %r = nn.module "" class "Attention" (%x as "x" at 0) {
  ^bb0(%a: tensor<2x8x16xf32>):
    %n = nn.module "norm" class "LayerNorm" (%a as "input" at 0) {
    ^bb0(%input: tensor<2x8x16xf32>):
      %w = nn.parameter "norm.weight" : tensor<16xf32>
      %b = nn.parameter "norm.bias" : tensor<16xf32>
      %y = nn.layer_norm %input weight %w bias %b over 1 eps 1.0e-05 : (tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
      nn.yield %y : tensor<2x8x16xf32>
    } : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
    %q = nn.module "wq" class "Linear" (%n as "input" at 0) {
    ^bb0(%input: tensor<2x8x16xf32>):
      %w = nn.parameter "wq.weight" : tensor<16x16xf32>
      %y = nn.linear %input, %w : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
      nn.yield %y : tensor<2x8x16xf32>
    } : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
    %h = nn.reshape %q : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
    %s = nn.softmax %h dim 3 : tensor<2x8x4x4xf32>
    %m = nn.reshape %s : tensor<2x8x4x4xf32> -> tensor<2x8x16xf32>
    %o = nn.module "wo" class "Linear" (%m as "input" at 0) {
    ^bb0(%input: tensor<2x8x16xf32>):
      %w = nn.parameter "wo.weight" : tensor<16x16xf32>
      %y = nn.linear %input, %w : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
      nn.yield %y : tensor<2x8x16xf32>
    } : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
    nn.yield %o : tensor<2x8x16xf32>
  } : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %r : tensor<2x8x16xf32>
}
