// What attention over a split sequence communicates, by its method: everything else is local, also the rotation of queries and
// keys by tables of positions.
// RUN: split-file %s %t
// RUN: tp-opt %t/decoder.mlir --tp-parallelize=plan=%t/ring.yaml | FileCheck %t/ring.yaml
// RUN: tp-opt %t/decoder.mlir --tp-parallelize=plan=%t/all_gather.yaml | FileCheck %t/all_gather.yaml
// RUN: tp-opt %t/decoder.mlir --tp-parallelize=plan=%t/all_to_all.yaml | FileCheck %t/all_to_all.yaml
// RUN: not tp-opt %t/heads.mlir --tp-propagate 2>&1 | FileCheck %t/heads.mlir

//--- decoder.mlir
func.func @main(%x: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %w = nn.parameter "w" : tensor<16x16xf32>
  %u = nn.parameter "u" : tensor<8x16xf32>
  %q0 = nn.linear %x, %w : (tensor<2x8x16xf32>, tensor<16x16xf32>) -> tensor<2x8x16xf32>
  %q1 = nn.reshape %q0 : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %q2 = nn.transpose %q1 [0, 2, 1, 3] : tensor<2x8x4x4xf32> -> tensor<2x4x8x4xf32>
  %k0 = nn.linear %x, %u : (tensor<2x8x16xf32>, tensor<8x16xf32>) -> tensor<2x8x8xf32>
  %k1 = nn.reshape %k0 : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
  %k2 = nn.transpose %k1 [0, 2, 1, 3] : tensor<2x8x2x4xf32> -> tensor<2x2x8x4xf32>
  %i = nn.iota dim 0 start 0.0 step 1.0 : tensor<8x4xi64>
  %angles = nn.cast %i : tensor<8x4xi64> -> tensor<8x4xf32>
  %cos = nn.cos %angles : tensor<8x4xf32>
  %q = nn.mul %q2, %cos : (tensor<2x4x8x4xf32>, tensor<8x4xf32>) -> tensor<2x4x8x4xf32>
  %k = nn.mul %k2, %cos : (tensor<2x2x8x4xf32>, tensor<8x4xf32>) -> tensor<2x2x8x4xf32>
  %r = nn.attention causal %q, %k, %k2 scale 0.5 : (tensor<2x4x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>) -> tensor<2x4x8x4xf32>
  %y0 = nn.transpose %r [0, 2, 1, 3] : tensor<2x4x8x4xf32> -> tensor<2x8x4x4xf32>
  %y = nn.reshape %y0 : tensor<2x8x4x4xf32> -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}

//--- ring.yaml
mesh: {cp: 2}
context_parallel: {cp: ring}
# CHECK: func.func @main(%{{.*}}: tensor<2x4x16xf32>
# CHECK-NOT: tp.all_
# One step: half of keys and values, 128 elements each, come from the other rank.
# CHECK-COUNT-2: tp.permute {{.*}} from [1, 0] over @mesh {cp} {bytes = 256 : i64, {{.*}} : tensor<2x2x4x4xf32> -> tensor<2x2x4x4xf32>
# CHECK-NOT: tp.permute
# CHECK-NOT: tp.all_
# CHECK: return {{.*}} : tensor<2x4x16xf32>

//--- all_gather.yaml
mesh: {cp: 2}
context_parallel: {cp: all_gather}
# CHECK: func.func @main(%{{.*}}: tensor<2x4x16xf32>
# CHECK-DAG: tp.shard_offset of 8 over @mesh {cp}
# CHECK-DAG: tp.all_gather %{{.*}} dim 2 over @mesh {cp} {bytes = 256 : i64, {{.*}} : tensor<2x2x4x4xf32> -> tensor<2x2x8x4xf32>
# CHECK-DAG: tp.all_gather %{{.*}} dim 2 over @mesh {cp} {bytes = 256 : i64, {{.*}} : tensor<2x2x4x4xf32> -> tensor<2x2x8x4xf32>
# CHECK: nn.attention_block %{{.*}} offset
# CHECK-NOT: tp.all_
# CHECK: return {{.*}} : tensor<2x4x16xf32>

//--- all_to_all.yaml
mesh: {cp: 2}
context_parallel: {cp: all_to_all}
# CHECK: func.func @main(%{{.*}}: tensor<2x4x16xf32>
# CHECK-COUNT-3: tp.all_to_all
# CHECK: nn.attention causal {{.*}} scale 5.000000e-01 : (tensor<2x2x8x4xf32>, tensor<2x1x8x4xf32>, tensor<2x1x8x4xf32>)
# CHECK: tp.all_to_all {{.*}} {bytes = 256 : i64,
# CHECK-NOT: tp.all_
# CHECK: return {{.*}} : tensor<2x4x16xf32>

//--- heads.mlir
tp.mesh @mesh(cp = 4)
// Four ranks can't split two groups of three heads.
func.func @main(%x: tensor<1x6x8x4xf32> {tp.sequence = ["cp"], tp.sharding = #tp.sharding<@mesh, [{}, {}, {cp}, {}]>}, %k: tensor<1x2x8x4xf32>) -> tensor<1x6x8x4xf32> {
  // CHECK: error: 'nn.attention' can't be split over 'cp': it is split along other dimensions than the sequence, and beside the other mesh dimensions these aren't divisible; context methods that split the sequence are all_gather and ring
  %r = nn.attention %x, %k, %k scale 0.5 context all_to_all : (tensor<1x6x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x6x8x4xf32>
  return %r : tensor<1x6x8x4xf32>
}
