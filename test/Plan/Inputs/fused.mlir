func.func @main(%x: tensor<2x8xf32>, %t: tensor<2xi64>) -> (tensor<2x8xf32>, tensor<f32>) {
  %r:2 = nn.module "" class "Gated" (%x as "x" at 0, %t as "target" at 1) {
  ^bb0(%a: tensor<2x8xf32>, %target: tensor<2xi64>):
    %g = nn.module "gate_up" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<2x8xf32>):
      %w = nn.parameter "gate_up.weight" : tensor<32x8xf32>
      %b = nn.parameter "gate_up.bias" : tensor<32xf32>
      %y = nn.linear %input, %w : (tensor<2x8xf32>, tensor<32x8xf32>) -> tensor<2x32xf32>
      %z = nn.add %y, %b : (tensor<2x32xf32>, tensor<32xf32>) -> tensor<2x32xf32>
      nn.yield %z : tensor<2x32xf32>
    } : (tensor<2x8xf32>) -> tensor<2x32xf32>
    %0 = nn.slice %g dim 1 start 0 step 1 : tensor<2x32xf32> -> tensor<2x16xf32>
    %1 = nn.slice %g dim 1 start 16 step 1 : tensor<2x32xf32> -> tensor<2x16xf32>
    %2 = nn.mul %0, %1 : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %d = nn.module "down" class "Linear" (%2 as "input" at 0) {
    ^bb0(%input: tensor<2x16xf32>):
      %w = nn.parameter "down.weight" : tensor<8x16xf32>
      %y = nn.linear %input, %w : (tensor<2x16xf32>, tensor<8x16xf32>) -> tensor<2x8xf32>
      nn.yield %y : tensor<2x8xf32>
    } : (tensor<2x16xf32>) -> tensor<2x8xf32>
    %l = nn.cross_entropy mean %d, %target ignore -100 smoothing 0.0 : (tensor<2x8xf32>, tensor<2xi64>) -> tensor<f32>
    nn.yield %d, %l : tensor<2x8xf32>, tensor<f32>
  } : (tensor<2x8xf32>, tensor<2xi64>) -> (tensor<2x8xf32>, tensor<f32>)
  return %r#0, %r#1 : tensor<2x8xf32>, tensor<f32>
}
