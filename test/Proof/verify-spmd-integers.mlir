// Integers without signs are executed too: the cast between them keeps their bits.
//
// RUN: tp-opt %s --tp-parallelize -o %t.mlir
// RUN: tp-opt %t.mlir --tp-verify-spmd="reference=%s always-execute" -o /dev/null 2>&1 | FileCheck %s
// CHECK-NOT: warning:
// CHECK: remark: 'main' is proven for 2 ranks
// CHECK: remark: 'main' is executed for 2 ranks

tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4x6xi8> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}, %f: tensor<4x6xf32>)
    -> (tensor<4x6xui8>, tensor<4x6xf32>, tensor<4x6xui8>) {
  %0 = nn.cast %x : tensor<4x6xi8> -> tensor<4x6xui8>
  %1 = nn.cast %0 : tensor<4x6xui8> -> tensor<4x6xf32>
  %2 = nn.cast %f : tensor<4x6xf32> -> tensor<4x6xui8>
  return %0, %1, %2 : tensor<4x6xui8>, tensor<4x6xf32>, tensor<4x6xui8>
}
