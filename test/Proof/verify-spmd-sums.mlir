// A program may add the terms of a sum in another order than the reference, and a term may be there several times. A
// gradient is such a sum: the plan places the input of a module apart, and what its uses give is then added first.

// RUN: split-file %s %t && cd %t
// RUN: tp-opt block.mlir --tp-parallelize="plan=plan.yaml train=train.yaml" -o block_ranks.mlir
// RUN: tp-opt block_ranks.mlir --tp-verify-spmd="reference=block.mlir train=train.yaml" -o /dev/null 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not tp-opt ranks.mlir --tp-verify-spmd=reference=model.mlir -o /dev/null 2>&1 | FileCheck %s

// BLOCK: remark: 'main' is proven for 2 ranks

// CHECK-DAG: remark: 'residual_last' is proven for 2 ranks
// CHECK-DAG: remark: 'equal_first' is proven for 2 ranks
// CHECK-DAG: remark: 'in_pairs' is proven for 2 ranks
// CHECK-DAG: remark: 'taken_away_at_once' is proven for 2 ranks
// CHECK-DAG: remark: 'taken_away_apart' is proven for 2 ranks
// CHECK-DAG: remark: 'of_arith' is proven for 2 ranks
// CHECK-NOT: is proven
// CHECK: error: not proven:
// CHECK: note: refuted by execution: on rank 0, element
// CHECK: error: not proven:
// CHECK: note: refuted by execution: on rank 0, element
// CHECK: error: not proven:
// CHECK: note: refuted by execution: on rank 0, element
// CHECK: error: not proven:
// CHECK: note: refuted by execution: on rank 0, element
// CHECK: error: not proven:
// CHECK: note: nor can the programs be tested:

//--- model.mlir
tp.mesh @mesh(tp = 2)
func.func @residual_last(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %a = nn.exp %x : tensor<4x6xf64>
  %b = nn.mul %x, %x : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %0 = nn.add %x, %a : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %1 = nn.add %0, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %2 = nn.add %1, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %2 : tensor<4x6xf64>
}
func.func @equal_first(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %a = nn.exp %x : tensor<4x6xf64>
  %b = nn.mul %x, %x : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %0 = nn.add %x, %a : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %1 = nn.add %0, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %2 = nn.add %1, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %2 : tensor<4x6xf64>
}
func.func @in_pairs(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %a = nn.exp %x : tensor<4x6xf64>
  %b = nn.mul %x, %x : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %0 = nn.add %x, %a : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %1 = nn.add %0, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %2 = nn.add %1, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %2 : tensor<4x6xf64>
}
func.func @taken_away_at_once(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %a = nn.exp %x : tensor<4x6xf64>
  %b = nn.mul %x, %x : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %0 = nn.sub %x, %a : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %1 = nn.sub %0, %a : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %2 = nn.add %1, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %2 : tensor<4x6xf64>
}
func.func @taken_away_apart(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %a = nn.exp %x : tensor<4x6xf64>
  %b = nn.mul %x, %x : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %0 = nn.sub %x, %a : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %1 = nn.sub %0, %a : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %2 = nn.add %1, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %2 : tensor<4x6xf64>
}
func.func @of_arith(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %a = nn.exp %x : tensor<4x6xf64>
  %b = nn.mul %x, %x : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %0 = arith.addf %x, %a : tensor<4x6xf64>
  %1 = arith.addf %0, %b : tensor<4x6xf64>
  return %1 : tensor<4x6xf64>
}
func.func @one_missing(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %a = nn.exp %x : tensor<4x6xf64>
  %b = nn.mul %x, %x : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %0 = nn.add %x, %a : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %1 = nn.add %0, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %2 = nn.add %1, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %2 : tensor<4x6xf64>
}
func.func @one_too_many(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %a = nn.exp %x : tensor<4x6xf64>
  %b = nn.mul %x, %x : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %0 = nn.add %x, %a : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %1 = nn.add %0, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %2 = nn.add %1, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %2 : tensor<4x6xf64>
}
func.func @other_missing(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %a = nn.exp %x : tensor<4x6xf64>
  %b = nn.mul %x, %x : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %0 = nn.add %x, %a : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %1 = nn.add %0, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %2 = nn.add %1, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %2 : tensor<4x6xf64>
}
func.func @wrong_sign(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %a = nn.exp %x : tensor<4x6xf64>
  %b = nn.mul %x, %x : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %0 = nn.sub %x, %a : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %1 = nn.sub %0, %a : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %2 = nn.add %1, %b : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  return %2 : tensor<4x6xf64>
}
func.func @undefined_nan(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %a = nn.exp %x : tensor<4x6xf64>
  %b = nn.mul %x, %x : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
  %0 = arith.addf %x, %a : tensor<4x6xf64>
  %1 = arith.addf %0, %b : tensor<4x6xf64>
  return %1 : tensor<4x6xf64>
}

