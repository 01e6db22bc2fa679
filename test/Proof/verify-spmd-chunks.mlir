// Contractions in chunks are proven as the whole ones; a chunk of other rows isn't.
//
// RUN: tp-opt %s --tp-parallelize="overlap chunks=2" -o %t.mlir
// RUN: FileCheck %s --check-prefix=RANKS --input-file=%t.mlir
// RANKS-COUNT-2: tp.all_gather
// RANKS-NOT: tp.all_gather
// RANKS-COUNT-2: tp.reduce_scatter
// RANKS-NOT: tp.reduce_scatter

// RUN: tp-opt %t.mlir --tp-verify-spmd="reference=%s always-execute" -o /dev/null 2>&1 | FileCheck %s
// CHECK: remark: 'main' is proven for 2 ranks
// CHECK: remark: 'main' is executed for 2 ranks

// The same rows twice, of the gathered value and of the scattered one; chunks put together the other way round.
// RUN: sed -e 's/dim 0 start 2 step 1 : tensor<4x16xf32>/dim 0 start 0 step 1 : tensor<4x16xf32>/' %t.mlir > %t.gather.mlir
// RUN: not tp-opt %t.gather.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: sed -e 's/dim 1 start 2 step 1 : tensor<2x4x32xf32>/dim 1 start 1 step 1 : tensor<2x4x32xf32>/' %t.mlir > %t.scatter.mlir
// RUN: not tp-opt %t.scatter.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: sed -e 's/nn.concat \(%[0-9]*\), \(%[0-9]*\) dim 0/nn.concat \2, \1 dim 0/' %t.mlir > %t.order.mlir
// RUN: not tp-opt %t.order.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: not proven
// WRONG: note: refuted by execution: on rank 0, element

tp.mesh @mesh(tp = 2)

func.func @main(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                %up: tensor<64x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                %down: tensor<6x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %0 = nn.linear %x, %up : (tensor<8x16xf32>, tensor<64x16xf32>) -> tensor<8x64xf32>
  %1 = nn.relu %0 : tensor<8x64xf32>
  %2 = nn.linear %1, %down : (tensor<8x64xf32>, tensor<6x64xf32>) -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}
