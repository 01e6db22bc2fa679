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
            %22 = nn.parameter "layers.0.attention.wq.weight" : tensor<64x64xf32>
            %23 = nn.linear %arg4, %22 : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
            nn.yield %23 : tensor<2x16x64xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
          %6 = nn.module "layers.0.attention.wk" class "Linear" (%arg3 as "x" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %22 = nn.parameter "layers.0.attention.wk.weight" : tensor<16x64xf32>
            %23 = nn.linear %arg4, %22 : (tensor<2x16x64xf32>, tensor<16x64xf32>) -> tensor<2x16x16xf32>
            nn.yield %23 : tensor<2x16x16xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x16xf32>
          %7 = nn.module "layers.0.attention.wv" class "Linear" (%arg3 as "x" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %22 = nn.parameter "layers.0.attention.wv.weight" : tensor<16x64xf32>
            %23 = nn.linear %arg4, %22 : (tensor<2x16x64xf32>, tensor<16x64xf32>) -> tensor<2x16x16xf32>
            nn.yield %23 : tensor<2x16x16xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x16xf32>
          %8 = nn.reshape %5 : tensor<2x16x64xf32> -> tensor<2x16x2x4x8xf32>
          %9 = nn.transpose %8 [0, 2, 3, 1, 4] : tensor<2x16x2x4x8xf32> -> tensor<2x2x4x16x8xf32>
          %10 = nn.reshape %6 : tensor<2x16x16xf32> -> tensor<2x1x16x2x8xf32>
          %11 = nn.transpose %10 [0, 3, 1, 2, 4] : tensor<2x1x16x2x8xf32> -> tensor<2x2x1x16x8xf32>
          %12 = nn.transpose %11 [0, 1, 2, 4, 3] : tensor<2x2x1x16x8xf32> -> tensor<2x2x1x8x16xf32>
          %13 = nn.matmul %9, %12 : (tensor<2x2x4x16x8xf32>, tensor<2x2x1x8x16xf32>) -> tensor<2x2x4x16x16xf32>
          %14 = nn.softmax %13 dim 4 : tensor<2x2x4x16x16xf32>
          %15 = nn.reshape %7 : tensor<2x16x16xf32> -> tensor<2x1x16x2x8xf32>
          %16 = nn.transpose %15 [0, 3, 1, 2, 4] : tensor<2x1x16x2x8xf32> -> tensor<2x2x1x16x8xf32>
          %17 = nn.matmul %14, %16 : (tensor<2x2x4x16x16xf32>, tensor<2x2x1x16x8xf32>) -> tensor<2x2x4x16x8xf32>
          %18 = nn.reshape %17 : tensor<2x2x4x16x8xf32> -> tensor<2x8x16x8xf32>
          %19 = nn.transpose %18 [0, 2, 1, 3] : tensor<2x8x16x8xf32> -> tensor<2x16x8x8xf32>
          %20 = nn.reshape %19 : tensor<2x16x8x8xf32> -> tensor<2x16x64xf32>
          %21 = nn.module "layers.0.attention.wo" class "Linear" (%20 as "input" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %22 = nn.parameter "layers.0.attention.wo.weight" : tensor<64x64xf32>
            %23 = nn.linear %arg4, %22 : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
            nn.yield %23 : tensor<2x16x64xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
          nn.yield %21 : tensor<2x16x64xf32>
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
            %22 = nn.parameter "layers.1.attention.wq.weight" : tensor<64x64xf32>
            %23 = nn.linear %arg4, %22 : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
            nn.yield %23 : tensor<2x16x64xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
          %6 = nn.module "layers.1.attention.wk" class "Linear" (%arg3 as "argument_1" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %22 = nn.parameter "layers.1.attention.wk.weight" : tensor<16x64xf32>
            %23 = nn.linear %arg4, %22 : (tensor<2x16x64xf32>, tensor<16x64xf32>) -> tensor<2x16x16xf32>
            nn.yield %23 : tensor<2x16x16xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x16xf32>
          %7 = nn.module "layers.1.attention.wv" class "Linear" (%arg3 as "argument_1" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %22 = nn.parameter "layers.1.attention.wv.weight" : tensor<16x64xf32>
            %23 = nn.linear %arg4, %22 : (tensor<2x16x64xf32>, tensor<16x64xf32>) -> tensor<2x16x16xf32>
            nn.yield %23 : tensor<2x16x16xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x16xf32>
          %8 = nn.reshape %5 : tensor<2x16x64xf32> -> tensor<2x16x2x4x8xf32>
          %9 = nn.transpose %8 [0, 2, 3, 1, 4] : tensor<2x16x2x4x8xf32> -> tensor<2x2x4x16x8xf32>
          %10 = nn.reshape %6 : tensor<2x16x16xf32> -> tensor<2x1x16x2x8xf32>
          %11 = nn.transpose %10 [0, 3, 1, 2, 4] : tensor<2x1x16x2x8xf32> -> tensor<2x2x1x16x8xf32>
          %12 = nn.transpose %11 [0, 1, 2, 4, 3] : tensor<2x2x1x16x8xf32> -> tensor<2x2x1x8x16xf32>
          %13 = nn.matmul %9, %12 : (tensor<2x2x4x16x8xf32>, tensor<2x2x1x8x16xf32>) -> tensor<2x2x4x16x16xf32>
          %14 = nn.softmax %13 dim 4 : tensor<2x2x4x16x16xf32>
          %15 = nn.reshape %7 : tensor<2x16x16xf32> -> tensor<2x1x16x2x8xf32>
          %16 = nn.transpose %15 [0, 3, 1, 2, 4] : tensor<2x1x16x2x8xf32> -> tensor<2x2x1x16x8xf32>
          %17 = nn.matmul %14, %16 : (tensor<2x2x4x16x16xf32>, tensor<2x2x1x16x8xf32>) -> tensor<2x2x4x16x8xf32>
          %18 = nn.reshape %17 : tensor<2x2x4x16x8xf32> -> tensor<2x8x16x8xf32>
          %19 = nn.transpose %18 [0, 2, 1, 3] : tensor<2x8x16x8xf32> -> tensor<2x16x8x8xf32>
          %20 = nn.reshape %19 : tensor<2x16x8x8xf32> -> tensor<2x16x64xf32>
          %21 = nn.module "layers.1.attention.wo" class "Linear" (%20 as "input" at 0) {
          ^bb0(%arg4: tensor<2x16x64xf32>):
            %22 = nn.parameter "layers.1.attention.wo.weight" : tensor<64x64xf32>
            %23 = nn.linear %arg4, %22 : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
            nn.yield %23 : tensor<2x16x64xf32>
          } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
          nn.yield %21 : tensor<2x16x64xf32>
        } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
        %4 = nn.add %arg2, %3 : (tensor<2x16x64xf32>, tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
        nn.yield %4 : tensor<2x16x64xf32>
      } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
      nn.yield %2 : tensor<2x16x64xf32>
    } : (tensor<2x16x64xf32>) -> tensor<2x16x64xf32>
    return %0 : tensor<2x16x64xf32>
  }
}
