tp.mesh @m(dp = 2, tp = 4) devices [0, 1, 2, 3, 4, 5, 6, 7]
func.func @f(%a: tensor<16x8xf32> {tp.sharding = #tp.sharding<@m, [{dp, tp:(1)2}, {}], partial = {tp:(2)2: sum}>}) -> tensor<16x8xf32> {
  %0 = tp.redistribute %a to <@m, [{}, {tp | 4, 2, 2}]> over {tp} : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}
