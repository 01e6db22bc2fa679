// A plan that is found leaves the results of the program whole, also those of a module that is called several times.

// RUN: rm -rf %t && mkdir %t
// RUN: tp-opt %s --tp-auto-plan="mesh=tp=2 machine=cpu file=%t/plan.yaml"
// RUN: tp-opt %s --tp-parallelize=plan=%t/plan.yaml | FileCheck %s
// CHECK: func.func @main(%{{.*}}: tensor<1x256xf32>{{.*}}) -> (tensor<1x2048xf32>

// Each mesh dimension of one rank has one use.
// RUN: tp-opt %s --tp-auto-plan="mesh=dp=1,tp=2 machine=cpu" | FileCheck %s --check-prefix=ONE
// ONE-NOT: dp=1 {{fsdp|tensor}}

func.func @main(%x: tensor<1x256xf32> {tp.name = "x"}) -> (tensor<1x2048xf32> {tp.name = "y"}) {
  %0 = nn.module "a" class "Linear" (%x as "input" at 0) {
  ^bb0(%in: tensor<1x256xf32>):
    %w = nn.parameter "a.weight" : tensor<2048x256xf32>
    %y = nn.linear %in, %w : (tensor<1x256xf32>, tensor<2048x256xf32>) -> tensor<1x2048xf32>
    nn.yield %y : tensor<1x2048xf32>
  } : (tensor<1x256xf32>) -> tensor<1x2048xf32>
  %1 = nn.module "b" class "Linear" (%0 as "input" at 0) {
  ^bb0(%in: tensor<1x2048xf32>):
    %w = nn.parameter "b.weight" : tensor<256x2048xf32>
    %y = nn.linear %in, %w : (tensor<1x2048xf32>, tensor<256x2048xf32>) -> tensor<1x256xf32>
    nn.yield %y : tensor<1x256xf32>
  } : (tensor<1x2048xf32>) -> tensor<1x256xf32>
  %2 = nn.module "a" class "Linear" (%1 as "input" at 0) {
  ^bb0(%in: tensor<1x256xf32>):
    %w = nn.parameter "a.weight" : tensor<2048x256xf32>
    %y = nn.linear %in, %w : (tensor<1x256xf32>, tensor<2048x256xf32>) -> tensor<1x2048xf32>
    nn.yield %y : tensor<1x2048xf32>
  } : (tensor<1x256xf32>) -> tensor<1x2048xf32>
  return %2 : tensor<1x2048xf32>
}
