// RUN: tp-opt %s --split-input-file --convert-nn-to-linalg --verify-diagnostics

func.func @module(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'mlp.act' has to be inlined before lowering ('tp-partition' inlines modules)}}
  %0 = nn.module "mlp.act" class "ReLU" (%x as "input" at 0) {
  ^bb0(%input: tensor<4xf32>):
    %1 = nn.relu %input : tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @dropout(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'nn.dropout' op is for a training step; import the model in evaluation mode, or give a training file}}
  %0 = nn.dropout %x p 0.5 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
