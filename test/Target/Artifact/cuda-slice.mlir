// A GEMM on a device reads a slice, which begins elsewhere on each rank, in another shape.

// REQUIRES: tp-compile
// RUN: tp-compile %s --target=cuda:sm_80 --emit=llvm -o - | FileCheck %s
// CHECK: call i32 @tprt_gemm

tp.mesh @mesh(tp = 2)
func.func @main(%w: tensor<16x8x1x1xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {}, {}]>, tp.global_type = tensor<16x8x1x1xf32>},
                %x: tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}]>, tp.global_type = tensor<4x8xf32>})
    -> (tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<4x16xf32>}) {
  %0 = tp.local_slice %w dim 0 over @mesh {tp} : tensor<16x8x1x1xf32> -> tensor<8x8x1x1xf32>
  %1 = nn.reshape %0 : tensor<8x8x1x1xf32> -> tensor<8x8xf32>
  %2 = nn.linear %x, %1 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
