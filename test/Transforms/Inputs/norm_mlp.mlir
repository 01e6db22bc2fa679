func.func @main(%x: tensor<8x16xf32> {tp.name = "x"}) -> (tensor<8x16xf32> {tp.name = "output"}) {
  %r = nn.module "" class "MLP" (%x as "x" at 0) {
  ^bb0(%a: tensor<8x16xf32>):
    %n = nn.module "norm" class "LayerNorm" (%a as "input" at 0) {
    ^bb0(%input: tensor<8x16xf32>):
      %w = nn.parameter "norm.weight" : tensor<16xf32>
      %b = nn.parameter "norm.bias" : tensor<16xf32>
      %y = nn.layer_norm %input weight %w bias %b over 1 eps 1.0e-05 : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
      nn.yield %y : tensor<8x16xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %h = nn.module "up" class "Linear" (%n as "input" at 0) {
    ^bb0(%input: tensor<8x16xf32>):
      %w = nn.parameter "up.weight" : tensor<64x16xf32>
      %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<64x16xf32>) -> tensor<8x64xf32>
      nn.yield %y : tensor<8x64xf32>
    } : (tensor<8x16xf32>) -> tensor<8x64xf32>
    %g = nn.relu %h : tensor<8x64xf32>
    %o = nn.module "down" class "Linear" (%g as "input" at 0) {
    ^bb0(%input: tensor<8x64xf32>):
      %w = nn.parameter "down.weight" : tensor<16x64xf32>
      %y = nn.linear %input, %w : (tensor<8x64xf32>, tensor<16x64xf32>) -> tensor<8x16xf32>
      nn.yield %y : tensor<8x16xf32>
    } : (tensor<8x64xf32>) -> tensor<8x16xf32>
    %s = nn.add %a, %o : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    nn.yield %s : tensor<8x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}
