// In a program without nn, what redistributions and rewrites of collectives add are upstream ops, and the result is proven.

// RUN: tp-opt %s --tp-parallelize=bucket-bytes=4096 -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --implicit-check-not=nn.
// RUN: tp-opt %t.mlir --tp-verify-spmd="reference=%s always-execute" -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROOF

// RUN: tp-opt %s --tp-parallelize="one-shot=false sequence-parallel memory-limit=1600" -o %t.steps.mlir
// RUN: FileCheck %s --check-prefix=STEPS --input-file=%t.steps.mlir --implicit-check-not=nn.
// RUN: tp-opt %t.steps.mlir --tp-verify-spmd="reference=%s always-execute" -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROOF

// RUN: tp-opt %s --tp-parallelize="overlap chunks=2" -o %t.chunks.mlir
// RUN: FileCheck %s --check-prefix=CHUNKS --input-file=%t.chunks.mlir --implicit-check-not=nn.
// RUN: tp-opt %t.chunks.mlir --tp-verify-spmd="reference=%s always-execute" -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROOF

// Chunks put together the other way round, and dimensions that change places.
// RUN: sed -e 's/tensor.concat dim(0) \(%[0-9]*\), \(%[0-9]*\)/tensor.concat dim(0) \2, \1/' %t.chunks.mlir > %t.order.mlir
// RUN: not tp-opt %t.order.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: sed -e 's/permutation = .4, 2, 0, 1, 3, 5./permutation = [2, 4, 0, 1, 3, 5]/' %t.steps.mlir > %t.dims.mlir
// RUN: not tp-opt %t.dims.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: not proven
// WRONG: note: refuted by execution: on rank

// PROOF: 'reductions' is proven for 4 ranks
// PROOF: 'gathers' is proven for 4 ranks
// PROOF: 'pairs' is proven for 4 ranks
// PROOF: 'gather_rows' is proven for 4 ranks
// PROOF: 'scatter_rows' is proven for 4 ranks
// PROOF: 'sequence' is proven for 4 ranks
// PROOF: 'again' is proven for 4 ranks

tp.mesh @mesh(dp = 2, tp = 2)

// CHECK-LABEL: func.func @reductions
// CHECK: %[[Y:.*]] = linalg.matmul
// CHECK: %[[Z:.*]] = linalg.matmul
// CHECK: %[[FY:.*]] = tensor.collapse_shape %[[Y]]
// CHECK: %[[FZ:.*]] = tensor.collapse_shape %[[Z]]
// CHECK: %[[ALL:.*]] = tensor.concat dim(0) %[[FY]], %[[FZ]] : (tensor<24xf32>, tensor<12xf32>) -> tensor<36xf32>
// CHECK: %[[R:.*]] = tp.all_reduce sum %[[ALL]]
// CHECK: %[[SY:.*]] = tensor.extract_slice %[[R]][0] [24] [1]
// CHECK: tensor.expand_shape %[[SY]] {{.*}} into tensor<4x6xf32>
// CHECK: %[[SZ:.*]] = tensor.extract_slice %[[R]][24] [12] [1]
// CHECK: tensor.expand_shape %[[SZ]] {{.*}} into tensor<4x3xf32>
func.func @reductions(%x: tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                      %v: tensor<8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                      %w: tensor<8x3xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x6xf32>, tensor<4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x6xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %0 = linalg.matmul ins(%x, %v : tensor<4x8xf32>, tensor<8x6xf32>) outs(%f0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e1 = tensor.empty() : tensor<4x3xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x3xf32>) outs(%f1 : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %0, %1 : tensor<4x6xf32>, tensor<4x3xf32>
}

// CHECK-LABEL: func.func @gathers
// CHECK: tensor.concat dim(0)
// CHECK: tp.all_gather {{.*}} : tensor<19xf32> -> tensor<38xf32>
// CHECK: linalg.transpose {{.*}} permutation = [1, 0, 2]
// CHECK: tensor.collapse_shape {{.*}} into tensor<4x8xf32>
func.func @gathers(%x: tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                   %y: tensor<6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}]>}) -> (tensor<4x8xf32>, tensor<6xf32>) {
  %0 = math.exp %x : tensor<4x8xf32>
  %1 = math.exp %y : tensor<6xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<6xf32>
}

// One all-to-all along two pairs of dimensions.
// STEPS-LABEL: func.func @pairs
// STEPS: tensor.expand_shape
// STEPS: linalg.transpose
// STEPS: tensor.collapse_shape
// STEPS: tp.all_to_all {{.*}} over @mesh {dp, tp}
// STEPS: linalg.transpose
func.func @pairs(%x: tensor<4x4x4x4xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {tp}, {}, {}]>})
    -> (tensor<4x4x4x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}, {dp}]>}) {
  %0 = math.exp %x : tensor<4x4x4x4xf32>
  return %0 : tensor<4x4x4x4xf32>
}

// CHUNKS-LABEL: func.func @gather_rows
// CHUNKS: tensor.extract_slice {{.*}} tensor<1x4x4xf32> to tensor<1x4x2xf32>
// CHUNKS-COUNT-2: tosa.matmul {{.*}} -> tensor<1x4x4xf32>
// CHUNKS: tensor.concat dim(3) {{.*}} -> tensor<1x4x2x4xf32>
// CHUNKS-NEXT: tensor.collapse_shape {{.*}} into tensor<1x4x8xf32>
func.func @gather_rows(%x: tensor<1x8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>},
                       %w: tensor<1x4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {tp}]>})
    -> (tensor<1x8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}, {}]>}) {
  %zero = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %x, %w, %zero, %zero : (tensor<1x8x4xf32>, tensor<1x4x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x8xf32>
  return %0 : tensor<1x8x8xf32>
}

// CHUNKS-LABEL: func.func @scatter_rows
// CHUNKS: tensor.extract_slice {{.*}} tensor<2x4x4xf32> to tensor<2x2x4xf32>
// CHUNKS-COUNT-2: tp.reduce_scatter {{.*}} : tensor<4x6xf32> -> tensor<2x6xf32>
// CHUNKS: tensor.concat dim(0) {{.*}} -> tensor<4x6xf32>
func.func @scatter_rows(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                        %w: tensor<8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x6xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<8x8xf32>, tensor<8x6xf32>) outs(%zero : tensor<8x6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// STEPS-LABEL: func.func @sequence
// STEPS: tp.reduce_scatter
// STEPS-NEXT: math.tanh {{.*}} : tensor<4x8xf32>
// STEPS-NEXT: tp.all_gather
func.func @sequence(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>},
                    %v: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                    %w: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>}) {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %0 = linalg.matmul ins(%x, %v : tensor<8x8xf32>, tensor<8x8xf32>) outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = math.tanh %0 : tensor<8x8xf32>
  %2 = linalg.matmul ins(%1, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// A gathered value isn't kept between distant uses.
// STEPS-LABEL: func.func @again
// STEPS: tp.all_gather
// STEPS: linalg.matmul
// STEPS: math.exp
// STEPS: tp.all_gather
// STEPS: linalg.matmul
func.func @again(%x: tensor<16x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<16x16xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = linalg.matmul ins(%x, %x : tensor<16x16xf32>, tensor<16x16xf32>) outs(%zero : tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = math.tanh %0 : tensor<16x16xf32>
  %2 = math.exp %1 : tensor<16x16xf32>
  %3 = linalg.matmul ins(%2, %x : tensor<16x16xf32>, tensor<16x16xf32>) outs(%zero : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %3 : tensor<16x16xf32>
}
