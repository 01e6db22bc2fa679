func.func @main(%x: tensor<8x6xf32> {tp.name = "x"}) -> tensor<8x13xf32> {
  %h = nn.module "up" class "Up" (%x as "input" at 0) {
  ^bb0(%a: tensor<8x6xf32>):
    %w = nn.parameter "up.weight" : tensor<150x6xf32>
    %y = nn.linear %a, %w : (tensor<8x6xf32>, tensor<150x6xf32>) -> tensor<8x150xf32>
    %r = nn.relu %y : tensor<8x150xf32>
    nn.yield %r : tensor<8x150xf32>
  } : (tensor<8x6xf32>) -> tensor<8x150xf32>
  %0 = nn.module "down" class "Linear" (%h as "input" at 0) {
  ^bb0(%a: tensor<8x150xf32>):
    %w = nn.parameter "down.weight" : tensor<13x150xf32>
    %y = nn.linear %a, %w : (tensor<8x150xf32>, tensor<13x150xf32>) -> tensor<8x13xf32>
    nn.yield %y : tensor<8x13xf32>
  } : (tensor<8x150xf32>) -> tensor<8x13xf32>
  return %0 : tensor<8x13xf32>
}
