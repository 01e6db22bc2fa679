// Dropout draws random numbers: one in place of two, of the same value, is another program, and so are two in place of one.
//
// RUN: tp-opt %s --tp-parallelize -o %t.mlir
// RUN: tp-opt %t.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s
// CHECK: remark: 'twice' is proven for 2 ranks
// CHECK: remark: 'once' is proven for 2 ranks
// CHECK: remark: 'uneven' is proven for 2 ranks

// DEFINE: %{verify} = not tp-opt %t.bad.mlir --tp-verify-spmd="reference=%s accept-tested" -o /dev/null 2>&1 | FileCheck %s

// CSE leaves them, and removes one that nobody uses.
// RUN: tp-opt %t.mlir --cse --canonicalize -o %t.same.mlir
// RUN: tp-opt %t.same.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s
// RUN: sed -e '/func.func @once/,/return/ s/\(.*\)%0 = nn.dropout\(.*\)/&\n%unused = nn.dropout\2/' %t.mlir | tp-opt --cse | FileCheck %s --check-prefix=CSE
// CSE: func.func @twice
// CSE-COUNT-2: nn.dropout
// CSE: func.func @once
// CSE-COUNT-1: nn.dropout
// CSE-NOT: nn.dropout
// CSE: func.func @uneven(

// RUN: sed -e '/func.func @twice/,/return/ s/nn.add %0, %1 /nn.add %0, %0 /' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=ONE
// ONE: error: not proven: 
// ONE: nn.add

// RUN: sed -e '/func.func @once/,/return/ s/nn.add %0, %0 /nn.add %0, %again /; /func.func @once/,/return/ s/\(.*\)%0 = nn.dropout\(.*\)/&\n%again = nn.dropout\2/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=TWO
// TWO: error: not proven: 
// TWO: nn.dropout

// In the program of another rank.
// RUN: sed -e '/func.func @uneven_0/,/return/ s/nn.sub %0, %1 /nn.sub %0, %0 /' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=OTHER
// OTHER: error: not proven, for ranks 1: 

tp.mesh @mesh(tp = 2)

func.func @twice(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> (tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %0 = nn.dropout %x p 0.5 : tensor<4x6xf32>
  %1 = nn.dropout %x p 0.5 : tensor<4x6xf32>
  %2 = nn.add %0, %1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}

func.func @once(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> (tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %0 = nn.dropout %x p 0.5 : tensor<4x6xf32>
  %1 = nn.add %0, %0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

func.func @uneven(%x: tensor<4x5xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> (tensor<4x5xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %0 = nn.dropout %x p 0.5 : tensor<4x5xf32>
  %1 = nn.dropout %x p 0.5 : tensor<4x5xf32>
  %2 = nn.sub %0, %1 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  return %2 : tensor<4x5xf32>
}