//--- ranks.mlir
tp.mesh @mesh(tp = 2)
func.func @residual_last(%x: tensor<2x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %a = nn.exp %x : tensor<2x6xf64>
  %b = nn.mul %x, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %0 = nn.add %a, %b : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %1 = nn.add %0, %b : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %2 = nn.add %x, %1 : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %y = tp.all_gather %2 dim 0 over @mesh {tp} : tensor<2x6xf64> -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
func.func @equal_first(%x: tensor<2x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %a = nn.exp %x : tensor<2x6xf64>
  %b = nn.mul %x, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %0 = nn.add %b, %b : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %1 = nn.add %a, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %2 = nn.add %0, %1 : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %y = tp.all_gather %2 dim 0 over @mesh {tp} : tensor<2x6xf64> -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
func.func @in_pairs(%x: tensor<2x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %a = nn.exp %x : tensor<2x6xf64>
  %b = nn.mul %x, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %0 = nn.add %b, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %1 = nn.add %b, %a : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %2 = nn.add %0, %1 : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %y = tp.all_gather %2 dim 0 over @mesh {tp} : tensor<2x6xf64> -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
func.func @taken_away_at_once(%x: tensor<2x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %a = nn.exp %x : tensor<2x6xf64>
  %b = nn.mul %x, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %0 = nn.add %a, %a : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %1 = nn.add %b, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %2 = nn.sub %1, %0 : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %y = tp.all_gather %2 dim 0 over @mesh {tp} : tensor<2x6xf64> -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
func.func @taken_away_apart(%x: tensor<2x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %a = nn.exp %x : tensor<2x6xf64>
  %b = nn.mul %x, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %0 = nn.sub %b, %a : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %1 = nn.sub %a, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %2 = nn.sub %0, %1 : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %y = tp.all_gather %2 dim 0 over @mesh {tp} : tensor<2x6xf64> -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
func.func @of_arith(%x: tensor<2x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %a = nn.exp %x : tensor<2x6xf64>
  %b = nn.mul %x, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %0 = arith.addf %a, %b : tensor<2x6xf64>
  %1 = nn.add %x, %0 : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %y = tp.all_gather %1 dim 0 over @mesh {tp} : tensor<2x6xf64> -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
func.func @one_missing(%x: tensor<2x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %a = nn.exp %x : tensor<2x6xf64>
  %b = nn.mul %x, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %0 = nn.add %a, %b : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %1 = nn.add %x, %0 : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %y = tp.all_gather %1 dim 0 over @mesh {tp} : tensor<2x6xf64> -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
func.func @one_too_many(%x: tensor<2x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %a = nn.exp %x : tensor<2x6xf64>
  %b = nn.mul %x, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %0 = nn.add %a, %b : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %1 = nn.add %0, %b : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %2 = nn.add %1, %b : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %3 = nn.add %x, %2 : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %y = tp.all_gather %3 dim 0 over @mesh {tp} : tensor<2x6xf64> -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
func.func @other_missing(%x: tensor<2x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %a = nn.exp %x : tensor<2x6xf64>
  %b = nn.mul %x, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %0 = nn.add %b, %b : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %1 = nn.add %x, %0 : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %y = tp.all_gather %1 dim 0 over @mesh {tp} : tensor<2x6xf64> -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
func.func @wrong_sign(%x: tensor<2x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %a = nn.exp %x : tensor<2x6xf64>
  %b = nn.mul %x, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %0 = nn.sub %b, %a : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %1 = nn.sub %x, %a : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %2 = nn.sub %1, %0 : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %y = tp.all_gather %2 dim 0 over @mesh {tp} : tensor<2x6xf64> -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}
func.func @undefined_nan(%x: tensor<2x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xf64> {tp.global_type = tensor<4x6xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {}]>}) {
  %a = nn.exp %x : tensor<2x6xf64>
  %b = nn.mul %x, %x : (tensor<2x6xf64>, tensor<2x6xf64>) -> tensor<2x6xf64>
  %0 = arith.addf %a, %b fastmath<nnan> : tensor<2x6xf64>
  %1 = arith.addf %x, %0 fastmath<nnan> : tensor<2x6xf64>
  %y = tp.all_gather %1 dim 0 over @mesh {tp} : tensor<2x6xf64> -> tensor<4x6xf64>
  return %y : tensor<4x6xf64>
}

//--- block.mlir
module {
  func.func @main(%arg0: tensor<4x6x8xf64> {tp.name = "x"}) -> (tensor<4x6x8xf64> {tp.name = "output"}) {
    %0 = nn.module "" class "A" (%arg0 as "x" at 0) {
    ^bb0(%arg1: tensor<4x6x8xf64>):
      %1 = nn.module "i" class "Linear" (%arg1 as "input" at 0) {
      ^bb0(%arg2: tensor<4x6x8xf64>):
        %7 = nn.parameter "i.weight" : tensor<8x8xf64>
        %8 = nn.linear %arg2, %7 : (tensor<4x6x8xf64>, tensor<8x8xf64>) -> tensor<4x6x8xf64>
        %9 = nn.parameter "i.bias" : tensor<8xf64>
        %10 = nn.add %8, %9 : (tensor<4x6x8xf64>, tensor<8xf64>) -> tensor<4x6x8xf64>
        nn.yield %10 : tensor<4x6x8xf64>
      } : (tensor<4x6x8xf64>) -> tensor<4x6x8xf64>
      %2 = nn.module "n" class "N" (%1 as "x" at 0) {
      ^bb0(%arg2: tensor<4x6x8xf64>):
        %7 = nn.mul %arg2, %arg2 : (tensor<4x6x8xf64>, tensor<4x6x8xf64>) -> tensor<4x6x8xf64>
        %8 = nn.reduce mean %7 dims [2] keepdim : tensor<4x6x8xf64> -> tensor<4x6x1xf64>
        %9 = nn.constant dense<9.9999999999999995E-7> : tensor<f64>
        %10 = nn.add %8, %9 : (tensor<4x6x1xf64>, tensor<f64>) -> tensor<4x6x1xf64>
        %11 = nn.rsqrt %10 : tensor<4x6x1xf64>
        %12 = nn.mul %arg2, %11 : (tensor<4x6x8xf64>, tensor<4x6x1xf64>) -> tensor<4x6x8xf64>
        nn.yield %12 : tensor<4x6x8xf64>
      } : (tensor<4x6x8xf64>) -> tensor<4x6x8xf64>
      %3 = nn.module "up" class "Linear" (%2 as "input" at 0) {
      ^bb0(%arg2: tensor<4x6x8xf64>):
        %7 = nn.parameter "up.weight" : tensor<16x8xf64>
        %8 = nn.linear %arg2, %7 : (tensor<4x6x8xf64>, tensor<16x8xf64>) -> tensor<4x6x16xf64>
        %9 = nn.parameter "up.bias" : tensor<16xf64>
        %10 = nn.add %8, %9 : (tensor<4x6x16xf64>, tensor<16xf64>) -> tensor<4x6x16xf64>
        nn.yield %10 : tensor<4x6x16xf64>
      } : (tensor<4x6x8xf64>) -> tensor<4x6x16xf64>
      %4 = nn.silu %3 : tensor<4x6x16xf64>
      %5 = nn.module "down" class "Linear" (%4 as "input" at 0) {
      ^bb0(%arg2: tensor<4x6x16xf64>):
        %7 = nn.parameter "down.weight" : tensor<8x16xf64>
        %8 = nn.linear %arg2, %7 : (tensor<4x6x16xf64>, tensor<8x16xf64>) -> tensor<4x6x8xf64>
        %9 = nn.parameter "down.bias" : tensor<8xf64>
        %10 = nn.add %8, %9 : (tensor<4x6x8xf64>, tensor<8xf64>) -> tensor<4x6x8xf64>
        nn.yield %10 : tensor<4x6x8xf64>
      } : (tensor<4x6x16xf64>) -> tensor<4x6x8xf64>
      %6 = nn.add %1, %5 : (tensor<4x6x8xf64>, tensor<4x6x8xf64>) -> tensor<4x6x8xf64>
      nn.yield %6 : tensor<4x6x8xf64>
    } : (tensor<4x6x8xf64>) -> tensor<4x6x8xf64>
    return %0 : tensor<4x6x8xf64>
  }
}

//--- plan.yaml
mesh: {tp: 2}
plan:
  i: {style: RowwiseParallel, input_layouts: Replicate, output_layouts: Shard(1)}
  n: SequenceParallel
  up: {style: ColwiseParallel, input_layouts: Shard(1)}
  down: {style: RowwiseParallel, output_layouts: Shard(1)}

//--- train.yaml
loss: mse
optimizer: {name: SGD, lr: 1.0e-2}
