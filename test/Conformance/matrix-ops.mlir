// The assertions of PyTorch's test_matrix_ops.py.
// RUN: tp-opt %s --tp-parallelize | FileCheck %s --implicit-check-not=tp.all_ --implicit-check-not=tp.reduce_scatter --implicit-check-not=tp.exchange --implicit-check-not=tp.permute
// RUN: tp-opt %s --tp-propagate | FileCheck %s --check-prefix=PLACED

tp.mesh @mesh(tp = 4)

// addmm, S(1) x S(0): Partial, and the bias is added once. 1 collective.
// CHECK-LABEL: func.func @addmm_contracted
// PLACED-LABEL: func.func @addmm_contracted
// PLACED: nn.matmul {{.*}}partial = {tp: sum}
// CHECK: tp.all_reduce sum
// CHECK: nn.add
func.func @addmm_contracted(%x: tensor<12x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                            %w: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                            %bias: tensor<4xf32>) -> tensor<12x4xf32> {
  %y = nn.matmul %x, %w : (tensor<12x8xf32>, tensor<8x4xf32>) -> tensor<12x4xf32>
  %z = nn.add %y, %bias : (tensor<12x4xf32>, tensor<4xf32>) -> tensor<12x4xf32>
  return %z : tensor<12x4xf32>
}

// An empty contraction: zeros, plus the bias.
// CHECK-LABEL: func.func @addmm_empty
// CHECK: return
func.func @addmm_empty(%x: tensor<12x0xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                       %w: tensor<0x4xf32>, %bias: tensor<12x1xf32>)
    -> (tensor<12x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %y = nn.matmul %x, %w : (tensor<12x0xf32>, tensor<0x4xf32>) -> tensor<12x4xf32>
  %z = nn.add %y, %bias : (tensor<12x4xf32>, tensor<12x1xf32>) -> tensor<12x4xf32>
  return %z : tensor<12x4xf32>
}

// mm, S(0) x R and R x S(1): the split passes.
// CHECK-LABEL: func.func @mm_rows
// PLACED-LABEL: func.func @mm_rows
// PLACED: nn.matmul {{.*}}[{tp}, {}]
// CHECK: return
func.func @mm_rows(%x: tensor<12x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}, %w: tensor<8x4xf32>)
    -> (tensor<12x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %y = nn.matmul %x, %w : (tensor<12x8xf32>, tensor<8x4xf32>) -> tensor<12x4xf32>
  return %y : tensor<12x4xf32>
}

// CHECK-LABEL: func.func @mm_columns
// PLACED-LABEL: func.func @mm_columns
// PLACED: nn.matmul {{.*}}[{}, {tp}]
// CHECK: return
func.func @mm_columns(%x: tensor<12x8xf32>, %w: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<12x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %y = nn.matmul %x, %w : (tensor<12x8xf32>, tensor<8x4xf32>) -> tensor<12x4xf32>
  return %y : tensor<12x4xf32>
}

// 3 rows over 4 ranks: DTensor runs this replicated; here the last rank has none of them.
// CHECK-LABEL: func.func @mm_few_rows
// PLACED-LABEL: func.func @mm_few_rows
// PLACED: nn.matmul {{.*}}[{tp}, {}]
// CHECK: return
func.func @mm_few_rows(%x: tensor<3x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}, %w: tensor<8x4xf32>)
    -> (tensor<3x4xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %y = nn.matmul %x, %w : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// linear, R x S(0): S(2).
// CHECK-LABEL: func.func @linear
// PLACED-LABEL: func.func @linear
// PLACED: nn.linear {{.*}}[{}, {}, {tp}]
// CHECK: return
func.func @linear(%x: tensor<1x47x2048xf32>, %w: tensor<1024x2048xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<1x47x1024xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>}) {
  %y = nn.linear %x, %w : (tensor<1x47x2048xf32>, tensor<1024x2048xf32>) -> tensor<1x47x1024xf32>
  return %y : tensor<1x47x1024xf32>
}

// mm, Partial x Partial: one is reduced, the result is Partial: 1, and 1 for the result.
// CHECK-LABEL: func.func @mm_partial
// PLACED-LABEL: func.func @mm_partial
// CHECK: tp.all_reduce sum
// PLACED: nn.matmul {{.*}}partial = {tp: sum}
// CHECK: nn.matmul
// CHECK: tp.all_reduce sum
func.func @mm_partial(%x: tensor<8x4xf32>, %y: tensor<4x2xf32>) -> tensor<8x2xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> : tensor<8x4xf32> -> tensor<8x4xf32>
  %a = tp.from_local %l as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %m = tp.to_local %y as <@mesh, [{}, {}]> : tensor<4x2xf32> -> tensor<4x2xf32>
  %b = tp.from_local %m as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<4x2xf32> -> tensor<4x2xf32>
  %z = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return %z : tensor<8x2xf32>
}

