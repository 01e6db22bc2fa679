// Joined collectives are proven as the ones that they stand for; what is cut out at another place, or in another order, isn't.
//
// RUN: tp-opt %s --tp-parallelize=bucket-bytes=100000 -o %t.mlir
// RUN: FileCheck %s --check-prefix=RANKS --input-file=%t.mlir
// RANKS-LABEL: func.func @main
// RANKS: nn.concat
// RANKS-NEXT: tp.all_gather
// RANKS-NOT: tp.all_gather
// RANKS: nn.concat
// RANKS-NEXT: tp.all_reduce
// RANKS-NOT: tp.all_reduce
// RANKS-LABEL: func.func @alone
// RANKS-LABEL: func.func @rearranged
// RANKS: nn.concat
// RANKS-NEXT: tp.all_reduce

// RUN: tp-opt %t.mlir --tp-verify-spmd="reference=%s always-execute" -o /dev/null 2>&1 | FileCheck %s
// CHECK: remark: 'main' is proven for 4 ranks
// CHECK: remark: 'main' is executed for 4 ranks
// CHECK: remark: 'alone' is proven for 4 ranks
// CHECK: remark: 'rearranged' is proven for 4 ranks

// RUN: sed -e '0,/start 16 step 1 : tensor<4x/ s//start 15 step 1 : tensor<4x/' %t.mlir > %t.place.mlir
// RUN: not tp-opt %t.place.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: sed -e 's/nn.transpose \(%[0-9]*\) \[1, 0, 2\] : tensor<4x4x4xf32>/nn.transpose \1 [2, 0, 1] : tensor<4x4x4xf32>/' %t.mlir > %t.order.mlir
// RUN: not tp-opt %t.order.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: not proven
// WRONG: note: refuted by execution: on rank 0, element

tp.mesh @mesh(tp = 4)

func.func @main(%a: tensor<4x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                %b: tensor<8x3xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                %c: tensor<5x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                %d: tensor<64x2xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<16xi64>, tensor<8xi64>, tensor<5x2xf32>, tensor<5xf32>) {
  %0 = tp.redistribute %a to <@mesh, [{}, {}]> : tensor<4x16xf32>
  %1 = tp.redistribute %b to <@mesh, [{}, {}]> : tensor<8x3xf32>
  %2 = nn.argmax %0 dim 0 : tensor<4x16xf32> -> tensor<16xi64>
  %3 = nn.argmax %1 dim 1 : tensor<8x3xf32> -> tensor<8xi64>
  %4 = nn.matmul %c, %d : (tensor<5x64xf32>, tensor<64x2xf32>) -> tensor<5x2xf32>
  %5 = nn.reduce sum %c dims [1] : tensor<5x64xf32> -> tensor<5xf32>
  return %2, %3, %4, %5 : tensor<16xi64>, tensor<8xi64>, tensor<5x2xf32>, tensor<5xf32>
}

func.func @alone(%a: tensor<4x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<4x16xf32> {
  %0 = nn.exp %a : tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// The model itself rearranges what is reduced: these ops aren't the bucket's.
func.func @rearranged(%c: tensor<5x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                      %d: tensor<64x2xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<5x2xf32>, tensor<5xf32>) {
  %0 = nn.matmul %c, %d : (tensor<5x64xf32>, tensor<64x2xf32>) -> tensor<5x2xf32>
  %1 = tp.redistribute %0 to <@mesh, [{}, {}]> : tensor<5x2xf32>
  %2 = nn.transpose %1 [0, 1] : tensor<5x2xf32> -> tensor<5x2xf32>
  %3 = nn.exp %2 : tensor<5x2xf32>
  %4 = nn.reduce sum %c dims [1] : tensor<5x64xf32> -> tensor<5xf32>
  %5 = nn.exp %4 : tensor<5xf32>
  return %3, %5 : tensor<5x2xf32>, tensor<5xf32>
}
