// A cast to a narrower float commutes with a sum. One that is added, or that comes on the other side of a product or function,
// isn't accepted: it rounds what the reference doesn't.
//
// RUN: tp-opt %s --tp-parallelize -o %t.mlir
// RUN: tp-opt %t.mlir --tp-verify-spmd="reference=%s always-execute" -o /dev/null 2>&1 | FileCheck %s
// CHECK: remark: 'main' is proven for 2 ranks
// CHECK: remark: 'main' is executed for 2 ranks

// DEFINE: %{verify} = not tp-opt %t.bad.mlir --tp-verify-spmd="reference=%s accept-tested" -o /dev/null 2>&1 | FileCheck %s

// RUN: sed -e 's/\(.*\) = nn.tanh %\([0-9]*\) : tensor<4x3xf32>/%less = nn.cast %\2 : tensor<4x3xf32> -> tensor<4x3xbf16>\n%more = nn.cast %less : tensor<4x3xbf16> -> tensor<4x3xf32>\n\1 = nn.tanh %more : tensor<4x3xf32>/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=WRONG
// WRONG: error: not proven
// WRONG: note: nor can the programs be tested: they agree on {{[0-9]+}} inputs, but compare, round or compute other numbers


tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, tensor<4x6xbf16> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %0 = nn.mul %x, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = nn.tanh %0 : tensor<4x6xf32>
  %2 = nn.cast %0 : tensor<4x6xf32> -> tensor<4x6xbf16>
  %3 = nn.mul %2, %2 : (tensor<4x6xbf16>, tensor<4x6xbf16>) -> tensor<4x6xbf16>
  return %1, %3 : tensor<4x6xf32>, tensor<4x6xbf16>
}
