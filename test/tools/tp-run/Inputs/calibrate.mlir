tp.mesh @mesh(tp = 4)
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = nn.exp %x : tensor<64x64xf32>
  %1 = tp.all_reduce sum %0 over @mesh {tp} : tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}
