func.func @main(%x: tensor<8x10xf32>) -> tensor<8x10xf32> {
  %r = nn.module "" class "MLP" (%x as "x" at 0) {
  ^bb0(%a: tensor<8x10xf32>):
    %h = nn.module "net1" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<8x10xf32>):
      %w = nn.parameter "net1.weight" : tensor<16x10xf32>
      %b = nn.parameter "net1.bias" : tensor<16xf32>
      %y = nn.linear %input, %w : (tensor<8x10xf32>, tensor<16x10xf32>) -> tensor<8x16xf32>
      %z = nn.add %y, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
      nn.yield %z : tensor<8x16xf32>
    } : (tensor<8x10xf32>) -> tensor<8x16xf32>
    %g = nn.relu %h : tensor<8x16xf32>
    %o = nn.module "net2" class "Linear" (%g as "input" at 0) {
    ^bb0(%input: tensor<8x16xf32>):
      %w = nn.parameter "net2.weight" : tensor<10x16xf32>
      %b = nn.parameter "net2.bias" : tensor<10xf32>
      %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
      %z = nn.add %y, %b : (tensor<8x10xf32>, tensor<10xf32>) -> tensor<8x10xf32>
      nn.yield %z : tensor<8x10xf32>
    } : (tensor<8x16xf32>) -> tensor<8x10xf32>
    nn.yield %o : tensor<8x10xf32>
  } : (tensor<8x10xf32>) -> tensor<8x10xf32>
  return %r : tensor<8x10xf32>
}
