tp.mesh @m(tp = 2)
func.func @f(%a: tensor<4x8xf32>) {
  %0 = tp.all_gather %a dim 0 over @m {tp} : tensor<4x8xf32> -> tensor<8x8xf32>
  %1 = tp.reduce_scatter max %a dim 1 over @m {tp} : tensor<4x8xf32> -> tensor<4x4xf32>
  %2 = tp.all_to_all %a split 0 concat 1 over @m {tp} : tensor<4x8xf32> -> tensor<2x16xf32>
  %3 = tp.shard_offset of 5 over @m {tp} : tensor<i64>
  return
}
