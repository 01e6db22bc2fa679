// Largest and smallest elements that are picked by their index, whose gradient is that of one element each: without a gradient
// they are an extremum, so that the dimension can be split.

// RUN: split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-parallelize="plan=plan.yaml" -o ranks.mlir
// RUN: FileCheck %s --check-prefix=RANKS --implicit-check-not all_gather --implicit-check-not argmax < ranks.mlir
// RUN: tp-opt ranks.mlir --tp-verify-spmd="reference=model.mlir" -o /dev/null 2>&1 | FileCheck %s
// RUN: tp-opt model.mlir --tp-parallelize="plan=plan.yaml train=train.yaml" -o ranks.mlir
// RUN: tp-opt ranks.mlir --tp-verify-spmd="reference=model.mlir train=train.yaml" -o /dev/null 2>&1 | FileCheck %s
// RUN: tp-opt model.mlir --tp-grad | FileCheck %s --check-prefix=FORMS --implicit-check-not nn.gather
// RUN: tp-opt model.mlir --nn-drop-gradient-forms | FileCheck %s --check-prefix=FORMS --implicit-check-not nn.gather

// CHECK: remark: 'main' is proven for 2 ranks

// RANKS-DAG: nn.reduce max %{{.+}} dims [1] keepdim : tensor<4096x30xf32>
// RANKS-DAG: nn.reduce min %{{.+}} dims [1] keepdim : tensor<4096x30xf32>
// RANKS-DAG: tp.all_reduce max
// RANKS-DAG: tp.all_reduce min

// FORMS: nn.reduce max
// FORMS: nn.reduce min

//--- model.mlir
func.func @main(%x: tensor<4096x8xf32> {tp.name = "x"}) -> tensor<f32> {
  %w = nn.parameter "w" : tensor<60x8xf32>
  %y = nn.linear %x, %w : (tensor<4096x8xf32>, tensor<60x8xf32>) -> tensor<4096x60xf32>
  %i = nn.argmax %y dim 1 keepdim : tensor<4096x60xf32> -> tensor<4096x1xi64>
  %largest = nn.gather %y, %i dim 1 : (tensor<4096x60xf32>, tensor<4096x1xi64>) -> tensor<4096x1xf32>
  %n = nn.neg %y : tensor<4096x60xf32>
  %j = nn.argmax %n dim 1 keepdim : tensor<4096x60xf32> -> tensor<4096x1xi64>
  %smallest = nn.gather %y, %j dim 1 : (tensor<4096x60xf32>, tensor<4096x1xi64>) -> tensor<4096x1xf32>
  %d = nn.mul %largest, %smallest : (tensor<4096x1xf32>, tensor<4096x1xf32>) -> tensor<4096x1xf32>
  %l = nn.reduce sum %d dims [0, 1] : tensor<4096x1xf32> -> tensor<f32>
  return %l : tensor<f32>
}

//--- plan.yaml
mesh: {tp: 2}
plan: {w: Shard(0)}

//--- train.yaml
loss: output
optimizer: SGD
