// Data moves in other shapes beside values that are split by parts of the same mesh dimension which don't nest: of 6 ranks, a:(1)3 and
// a:(1)2. Each movement is followed in the parts that it needs.
//
// RUN: tp-opt %s --tp-parallelize=one-shot=false -o %t.mlir
// RUN: FileCheck %s --check-prefix=RANKS --input-file=%t.mlir
// RANKS: tp.all_to_all {{.*}} over @mesh {a} {{.*}} : tensor<6x1x1x4xf32> -> tensor<1x1x6x4xf32>
// RUN: tp-opt %t.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s
// CHECK: 'main' is proven for 12 ranks

tp.mesh @mesh(a = 6, b = 2)

func.func @main(%x: tensor<12x24xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {a}]>},
                %thirds: tensor<6xf32> {tp.sharding = #tp.sharding<@mesh, [{a:(1)3}]>},
                %halves: tensor<6xf32> {tp.sharding = #tp.sharding<@mesh, [{a:(1)2}]>})
    -> (tensor<12x24xf32> {tp.sharding = #tp.sharding<@mesh, [{a, b}, {}]>}, tensor<6xf32>, tensor<6xf32>) {
  return %x, %thirds, %halves : tensor<12x24xf32>, tensor<6xf32>, tensor<6xf32>
}
