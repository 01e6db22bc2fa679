// A program without nn computes the same with all rewrites of its collectives as without any.
//
// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tp-opt %s --tp-parallelize -o plain.mlir
// RUN: FileCheck %s --check-prefix=PLAIN --input-file=plain.mlir
// RUN: tp-opt %s --tp-parallelize="one-shot=false sequence-parallel bucket-bytes=4096 overlap chunks=2" -o rewritten.mlir
// RUN: FileCheck %s --input-file=rewritten.mlir --implicit-check-not=nn.
// RUN: tp-compile plain.mlir -o plain.tpx
// RUN: tp-compile rewritten.mlir -o rewritten.tpx
// RUN: tp-run plain.tpx --random 1 --output r=r.npy --output s=s.npy --output g=g.npy --output h=h.npy
// RUN: tp-run rewritten.tpx --random 1 --expect r=r.npy --expect s=s.npy --expect g=g.npy --expect h=h.npy
// PLAIN-NOT: tensor.concat
// PLAIN-NOT: tp.all_to_all

tp.mesh @mesh(dp = 2, tp = 2)

// CHECK-DAG: tp.all_reduce sum {{.*}} : tensor<32xf32>
// CHECK-DAG: tp.all_to_all {{.*}} over @mesh {dp, tp}
// CHECK-DAG: tp.reduce_scatter sum {{.*}} : tensor<4x6xf32> -> tensor<2x6xf32>
// CHECK-DAG: linalg.transpose
func.func @main(%x: tensor<8x8xf32> {tp.name = "x", tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                %v: tensor<8x6xf32> {tp.name = "v", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                %w: tensor<8x3xf32> {tp.name = "w", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                %z: tensor<4x4x4x4xf32> {tp.name = "z", tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}, {}, {}]>})
    -> (tensor<8x6xf32> {tp.name = "r", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}, tensor<8x3xf32> {tp.name = "s"},
        tensor<8xf32> {tp.name = "g"},
        tensor<4x4x4x4xf32> {tp.name = "h", tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}, {dp}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x6xf32>
  %0 = linalg.matmul ins(%x, %v : tensor<8x8xf32>, tensor<8x6xf32>) outs(%zero : tensor<8x6xf32>) -> tensor<8x6xf32>
  %none = arith.constant dense<0.0> : tensor<8x3xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<8x8xf32>, tensor<8x3xf32>) outs(%none : tensor<8x3xf32>) -> tensor<8x3xf32>
  %row = arith.constant dense<0.0> : tensor<8xf32>
  %2 = linalg.reduce ins(%x : tensor<8x8xf32>) outs(%row : tensor<8xf32>) dimensions = [1]
    (%in: f32, %sum: f32) {
      %4 = arith.addf %in, %sum : f32
      linalg.yield %4 : f32
    }
  %3 = math.exp %z : tensor<4x4x4x4xf32>
  return %0, %1, %2, %3 : tensor<8x6xf32>, tensor<8x3xf32>, tensor<8xf32>, tensor<4x4x4x4xf32>
}
