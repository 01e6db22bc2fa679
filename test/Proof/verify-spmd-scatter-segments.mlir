// Rows that are scattered to a split sequence, of which a rank has a block for each example, and to parts of other sizes.
// RUN: split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-propagate --tp-partition -o ranks.mlir
// RUN: tp-opt ranks.mlir --tp-verify-spmd="reference=model.mlir always-execute" -o out.mlir 2>&1 | FileCheck %s
// CHECK: remark: 'sequence' is proven for 2 ranks
// CHECK: remark: 'packed' is proven for 2 ranks

// One place is wrong.
// RUN: sed '0,/dense<2> : tensor<i64>/s//dense<1> : tensor<i64>/' ranks.mlir > wrong.mlir
// RUN: not tp-opt wrong.mlir --tp-verify-spmd="reference=model.mlir accept-tested" -o out.mlir 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: not proven

//--- model.mlir
tp.mesh @mesh(cp = 2)
func.func @sequence(%i: tensor<2x3xi64>, %r: tensor<2x3x2xf32>) -> (tensor<2x4x2xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {cp}, {}]>}) {
  %0 = nn.scatter_add_rows %i, %r : (tensor<2x3xi64>, tensor<2x3x2xf32>) -> tensor<8x2xf32>
  %1 = nn.reshape %0 : tensor<8x2xf32> -> tensor<2x4x2xf32>
  return %1 : tensor<2x4x2xf32>
}
func.func @packed(%i: tensor<6xi32>, %r: tensor<6x2xf32>) -> (tensor<8x2xf32> {tp.sharding = #tp.sharding<@mesh, [{cp | 2, 6}, {}]>}) {
  %0 = nn.scatter_add_rows %i, %r : (tensor<6xi32>, tensor<6x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}
