module {
  func.func @main(%arg0: tensor<2x16x64xf32> {tp.name = "x"}) -> (tensor<2x16x64xf32> {tp.name = "output"}) {
    %0 = nn.module "" class "M" (%arg0 as "x" at 0) {
    ^bb0(%arg1: tensor<2x16x64xf32>):
      %1 = nn.module "layers.0" class "Layer" (%arg1 as "x" at 0) {
      ^bb0(%arg2: tensor<2x16x64xf32>):
        %3 = nn.module "layers.0.attention" class "Attn" (%arg2 as "x" at 0) {
        ^bb0(%arg3: tensor<2x16x64xf32>):
          %5 = nn.module "layers.0.attention.wq" class "Linear" (%arg3 as "x" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %18 = nn.parameter "layers.0.attention.wq.weight" : tensor<64x64xf32>
            %19 = nn.linear %arg4, %18 : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
            nn.yield %19 : tensor<2x16x64xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
          %6 = nn.reshape %5 : tensor<2x16x64xf32> -> tensor<2x16x8x8xf32>
          %7 = nn.transpose %6 [0, 2, 1, 3] : tensor<2x16x8x8xf32> -> tensor<2x8x16x8xf32>
          %8 = nn.module "layers.0.attention.wk" class "Linear" (%arg3 as "x" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %18 = nn.parameter "layers.0.attention.wk.weight" : tensor<16x64xf32>
            %19 = nn.linear %arg4, %18 : (tensor<2x16x64xf32>, tensor<16x64xf32>) -> tensor<2x16x16xf32>
            nn.yield %19 : tensor<2x16x16xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x16xf32>
          %9 = nn.reshape %8 : tensor<2x16x16xf32> -> tensor<2x16x2x8xf32>
          %10 = nn.transpose %9 [0, 2, 1, 3] : tensor<2x16x2x8xf32> -> tensor<2x2x16x8xf32>
          %11 = nn.module "layers.0.attention.wv" class "Linear" (%arg3 as "x" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %18 = nn.parameter "layers.0.attention.wv.weight" : tensor<16x64xf32>
            %19 = nn.linear %arg4, %18 : (tensor<2x16x64xf32>, tensor<16x64xf32>) -> tensor<2x16x16xf32>
            nn.yield %19 : tensor<2x16x16xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x16xf32>
          %12 = nn.reshape %11 : tensor<2x16x16xf32> -> tensor<2x16x2x8xf32>
          %13 = nn.transpose %12 [0, 2, 1, 3] : tensor<2x16x2x8xf32> -> tensor<2x2x16x8xf32>
          %14 = nn.attention causal %7, %10, %13 scale 0.35355339059327373 : (tensor<2x8x16x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) -> tensor<2x8x16x8xf32>
          %15 = nn.transpose %14 [0, 2, 1, 3] : tensor<2x8x16x8xf32> -> tensor<2x16x8x8xf32>
          %16 = nn.reshape %15 : tensor<2x16x8x8xf32> -> tensor<2x16x64xf32>
          %17 = nn.module "layers.0.attention.wo" class "Linear" (%16 as "input" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %18 = nn.parameter "layers.0.attention.wo.weight" : tensor<64x64xf32>
            %19 = nn.linear %arg4, %18 : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
            nn.yield %19 : tensor<2x16x64xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
          nn.yield %17 : tensor<2x16x64xf32>
        } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
        %4 = nn.add %arg2, %3 : (tensor<2x16x64xf32>, tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
        nn.yield %4 : tensor<2x16x64xf32>
      } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
      %2 = nn.module "layers.1" class "Layer" (%1 as "argument_1" at 0) {
      ^bb0(%arg2: tensor<2x16x64xf32>):
        %3 = nn.module "layers.1.attention" class "Attn" (%arg2 as "argument_1" at 0) {
        ^bb0(%arg3: tensor<2x16x64xf32>):
          %5 = nn.module "layers.1.attention.wq" class "Linear" (%arg3 as "argument_1" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %18 = nn.parameter "layers.1.attention.wq.weight" : tensor<64x64xf32>
            %19 = nn.linear %arg4, %18 : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
            nn.yield %19 : tensor<2x16x64xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
          %6 = nn.reshape %5 : tensor<2x16x64xf32> -> tensor<2x16x8x8xf32>
          %7 = nn.transpose %6 [0, 2, 1, 3] : tensor<2x16x8x8xf32> -> tensor<2x8x16x8xf32>
          %8 = nn.module "layers.1.attention.wk" class "Linear" (%arg3 as "argument_1" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %18 = nn.parameter "layers.1.attention.wk.weight" : tensor<16x64xf32>
            %19 = nn.linear %arg4, %18 : (tensor<2x16x64xf32>, tensor<16x64xf32>) -> tensor<2x16x16xf32>
            nn.yield %19 : tensor<2x16x16xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x16xf32>
          %9 = nn.reshape %8 : tensor<2x16x16xf32> -> tensor<2x16x2x8xf32>
          %10 = nn.transpose %9 [0, 2, 1, 3] : tensor<2x16x2x8xf32> -> tensor<2x2x16x8xf32>
          %11 = nn.module "layers.1.attention.wv" class "Linear" (%arg3 as "argument_1" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %18 = nn.parameter "layers.1.attention.wv.weight" : tensor<16x64xf32>
            %19 = nn.linear %arg4, %18 : (tensor<2x16x64xf32>, tensor<16x64xf32>) -> tensor<2x16x16xf32>
            nn.yield %19 : tensor<2x16x16xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x16xf32>
          %12 = nn.reshape %11 : tensor<2x16x16xf32> -> tensor<2x16x2x8xf32>
          %13 = nn.transpose %12 [0, 2, 1, 3] : tensor<2x16x2x8xf32> -> tensor<2x2x16x8xf32>
          %14 = nn.attention causal %7, %10, %13 scale 0.35355339059327373 : (tensor<2x8x16x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) -> tensor<2x8x16x8xf32>
          %15 = nn.transpose %14 [0, 2, 1, 3] : tensor<2x8x16x8xf32> -> tensor<2x16x8x8xf32>
          %16 = nn.reshape %15 : tensor<2x16x8x8xf32> -> tensor<2x16x64xf32>
          %17 = nn.module "layers.1.attention.wo" class "Linear" (%16 as "input" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %18 = nn.parameter "layers.1.attention.wo.weight" : tensor<64x64xf32>
            %19 = nn.linear %arg4, %18 : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
            nn.yield %19 : tensor<2x16x64xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
          nn.yield %17 : tensor<2x16x64xf32>
        } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
        %4 = nn.add %arg2, %3 : (tensor<2x16x64xf32>, tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
        nn.yield %4 : tensor<2x16x64xf32>
      } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
      nn.yield %2 : tensor<2x16x64xf32>
    } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
    return %0 : tensor<2x16x64xf32>
  }
}
