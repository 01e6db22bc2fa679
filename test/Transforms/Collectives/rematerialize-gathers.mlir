// RUN: tp-opt %s --tp-optimize-collectives=memory-limit=2560 | FileCheck %s
// RUN: tp-opt %s --tp-optimize-collectives=memory-limit=100000 | FileCheck %s --check-prefix=ENOUGH
// Where too many bytes are live, a gathered value is dropped and gathered again.

tp.mesh @mesh(tp = 4)

// CHECK-LABEL: func.func @distant
// ENOUGH-LABEL: func.func @distant
func.func @distant(%x: tensor<4x16xf32>, %b: tensor<16x1xf32>) -> tensor<16x16xf32> {
  // 1024 bytes each: %g, %c and %d would be alive together.
  // CHECK: %[[G:.*]] = tp.all_gather
  // CHECK-NEXT: nn.exp %[[G]]
  // CHECK-NEXT: nn.tanh
  // CHECK-NEXT: nn.relu
  // CHECK-NEXT: %[[H:.*]] = tp.all_gather
  // CHECK-NEXT: nn.add %{{.*}}, %[[H]]
  // ENOUGH-COUNT-1: tp.all_gather
  // ENOUGH-NOT: tp.all_gather
  %g = tp.all_gather %x dim 0 over @mesh {tp} : tensor<4x16xf32> -> tensor<16x16xf32>
  %c = nn.exp %g : tensor<16x16xf32>
  %d = nn.tanh %c : tensor<16x16xf32>
  %e = nn.relu %d : tensor<16x16xf32>
  %f = nn.add %e, %g : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %f : tensor<16x16xf32>
}
