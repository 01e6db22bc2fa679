// One input shows what a polynomial of integers is, but not what a quotient, a shift or an extension is: negative numbers, and
// such of many bits, are tried as well.
//
// RUN: tp-opt %s --tp-parallelize -o %t.mlir
// RUN: tp-opt %t.mlir --tp-verify-spmd="reference=%s always-execute" -o /dev/null 2>&1 | FileCheck %s
// CHECK: remark: 'main' is proven for 2 ranks

// DEFINE: %{verify} = not tp-opt %t.bad.mlir --tp-verify-spmd="reference=%s accept-tested" -o /dev/null 2>&1 | FileCheck %s --check-prefix

// RUN: sed -e 's/arith.divsi/arith.divui/' %t.mlir > %t.bad.mlir
// RUN: %{verify} QUOTIENT
// QUOTIENT: note: refuted by execution: {{.*}} of result 0
// RUN: sed -e 's/arith.shrsi/arith.shrui/' %t.mlir > %t.bad.mlir
// RUN: %{verify} SHIFT
// SHIFT: note: refuted by execution: {{.*}} of result 1
// RUN: sed -e 's/arith.extsi/arith.extui/' %t.mlir > %t.bad.mlir
// RUN: %{verify} EXTENDED
// EXTENDED: note: refuted by execution: {{.*}} of result 2
// RUN: sed -e 's/arith.sitofp/arith.uitofp/' %t.mlir > %t.bad.mlir
// RUN: %{verify} FLOAT
// FLOAT: note: refuted by execution: {{.*}} of result 3
// RUN: sed -e 's/\(.*\) = nn.cast \(.*\) : tensor<4x6xi64> -> tensor<4x6xf32>/%less = nn.cast \2 : tensor<4x6xi64> -> tensor<4x6xi32>\n\1 = nn.cast %less : tensor<4x6xi32> -> tensor<4x6xf32>/' %t.mlir > %t.bad.mlir
// RUN: %{verify} WIDTH
// WIDTH: note: refuted by execution:

// Flags against overflow and lost bits must be the model's: no input shows a difference.
// RUN: sed -e 's/arith.addi\(.*\) : /arith.addi\1 overflow<nsw> : /' %t.mlir > %t.bad.mlir
// RUN: %{verify} OVERFLOW
// OVERFLOW: note: nor can the programs be tested: 'arith.addi' has no meaning that could be executed
// RUN: sed -e 's/arith.shrsi \(.*\) : /arith.shrsi \1 exact : /' %t.mlir > %t.bad.mlir
// RUN: %{verify} EXACT
// EXACT: note: nor can the programs be tested: 'arith.shrsi' has no meaning that could be executed
// RUN: sed -e 's/arith.mulf\(.*\) : /arith.mulf\1 fastmath<nnan> : /' %t.mlir > %t.bad.mlir
// RUN: %{verify} FLAG
// RUN: sed -e 's/arith.mulf\(.*\) : /arith.mulf\1 fastmath<ninf> : /' %t.mlir > %t.bad.mlir
// RUN: %{verify} FLAG
// FLAG: note: nor can the programs be tested: 'arith.mulf' has no meaning that could be executed

tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4x6xi32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, %y: tensor<4x6xi32>, %z: tensor<4x6xi64>)
    -> (tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi64>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xi32>, tensor<4x6xf32>) {
  %0 = arith.divsi %x, %y : tensor<4x6xi32>
  %1 = arith.shrsi %x, %y : tensor<4x6xi32>
  %2 = arith.extsi %x : tensor<4x6xi32> to tensor<4x6xi64>
  %3 = arith.sitofp %x : tensor<4x6xi32> to tensor<4x6xf32>
  %4 = arith.addi %z, %2 : tensor<4x6xi64>
  %5 = nn.cast %4 : tensor<4x6xi64> -> tensor<4x6xf32>
  %6 = arith.muli %x, %y : tensor<4x6xi32>
  %7 = arith.mulf %3, %3 : tensor<4x6xf32>
  return %0, %1, %2, %3, %5, %6, %7 : tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi64>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xi32>, tensor<4x6xf32>
}
