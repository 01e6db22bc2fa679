// A norm over a split dimension moves only its statistics: there is no warning.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-apply-plan="plan=%t/plan.yaml strict=true" -o /dev/null 2>&1 | count 0
// RUN: tp-opt %t/model.mlir --tp-parallelize="plan=%t/plan.yaml strict=true latency-bytes=0" | FileCheck %s

// CHECK-NOT: tp.all_gather
// CHECK: tp.all_reduce sum {{.*}} : tensor<2x8x1xf32>
// CHECK-NOT: tp.all_gather
// CHECK: tp.all_reduce sum {{.*}} : tensor<2x8x16xf32>

//--- plan.yaml
mesh: {tp: 2}
plan:
  wq: ColwiseParallel
  wo: RowwiseParallel
//--- model.mlir
func.func @main(%x: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %r = nn.module "" class "Attention" (%x as "x" at 0) {
  ^bb0(%a: tensor<2x8x16xf32>):
    %q = nn.module "wq" class "Linear" (%a as "input" at 0) {
    ^bb0(%input: tensor<2x8x16xf32>):
      %w = nn.parameter "wq.weight" : tensor<32x16xf32>
      %y = nn.linear %input, %w : (tensor<2x8x16xf32>, tensor<32x16xf32>) -> tensor<2x8x32xf32>
      nn.yield %y : tensor<2x8x32xf32>
    } : (tensor<2x8x16xf32>) -> tensor<2x8x32xf32>
    %n = nn.module "q_norm" class "RMSNorm" (%q as "input" at 0) {
    ^bb0(%input: tensor<2x8x32xf32>):
      %w = nn.parameter "q_norm.weight" : tensor<32xf32>
      %y = nn.rms_norm %input weight %w over 1 eps 1.0e-05 : (tensor<2x8x32xf32>, tensor<32xf32>) -> tensor<2x8x32xf32>
      nn.yield %y : tensor<2x8x32xf32>
    } : (tensor<2x8x32xf32>) -> tensor<2x8x32xf32>
    %o = nn.module "wo" class "Linear" (%n as "input" at 0) {
    ^bb0(%input: tensor<2x8x32xf32>):
      %w = nn.parameter "wo.weight" : tensor<16x32xf32>
      %y = nn.linear %input, %w : (tensor<2x8x32xf32>, tensor<16x32xf32>) -> tensor<2x8x16xf32>
      nn.yield %y : tensor<2x8x16xf32>
    } : (tensor<2x8x32xf32>) -> tensor<2x8x16xf32>
    nn.yield %o : tensor<2x8x16xf32>
  } : (tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %r : tensor<2x8x16xf32>
}
