// Replicated values are cut by segments, without an exchange. Other segments, groups and dimensions aren't proven.
//
// RUN: tp-opt %s --tp-parallelize -o %t.mlir
// RUN: FileCheck %s --check-prefix=RANKS --input-file=%t.mlir
// RANKS-NOT: tp.exchange
// RANKS-COUNT-2: tp.local_slice {{.*}} over @mesh {tp | 8, 8} : tensor<16x4xf32> -> tensor<8x4xf32>
// RANKS-NOT: tp.exchange
// RUN: tp-opt %t.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROVEN
// PROVEN: is proven
// PROVEN-NOT: executed

// RUN: %python %S/Inputs/mutants.py %t.mlir reference=%s \
// RUN:   "over @mesh {tp \| 8, 8}" "over @mesh {tp}" "over @mesh {tp \| 8, 8}" "over @mesh {tp | 6, 10}" "over @mesh {tp \| 8, 8}" "over @mesh {tp | 4, 4, 4, 4}" "over @mesh {tp \| 8, 8}" "over @mesh {dp | 8, 8}" | FileCheck %s
// CHECK-NOT: proven with
// CHECK: {{[0-9]+}} mutants aren't proven

tp.mesh @mesh(dp = 2, tp = 2)

func.func @main(%x: tensor<2x8x4xf32> {tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>},
    %bias: tensor<16x4xf32> {tp.name = "bias"}, %scale: tensor<16x4xf32> {tp.name = "scale"})
    -> (tensor<2x8x4xf32> {tp.name = "y", tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>}) {
  %0 = nn.reshape %x : tensor<2x8x4xf32> -> tensor<16x4xf32>
  %1 = nn.add %0, %bias : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  %2 = nn.mul %1, %scale : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<16x4xf32>
  %3 = nn.reshape %2 : tensor<16x4xf32> -> tensor<2x8x4xf32>
  return %3 : tensor<2x8x4xf32>
}