// Attention split by batch, or by heads: none.
// CHECK-LABEL: func.func @attention_batch
// PLACED-LABEL: func.func @attention_batch
// PLACED: nn.attention {{.*}}[{tp}, {}, {}, {}]
// CHECK: return
func.func @attention_batch(%q: tensor<8x8x4x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}, {}]>},
                           %k: tensor<8x8x4x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}, {}]>})
    -> (tensor<8x8x4x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}, {}]>}) {
  %y = nn.attention causal %q, %k, %k scale 0.25 : (tensor<8x8x4x16xf32>, tensor<8x8x4x16xf32>, tensor<8x8x4x16xf32>) -> tensor<8x8x4x16xf32>
  return %y : tensor<8x8x4x16xf32>
}

// CHECK-LABEL: func.func @attention_heads
// PLACED-LABEL: func.func @attention_heads
// PLACED: nn.attention {{.*}}[{}, {tp}, {}, {}]
// CHECK: return
func.func @attention_heads(%q: tensor<8x8x4x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}, {}]>},
                           %k: tensor<8x8x4x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}, {}]>})
    -> (tensor<8x8x4x16xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}, {}]>}) {
  %y = nn.attention causal %q, %k, %k scale 0.25 : (tensor<8x8x4x16xf32>, tensor<8x8x4x16xf32>, tensor<8x8x4x16xf32>) -> tensor<8x8x4x16xf32>
  return %y : tensor<8x8x4x16xf32>
}

// t moves the split to the other dimension, and keeps a Partial.
// CHECK-LABEL: func.func @t
// PLACED-LABEL: func.func @t(
// PLACED: nn.transpose {{.*}}[{}, {tp}]
// CHECK: return
func.func @t(%x: tensor<12x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<8x12xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %y = nn.transpose %x [1, 0] : tensor<12x8xf32> -> tensor<8x12xf32>
  return %y : tensor<8x12xf32>
}

// CHECK-LABEL: func.func @t_partial
// PLACED-LABEL: func.func @t_partial
// PLACED: nn.transpose {{.*}}partial = {tp: sum}
// CHECK: nn.transpose
// CHECK: tp.all_reduce sum
func.func @t_partial(%x: tensor<12x8xf32>) -> tensor<8x12xf32> {
  %l = tp.to_local %x as <@mesh, [{}, {}]> : tensor<12x8xf32> -> tensor<12x8xf32>
  %a = tp.from_local %l as <@mesh, [{}, {}], partial = {tp: sum}> : tensor<12x8xf32> -> tensor<12x8xf32>
  %y = nn.transpose %a [1, 0] : tensor<12x8xf32> -> tensor<8x12xf32>
  return %y : tensor<8x12xf32>
}

// bmm: batches, rows and columns pass, the contraction is Partial.
// CHECK-LABEL: func.func @bmm
// PLACED-LABEL: func.func @bmm
// PLACED: nn.matmul {{.*}}[{tp}, {}, {}]
// PLACED: nn.matmul {{.*}}[{}, {tp}, {}]
// PLACED: nn.matmul {{.*}}[{}, {}, {tp}]
// PLACED: nn.matmul {{.*}}[{}, {}, {}], partial = {tp: sum}
// CHECK: tp.all_reduce sum
func.func @bmm(%xb: tensor<4x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>},
               %yb: tensor<4x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>},
               %x1: tensor<4x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>},
               %x2: tensor<4x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>}, %r: tensor<4x8x8xf32>)
    -> (tensor<4x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}, {}]>},
        tensor<4x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>},
        tensor<4x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>}, tensor<4x8x8xf32>) {
  %0 = nn.matmul %xb, %yb : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  %1 = nn.matmul %x1, %r : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  %2 = nn.matmul %r, %x2 : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  %3 = nn.matmul %x2, %x1 : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  return %0, %1, %2, %3 : tensor<4x8x8xf32>, tensor<4x8x8xf32>, tensor<4x8x8xf32>, tensor<4x8x8xf32>
}
