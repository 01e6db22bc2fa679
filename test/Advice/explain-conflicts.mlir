// Programs that have their mesh and placements already: who wants what, who wins, and one remark each.
// RUN: tp-opt %s --tp-explain --split-input-file --verify-diagnostics --remarks-filter=tp-explain --remark-format=emitRemark | FileCheck %s

// CHECK-LABEL: @arguments
// CHECK: nn.add ({{.*}}): 8x16xf32 (Shard(0))
// CHECK-NEXT: tp: argument 0 'a' Shard(0) [tp.sharding] -> nn.add ({{.*}}) dimension 0
// CHECK: 1. all_to_all over {tp}
// CHECK-NEXT: of argument 1 'b', 8x16xf32, (Shard(1)) to (Shard(0))
// CHECK-NEXT: cause: nn.add needs operand 1 as (Shard(0))
// CHECK-NEXT: bytes: 256 bytes received by all ranks, 128 bytes by one
// CHECK-NEXT: over tp: nn.add is split along dimension 0, not along dimension 1 of this operand
// CHECK-NEXT: lost: Shard(1), from argument 1 'b' Shard(1) [tp.sharding]
// CHECK-NEXT: won:  Shard(0), from argument 0 'a' Shard(0) [tp.sharding] -> nn.add
// CHECK-NEXT: otherwise: nn.add split along tp: dimension 1, (Shard(1)), (Shard(1)) -> (Shard(1))
// CHECK-NEXT: +256 bytes, +1 collective
// CHECK: edit: replace argument 1 of @arguments by tp.sharding = <@mesh, [{}, {}]>
// CHECK-NEXT: -256 bytes, -1 collective; argument 1 becomes (Replicate) instead of (Shard(1))
tp.mesh @mesh(tp = 2)
func.func @arguments(%a: tensor<8x16xf32> {tp.name = "a", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                     %b: tensor<8x16xf32> {tp.name = "b", tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  // expected-remark@+1 {{[Analysis] all_to_all | Category:tp-explain | Function=arguments | Bytes=256, Collectives="all_to_all over {tp}", Conflict="tp: Shard(1) lost to Shard(0), nn.add is split along dimension 0, not along dimension 1 of this operand", Edit="replace argument 1 of @arguments by tp.sharding = <@mesh, [{}, {}]>: -256 bytes, -1 collective; argument 1 becomes (Replicate) instead of (Shard(1))", FQN=, Reason="nn.add needs operand 1 as (Shard(0))", Times=1}}
  %0 = nn.add %a, %b : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// A redistribution that isn't needed is the first to go, before one that changes what callers see.
// CHECK-LABEL: @unneeded
// CHECK: 1. all_gather over {tp}
// CHECK: cause: tp.redistribute
// CHECK: over tp: the requested placement takes precedence
// CHECK: lost: Shard(1), from argument 0 Shard(1) [tp.sharding] -> nn.gelu ({{.*}}) dimension 1
// CHECK: won:  Replicate, from tp.redistribute ({{.*}}) Replicate [tp.redistribute]
// CHECK: edit: remove tp.redistribute at {{.*}}
// CHECK-NEXT: -512 bytes, -1 collective{{$}}
tp.mesh @mesh(tp = 2)
func.func @unneeded(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %0 = nn.gelu %x : tensor<8x16xf32>
  // expected-remark@+1 {{[Analysis] all_gather}}
  %1 = tp.redistribute %0 to <@mesh, [{}, {}]> : tensor<8x16xf32>
  %2 = nn.relu %1 : tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// -----

// An op that could run as its operand comes, but is cheaper whole.
// CHECK-LABEL: @whole
// CHECK: over tp: nn.softmax is replicated over tp, not split along dimension 1 of this operand
// CHECK: otherwise: nn.softmax split along tp: dimension 1, (Shard(1)) -> (Shard(1))
tp.mesh @mesh(tp = 2)
func.func @whole(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x16xf32> {
  // expected-remark@+1 {{[Analysis] all_gather}}
  %0 = nn.softmax %x dim 1 : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// A sum is taken where an op isn't linear; over two mesh dimensions each has its own way.
// CHECK-LABEL: @sums
// CHECK: nn.linear ({{.*}}): 8x8xf32 (Shard(0), Partial(sum))
// CHECK-NEXT: dp: argument 0 Shard(0) [tp.sharding] -> nn.linear ({{.*}}) factor
// CHECK-NEXT: tp: 'w' Shard(1) [tp.sharding] -> nn.linear ({{.*}}) factor k Partial(sum)
// CHECK: 1. all_reduce over {tp}
// CHECK: over tp: nn.relu isn't linear in it, it takes the sum
// CHECK: edit: replace tp.sharding on 'w' by tp.sharding = <@mesh, [{tp}, {}]>
tp.mesh @mesh(dp = 2, tp = 2)
func.func @sums(%x: tensor<8x16xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}]>}) {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<8x16xf32>
  %0 = nn.linear %x, %w : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
  // expected-remark@+1 {{[Analysis] all_reduce}}
  %1 = nn.relu %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
