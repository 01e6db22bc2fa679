// Loops and calls: chains lead through them, what moves in them is counted as often as it does.
// RUN: tp-opt %s --tp-explain --split-input-file | FileCheck %s

// CHECK-LABEL: @loop
// CHECK: argument 1 of the body of scf.for ({{.*}}): 8x16xf32 (Shard(0), Replicate)
// CHECK-NEXT: dp: argument 0 Shard(0) [tp.sharding]
// CHECK: nn.softmax ({{.*}}): 8x16xf32 (Shard(0), Replicate)
// CHECK-NEXT: dp: argument 0 Shard(0) [tp.sharding] -> {{.*}}nn.softmax ({{.*}}) dimension 0
// CHECK: 1. all_gather over {tp}
// CHECK-NEXT: of argument 1, 16x16xf32, (Replicate, Shard(1)) to (Replicate, Replicate)
// CHECK-NEXT: cause: nn.matmul needs operand 1 as (Replicate, Replicate)
// CHECK-NEXT: bytes: 2 KiB (2048 bytes) received by all ranks, 512 bytes by one{{$}}
tp.mesh @mesh(dp = 2, tp = 2)
func.func @loop(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>},
                %w: tensor<16x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (tensor<8x16xf32>) {
    %y = nn.matmul %a, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %z = nn.softmax %y dim 1 : tensor<8x16xf32>
    scf.yield %z : tensor<8x16xf32>
  }
  return %r : tensor<8x16xf32>
}

// -----

// The reduction in the loop runs four times.
// CHECK: total as propagated: 4 KiB (4096 bytes) received by all ranks, 4 collectives
// CHECK-NEXT: total after tp-optimize-collectives: 4 KiB (4096 bytes) received by all ranks, 4 collectives
// CHECK-LABEL: @reduced
// CHECK: bytes: 1 KiB (1024 bytes) received by all ranks, 512 bytes by one, 4 times
tp.mesh @mesh(tp = 2)
func.func @reduced(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (tensor<8x16xf32>) {
    %y = nn.linear %a, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %z = nn.relu %y : tensor<8x16xf32>
    scf.yield %z : tensor<8x16xf32>
  }
  return %r : tensor<8x16xf32>
}

// -----

// Two calls that are placed alike are one function; each of them reduces.
// CHECK: total as propagated: 2 KiB (2048 bytes) received by all ranks, 2 collectives
// CHECK-NEXT: total after tp-optimize-collectives: 2 KiB (2048 bytes) received by all ranks, 2 collectives
// CHECK-LABEL: @calls
// CHECK: func.call ({{.*}}): 8x16xf32 (Replicate)
// CHECK: @layer
// CHECK-NEXT: argument 0: 8x16xf32
// CHECK-NOT: @layer
// CHECK: 1. all_reduce over {tp}
// CHECK-NEXT: of nn.linear
// CHECK-NEXT: cause: tp.redistribute
// CHECK-NEXT: bytes: 1 KiB (1024 bytes) received by all ranks, 512 bytes by one, 2 times
// CHECK-NOT: 2. all_reduce
tp.mesh @mesh(tp = 2)
func.func @calls(%x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = func.call @layer(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = func.call @layer(%0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
}
func.func @layer(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<16x16xf32>
  %0 = nn.linear %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %1 = tp.redistribute %0 to <@mesh, [{}, {}]> : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// -----

// A placement that nothing fixed leads to, and constraints.
// CHECK-LABEL: @constraint
// CHECK: nn.relu ({{.*}}): 8x16xf32 (Shard(1))
// CHECK-NEXT: tp: tp.constraint ({{.*}}) Shard(1) [tp.constraint]
tp.mesh @mesh(tp = 2)
func.func @constraint(%x: tensor<8x16xf32>) -> (tensor<8x16xf32> {tp.open}) {
  %0 = nn.relu %x : tensor<8x16xf32>
  %1 = tp.constraint %0 to <@mesh, [{}, {tp}]> : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}
