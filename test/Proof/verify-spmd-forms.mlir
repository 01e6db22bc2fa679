// A wrong program may compute a form of the reference's sums that the proof builds: the note is about the sum.

// RUN: split-file %s %t && cd %t
// RUN: not tp-opt ranks.mlir --tp-verify-spmd=reference=model.mlir -o /dev/null 2>&1 | FileCheck %s

// CHECK: ranks.mlir:9:{{[0-9]+}}: error: not proven: in the group over {dp},
// CHECK: model.mlir:8:{{[0-9]+}}: note: the reference computes this here
// CHECK: note: refuted by execution: on rank 0, element

//--- model.mlir
tp.mesh @mesh(dp = 2, tp = 2)
func.func @main(%x: tensor<4x8xf64>, %y: tensor<4x8xf64>) -> tensor<4x8xf64> {
  %v = nn.parameter "v" : tensor<8x8xf64>
  %w = nn.parameter "w" : tensor<8x8xf64>
  %0 = nn.linear %y, %v : (tensor<4x8xf64>, tensor<8x8xf64>) -> tensor<4x8xf64>
  %1 = nn.linear %y, %w : (tensor<4x8xf64>, tensor<8x8xf64>) -> tensor<4x8xf64>
  %2 = nn.add %x, %0 : (tensor<4x8xf64>, tensor<4x8xf64>) -> tensor<4x8xf64>
  %3 = nn.add %2, %1 : (tensor<4x8xf64>, tensor<4x8xf64>) -> tensor<4x8xf64>
  return %3 : tensor<4x8xf64>
}

//--- ranks.mlir
tp.mesh @mesh(dp = 2, tp = 2)
func.func @main(%x: tensor<2x8xf64> {tp.global_type = tensor<4x8xf64>, tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>},
                %y: tensor<2x4xf64> {tp.global_type = tensor<4x8xf64>, tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}]>}) -> (tensor<2x8xf64> {tp.global_type = tensor<4x8xf64>, tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) {
  %v = nn.parameter "v" {tp.global_type = tensor<8x8xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<8x4xf64>
  %w = nn.parameter "w" {tp.global_type = tensor<8x8xf64>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<8x4xf64>
  %0 = nn.linear %y, %v : (tensor<2x4xf64>, tensor<8x4xf64>) -> tensor<2x8xf64>
  %1 = nn.linear %y, %w : (tensor<2x4xf64>, tensor<8x4xf64>) -> tensor<2x8xf64>
  %2 = nn.add %0, %1 : (tensor<2x8xf64>, tensor<2x8xf64>) -> tensor<2x8xf64>
  %3 = tp.all_reduce sum %2 over @mesh {dp} : tensor<2x8xf64>
  %4 = nn.add %x, %3 : (tensor<2x8xf64>, tensor<2x8xf64>) -> tensor<2x8xf64>
  return %4 : tensor<2x8xf64>
}
