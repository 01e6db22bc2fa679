tp.mesh @m(x = 2, y = 2)
func.func @f(%a: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %0 = tp.distribute %a to <@m, [{x}, {}]> : tensor<16x8xf32>
  %1 = tp.to_local %0 as <@m, [{x}, {}]> : tensor<16x8xf32> -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
