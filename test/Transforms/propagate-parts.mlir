// RUN: tp-opt %s --tp-propagate | FileCheck %s
// RUN: tp-opt %s --tp-parallelize | FileCheck %s --check-prefix=RANK

// Four ranks, two key-value heads: the major half of tp splits the heads, the other what is within one. Only the
// latter is gathered for attention; queries aren't moved at all.
tp.mesh @mesh(tp = 4)

// CHECK-LABEL: func.func @grouped_query
// CHECK: nn.reshape {{.*}}[{}, {}, {tp}, {}]>} : tensor<2x8x64xf32>
// CHECK: nn.reshape {{.*}}[{}, {}, {tp:(1)2}, {tp:(2)2}]>} : tensor<2x8x16xf32>
// CHECK: %[[K:.+]] = tp.redistribute %{{.*}} to <@mesh, {{\[}}{}, {tp:(1)2}, {}, {}]>
// CHECK: %[[V:.+]] = tp.redistribute %{{.*}} to <@mesh, {{\[}}{}, {tp:(1)2}, {}, {}]>
// CHECK: nn.attention causal %{{.*}}, %[[K]], %[[V]] {{.*}}[{}, {tp}, {}, {}]>}
// CHECK: nn.reshape {{.*}}[{}, {}, {tp}]>} : tensor<2x8x8x8xf32>
// RANK-LABEL: func.func @grouped_query
// RANK: tp.all_gather {{.*}} dim 3 over @mesh {tp:(2)2} {{.*}} : tensor<2x1x8x4xf32> -> tensor<2x1x8x8xf32>
// RANK: tp.all_gather
// RANK: nn.attention {{.*}} -> tensor<2x2x8x8xf32>
// RANK: tp.all_reduce
// RANK-NOT: tp.all_
func.func @grouped_query(%x: tensor<2x8x64xf32>) -> tensor<2x8x64xf32> {
  %wq = nn.parameter "wq" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<64x64xf32>
  %wk = nn.parameter "wk" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x64xf32>
  %wv = nn.parameter "wv" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<16x64xf32>
  %wo = nn.parameter "wo" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<64x64xf32>
  %q0 = nn.linear %x, %wq : (tensor<2x8x64xf32>, tensor<64x64xf32>) -> tensor<2x8x64xf32>
  %k0 = nn.linear %x, %wk : (tensor<2x8x64xf32>, tensor<16x64xf32>) -> tensor<2x8x16xf32>
  %v0 = nn.linear %x, %wv : (tensor<2x8x64xf32>, tensor<16x64xf32>) -> tensor<2x8x16xf32>
  %q1 = nn.reshape %q0 : tensor<2x8x64xf32> -> tensor<2x8x8x8xf32>
  %k1 = nn.reshape %k0 : tensor<2x8x16xf32> -> tensor<2x8x2x8xf32>
  %v1 = nn.reshape %v0 : tensor<2x8x16xf32> -> tensor<2x8x2x8xf32>
  %q = nn.transpose %q1 [0, 2, 1, 3] : tensor<2x8x8x8xf32> -> tensor<2x8x8x8xf32>
  %k = nn.transpose %k1 [0, 2, 1, 3] : tensor<2x8x2x8xf32> -> tensor<2x2x8x8xf32>
  %v = nn.transpose %v1 [0, 2, 1, 3] : tensor<2x8x2x8xf32> -> tensor<2x2x8x8xf32>
  %a = nn.attention causal %q, %k, %v scale 0.35 : (tensor<2x8x8x8xf32>, tensor<2x2x8x8xf32>, tensor<2x2x8x8xf32>) -> tensor<2x8x8x8xf32>
  %b = nn.transpose %a [0, 2, 1, 3] : tensor<2x8x8x8xf32> -> tensor<2x8x8x8xf32>
  %c = nn.reshape %b : tensor<2x8x8x8xf32> -> tensor<2x8x64xf32>
  %y = nn.linear %c, %wo : (tensor<2x8x64xf32>, tensor<64x64xf32>) -> tensor<2x8x64xf32>
  return %y : tensor<2x8x64xf32>
}

// A merge: the parts come together as the whole again.
// CHECK-LABEL: func.func @merge
// CHECK: nn.reshape {{.*}}[{tp}, {}]>} : tensor<2x8x4xf32>
func.func @merge(%x: tensor<2x8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp:(1)2}, {tp:(2)2}, {}]>})
    -> (tensor<16x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %y = nn.reshape %x : tensor<2x8x4xf32> -> tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}

// A part of tp that splits the second of three factors makes segments of the product: they aren't the first factor's.
// CHECK-LABEL: func.func @minor_factor
// RANK-LABEL: func.func @minor_factor
// CHECK: nn.gather {{.*}}[{tp}, {}, {}]>}
func.func @minor_factor(%x: tensor<12x8x2xf64> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>},
                        %i: tensor<12x8x2xi64> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>},
                        %w: tensor<12x1x2x2x12xf64> {tp.sharding = #tp.sharding<@mesh, [{tp:(2)2}, {}, {tp:(1)2}, {}, {}]>})
    -> tensor<12x2x2x2x12xf64> {
  %a = nn.gather %x, %i dim 0 : (tensor<12x8x2xf64>, tensor<12x8x2xi64>) -> tensor<12x8x2xf64>
  %b = nn.reshape %a : tensor<12x8x2xf64> -> tensor<12x2x2x2x2xf64>
  %c = nn.matmul %b, %w : (tensor<12x2x2x2x2xf64>, tensor<12x1x2x2x12xf64>) -> tensor<12x2x2x2x12xf64>
  return %c : tensor<12x2x2x2x12xf64>
}

// The parts of tp one after the other: where blocks are even they are tp's, else blocks of blocks.
// CHECK-LABEL: func.func @all_parts
// CHECK: nn.parameter "even" {{.*}}[{tp:(1)2, tp:(2)2}]>
// CHECK: nn.parameter "uneven" {{.*}}[{tp:(1)2, tp:(2)2}]>
// RANK-LABEL: func.func @all_parts
func.func @all_parts() -> (tensor<8xf32>, tensor<6xf32>) {
  %v = nn.parameter "even" {tp.sharding = #tp.sharding<@mesh, [{tp:(1)2, tp:(2)2}]>} : tensor<8xf32>
  %w = nn.parameter "uneven" {tp.sharding = #tp.sharding<@mesh, [{tp:(1)2, tp:(2)2}]>} : tensor<6xf32>
  %a = nn.gelu %v : tensor<8xf32>
  %b = nn.gelu %w : tensor<6xf32>
  return %a, %b : tensor<8xf32>, tensor<6xf32>
}
