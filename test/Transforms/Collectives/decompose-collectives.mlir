// RUN: tp-opt %s --tp-overlap-collectives=chunks=2 --tp-lower-start-wait | FileCheck %s
// RUN: tp-opt %s --tp-overlap-collectives=chunks=2 | FileCheck %s --check-prefix=STARTS
// Collectives and contractions in chunks of rows.

tp.mesh @mesh(tp = 2)

// One chunk is gathered while another is multiplied.
// STARTS-LABEL: func.func @gather
// STARTS: tp.start
// STARTS: tp.start
// STARTS: tp.wait
// STARTS: nn.linear
// STARTS: tp.wait
// STARTS: nn.linear
// STARTS-LABEL: func.func @scatter
// STARTS: nn.linear
// STARTS: tp.start
// STARTS: nn.linear
// STARTS: tp.start

// CHECK-LABEL: func.func @gather
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<6x8xf32>
func.func @gather(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> tensor<8x6xf32> {
  // CHECK-DAG: %[[X0:.*]] = nn.slice %[[X]] dim 0 start 0 step 1 : tensor<4x8xf32> -> tensor<2x8xf32>
  // CHECK-DAG: %[[G0:.*]] = tp.all_gather %[[X0]] dim 0 over @mesh {tp} {bytes = 64 : i64} : tensor<2x8xf32> -> tensor<4x8xf32>
  // CHECK-DAG: %[[Y0:.*]] = nn.linear %[[G0]], %[[W]] : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  // CHECK-DAG: %[[R0:.*]] = nn.reshape %[[Y0]] : tensor<4x6xf32> -> tensor<2x2x6xf32>
  // CHECK-DAG: %[[X1:.*]] = nn.slice %[[X]] dim 0 start 2 step 1
  // CHECK-DAG: %[[G1:.*]] = tp.all_gather %[[X1]]
  // CHECK-DAG: %[[Y1:.*]] = nn.linear %[[G1]], %[[W]]
  // CHECK-DAG: %[[R1:.*]] = nn.reshape %[[Y1]]
  // CHECK: %[[C:.*]] = nn.concat %[[R0]], %[[R1]] dim 1 : (tensor<2x2x6xf32>, tensor<2x2x6xf32>) -> tensor<2x4x6xf32>
  // CHECK-NEXT: %[[Y:.*]] = nn.reshape %[[C]] : tensor<2x4x6xf32> -> tensor<8x6xf32>
  // CHECK-NEXT: return %[[Y]]
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<4x8xf32> -> tensor<8x8xf32>
  %1 = nn.linear %0, %w : (tensor<8x8xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// CHECK-LABEL: func.func @scatter
// CHECK-SAME: %[[X:.*]]: tensor<3x8x4xf32>, %[[W:.*]]: tensor<6x4xf32>
func.func @scatter(%x: tensor<3x8x4xf32>, %w: tensor<6x4xf32>) -> tensor<3x4x6xf32> {
  // CHECK-DAG: %[[R0:.*]] = nn.reshape %[[X]] : tensor<3x8x4xf32> -> tensor<3x2x4x4xf32>
  // CHECK-DAG: %[[X0:.*]] = nn.slice %{{.*}} dim 2 start 0 step 1 : tensor<3x2x4x4xf32> -> tensor<3x2x2x4xf32>
  // CHECK-DAG: %[[S0:.*]] = nn.reshape %[[X0]] : tensor<3x2x2x4xf32> -> tensor<3x4x4xf32>
  // CHECK-DAG: %[[Y0:.*]] = nn.linear %[[S0]], %[[W]] : (tensor<3x4x4xf32>, tensor<6x4xf32>) -> tensor<3x4x6xf32>
  // CHECK-DAG: %[[P0:.*]] = tp.reduce_scatter sum %[[Y0]] dim 1 over @mesh {tp} {bytes = 144 : i64} : tensor<3x4x6xf32> -> tensor<3x2x6xf32>
  // CHECK-DAG: %[[X1:.*]] = nn.slice %{{.*}} dim 2 start 2 step 1
  // CHECK-DAG: %[[S1:.*]] = nn.reshape %[[X1]]
  // CHECK-DAG: %[[Y1:.*]] = nn.linear %[[S1]], %[[W]]
  // CHECK-DAG: %[[P1:.*]] = tp.reduce_scatter sum %[[Y1]]
  // CHECK: %[[C:.*]] = nn.concat %[[P0]], %[[P1]] dim 1 : (tensor<3x2x6xf32>, tensor<3x2x6xf32>) -> tensor<3x4x6xf32>
  // CHECK-NEXT: return %[[C]]
  %0 = nn.linear %x, %w : (tensor<3x8x4xf32>, tensor<6x4xf32>) -> tensor<3x8x6xf32>
  %1 = tp.reduce_scatter sum %0 dim 1 over @mesh {tp} : tensor<3x8x6xf32> -> tensor<3x4x6xf32>
  return %1 : tensor<3x4x6xf32>
}

// Never along what is contracted; not where a block isn't two pieces, where the whole is used as well, or where nothing is
// contracted.
// CHECK-LABEL: func.func @keep
// CHECK-NOT: nn.concat
// CHECK: return
func.func @keep(%a: tensor<4x4xf32>, %b: tensor<3x8xf32>, %c: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> (tensor<4x6xf32>, tensor<6x6xf32>, tensor<8x6xf32>, tensor<8x8xf32>, tensor<8x4xf32>) {
  %0 = tp.all_gather %a dim 1 over @mesh {tp} : tensor<4x4xf32> -> tensor<4x8xf32>
  %1 = nn.linear %0, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %2 = tp.all_gather %b dim 0 over @mesh {tp} : tensor<3x8xf32> -> tensor<6x8xf32>
  %3 = nn.linear %2, %w : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x6xf32>
  %4 = tp.all_gather %c dim 0 over @mesh {tp} : tensor<4x8xf32> -> tensor<8x8xf32>
  %5 = nn.linear %4, %w : (tensor<8x8xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
  %6 = tp.all_gather %a dim 0 over @mesh {tp} : tensor<4x4xf32> -> tensor<8x4xf32>
  %7 = nn.relu %6 : tensor<8x4xf32>
  return %1, %3, %5, %4, %7 : tensor<4x6xf32>, tensor<6x6xf32>, tensor<8x6xf32>, tensor<8x8xf32>, tensor<8x4xf32>
}

// Nor where a row's place counts: pieces don't know where they were.
// CHECK-LABEL: func.func @places
// CHECK-NOT: nn.concat
// CHECK: return
#rows = affine_map<(m, n, k) -> (m, k)>
#columns = affine_map<(m, n, k) -> (k, n)>
#all = affine_map<(m, n, k) -> (m, n)>
func.func @places(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %z: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %0 = linalg.generic {indexing_maps = [#rows, #columns, #all], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%z : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %row = linalg.index 0 : index
    %number = arith.index_cast %row : index to i64
    %weight = arith.sitofp %number : i64 to f32
    %1 = arith.mulf %a, %b : f32
    %2 = arith.mulf %1, %weight : f32
    %3 = arith.addf %sum, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<8x6xf32>
  %4 = tp.reduce_scatter sum %0 dim 0 over @mesh {tp} : tensor<8x6xf32> -> tensor<4x6xf32>
  return %4 : tensor<4x6xf32>
}

// The same without places is.
// CHECK-LABEL: func.func @no_places
// CHECK: nn.concat
func.func @no_places(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %z: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %0 = linalg.generic {indexing_maps = [#rows, #columns, #all], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%z : tensor<8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %1 = arith.mulf %a, %b : f32
    %3 = arith.addf %sum, %1 : f32
    linalg.yield %3 : f32
  } -> tensor<8x6xf32>
  %4 = tp.reduce_scatter sum %0 dim 0 over @mesh {tp} : tensor<8x6xf32> -> tensor<4x6xf32>
  return %4 : tensor<4x6xf32>
}
