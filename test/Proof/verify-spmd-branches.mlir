// Programs that depend on data are executed on several inputs, until each branch has run: a fault is found in either. A sum that is
// a maximum is one in the branch that is taken, or in the other one, or in what a loop of unknown length does.
//
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-parallelize -o %t/ranks.mlir
// RUN: tp-opt %t/ranks.mlir --tp-verify-spmd="reference=%t/model.mlir always-execute" -o /dev/null 2>&1 | FileCheck %s
// CHECK: remark: 'branch' is proven for 2 ranks
// CHECK: remark: 'branch' is executed for 2 ranks on {{[0-9]+}} inputs
// CHECK: remark: 'repeat' is proven for 2 ranks
// CHECK: remark: 'repeat' is executed for 2 ranks on {{[0-9]+}} inputs
// CHECK: remark: 'constant' is executed for 2 ranks on {{[0-9]+}} inputs

// RUN: sed -e '0,/all_reduce sum/ s//all_reduce max/' %t/ranks.mlir > %t/then.mlir
// RUN: not tp-opt %t/then.mlir --tp-verify-spmd=reference=%t/model.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: sed -e '/else/,/return/ s/all_reduce sum/all_reduce max/' %t/ranks.mlir > %t/else.mlir
// RUN: not tp-opt %t/else.mlir --tp-verify-spmd=reference=%t/model.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: sed -e '/scf.while/,/return/ s/all_reduce sum/all_reduce max/' %t/ranks.mlir > %t/while.mlir
// RUN: not tp-opt %t/while.mlir --tp-verify-spmd=reference=%t/model.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: not proven: {{.*}}its parts don't combine by max
// WRONG: note: refuted by execution: on rank 0, element [0, {{[0-9]}}] of result 0 isn't

// A branch that no input runs isn't accepted, unless constants rule it out.
// RUN: tp-opt %t/never.mlir --tp-parallelize -o %t/ranks.mlir
// RUN: sed -e 's/all_reduce sum/all_reduce max/' %t/ranks.mlir > %t/bad.mlir
// RUN: not tp-opt %t/bad.mlir --tp-verify-spmd=reference=%t/never.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=NEVER
// NEVER: error: not proven
// NEVER: note: nor can the programs be tested: no inputs are found that run all of its regions
// NEVER-NEXT: scf.if %{{.*}} -> (tensor<4x3xf32>)

// A slice that isn't what its type says, on one of the ranks that share the program.
// RUN: not tp-opt %t/slice.mlir --tp-verify-spmd=reference=%t/whole.mlir -o /dev/null 2>&1 | FileCheck %s --check-prefix=SLICE
// SLICE: error: not proven
// SLICE: note: nor can the programs be tested: the slice of rank 1 has 2 elements along dimension 0, its type says 3

//--- model.mlir
tp.mesh @mesh(tp = 2)

func.func @branch(%p: tensor<1xi64>, %x: tensor<4x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                  %w: tensor<64x3xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<4x3xf32> {
  %zero = arith.constant 0 : index
  %bound = arith.constant 2 : i64
  %first = tensor.extract %p[%zero] : tensor<1xi64>
  %condition = arith.cmpi sgt, %first, %bound : i64
  %r = scf.if %condition -> (tensor<4x3xf32>) {
    %0 = nn.matmul %x, %w : (tensor<4x64xf32>, tensor<64x3xf32>) -> tensor<4x3xf32>
    %1 = nn.exp %0 : tensor<4x3xf32>
    scf.yield %1 : tensor<4x3xf32>
  } else {
    %0 = nn.exp %x : tensor<4x64xf32>
    %1 = nn.matmul %0, %w : (tensor<4x64xf32>, tensor<64x3xf32>) -> tensor<4x3xf32>
    %2 = nn.exp %1 : tensor<4x3xf32>
    scf.yield %2 : tensor<4x3xf32>
  }
  return %r : tensor<4x3xf32>
}

func.func @repeat(%p: tensor<1xi64>, %x: tensor<4x6xf32>,
                  %up: tensor<6x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                  %down: tensor<64x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<4x6xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : i64
  %end = arith.constant 3 : i64
  %first = tensor.extract %p[%zero] : tensor<1xi64>
  %r:2 = scf.while (%i = %first, %h = %x) : (i64, tensor<4x6xf32>) -> (i64, tensor<4x6xf32>) {
    %c = arith.cmpi slt, %i, %end : i64
    scf.condition(%c) %i, %h : i64, tensor<4x6xf32>
  } do {
  ^bb0(%i: i64, %h: tensor<4x6xf32>):
    %0 = nn.matmul %h, %up : (tensor<4x6xf32>, tensor<6x64xf32>) -> tensor<4x64xf32>
    %1 = nn.matmul %0, %down {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>} : (tensor<4x64xf32>, tensor<64x6xf32>) -> tensor<4x6xf32>
    %2 = nn.exp %1 : tensor<4x6xf32>
    %n = arith.addi %i, %one : i64
    scf.yield %n, %2 : i64, tensor<4x6xf32>
  }
  return %r#1 : tensor<4x6xf32>
}

func.func @constant(%x: tensor<4xf32>) -> tensor<4xf32> {
  %true = arith.constant true
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = scf.if %true -> (tensor<4xf32>) {
    %1 = nn.exp %x : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    %1 = nn.sin %x : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  %2 = scf.for %i = %one to %zero step %one iter_args(%h = %0) -> (tensor<4xf32>) {
    %3 = nn.cos %h : tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}

//--- never.mlir
tp.mesh @mesh(tp = 2)

func.func @never(%p: tensor<1xi64>, %x: tensor<4x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                 %w: tensor<64x3xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> tensor<4x3xf32> {
  %zero = arith.constant 0 : index
  %first = tensor.extract %p[%zero] : tensor<1xi64>
  %same = arith.subi %first, %first : i64
  %odd = arith.constant 77 : i64
  %condition = arith.cmpi eq, %same, %odd : i64
  %e = nn.constant dense<2.0> : tensor<4x3xf32>
  %r = scf.if %condition -> (tensor<4x3xf32>) {
    %y = nn.matmul %x, %w : (tensor<4x64xf32>, tensor<64x3xf32>) -> tensor<4x3xf32>
    %0 = nn.sin %y : tensor<4x3xf32>
    scf.yield %0 : tensor<4x3xf32>
  } else {
    scf.yield %e : tensor<4x3xf32>
  }
  return %r : tensor<4x3xf32>
}

//--- whole.mlir
func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
  %0 = nn.exp %x : tensor<5xf32>
  return %0 : tensor<5xf32>
}

//--- slice.mlir
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<5xf32> {tp.sharding = #tp.sharding<@mesh, [{}]>, tp.global_type = tensor<5xf32>})
    -> (tensor<5xf32> {tp.sharding = #tp.sharding<@mesh, [{}]>, tp.global_type = tensor<5xf32>}) {
  %0 = tp.local_slice %x dim 0 over @mesh {tp} : tensor<5xf32> -> tensor<3xf32>
  %1 = nn.exp %0 : tensor<3xf32>
  %2 = tp.all_gather %1 dim 0 over @mesh {tp} {bytes = 12 : i64} : tensor<3xf32> -> tensor<5xf32>
  return %2 : tensor<5xf32>
}
