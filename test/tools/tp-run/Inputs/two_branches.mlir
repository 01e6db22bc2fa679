// two_layers.mlir, side by side: the first layer's sum can be taken while the second one is computed.
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<8x4xf32> {tp.name = "x"}) -> (tensor<8x6xf32> {tp.name = "y"}) {
  %u0 = nn.parameter "layers.0.up.weight" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<16x4xf32>} : tensor<8x4xf32>
  %d0 = nn.parameter "layers.0.down.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<4x16xf32>} : tensor<4x8xf32>
  %0 = nn.linear %x, %u0 {tp.fqn = "layers.0.up"} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %1 = nn.relu %0 {tp.fqn = "layers.0"} : tensor<8x8xf32>
  %2 = nn.linear %1, %d0 {tp.fqn = "layers.0.down"} : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<8x4xf32>
  %3 = tp.all_reduce sum %2 over @mesh {tp} {fqn = "layers.0.down", reason = "plan.yaml:3:9: RowwiseParallel"} : tensor<8x4xf32>
  %u1 = nn.parameter "layers.1.up.weight" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<16x4xf32>} : tensor<8x4xf32>
  %d1 = nn.parameter "layers.1.down.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<4x16xf32>} : tensor<4x8xf32>
  %4 = nn.linear %x, %u1 {tp.fqn = "layers.1.up"} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %5 = nn.relu %4 {tp.fqn = "layers.1"} : tensor<8x8xf32>
  %6 = nn.linear %5, %d1 {tp.fqn = "layers.1.down"} : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<8x4xf32>
  %7 = tp.all_reduce sum %6 over @mesh {tp} {fqn = "layers.1.down", reason = "plan.yaml:3:9: RowwiseParallel"} : tensor<8x4xf32>
  %8 = nn.add %3, %7 {tp.fqn = "layers"} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %h = nn.parameter "head.weight" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<6x4xf32>} : tensor<3x4xf32>
  %9 = nn.linear %8, %h {tp.fqn = "head"} : (tensor<8x4xf32>, tensor<3x4xf32>) -> tensor<8x3xf32>
  %10 = tp.all_gather %9 dim 1 over @mesh {tp} {fqn = "head", reason = "plan.yaml:4:9: output_layouts Replicate"} : tensor<8x3xf32> -> tensor<8x6xf32>
  return %10 : tensor<8x6xf32>
}
