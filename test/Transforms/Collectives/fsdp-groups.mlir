// FSDP's gathers and reductions for the parameters of one module are joined.
// RUN: tp-opt %s --tp-optimize-collectives | FileCheck %s
// RUN: tp-opt %s --tp-optimize-collectives=fsdp-groups=false | FileCheck %s --check-prefix=APART
// APART-NOT: nn.concat
// APART: tp.all_gather {{.*}}fqn = "a.w"
// APART: tp.all_gather {{.*}}fqn = "a.b"
// APART-NOT: nn.concat

tp.mesh @mesh(r = 2, dp = 2)

// One gather for each group and pass, before the first use; other element types are apart.
// CHECK-LABEL: func.func @gathers
// CHECK: %[[W:.*]] = nn.parameter "a.w"
// CHECK-NEXT: %[[B:.*]] = nn.parameter "a.b"
// CHECK-NEXT: %[[FW:.*]] = nn.reshape %[[W]] : tensor<4x8xf32> -> tensor<32xf32>
// CHECK-NEXT: %[[ALL:.*]] = nn.concat %[[FW]], %[[B]] dim 0 : (tensor<32xf32>, tensor<4xf32>) -> tensor<36xf32>
// CHECK-NEXT: %[[G:.*]] = tp.all_gather %[[ALL]] dim 0 over @mesh {dp} {bytes = 144 : i64, fqn = "a.w, a.b"} : tensor<36xf32> -> tensor<72xf32>
// CHECK-NEXT: %[[ROWS:.*]] = nn.reshape %[[G]] : tensor<72xf32> -> tensor<2x36xf32>
// CHECK-NEXT: nn.slice %[[ROWS]] dim 1 start 0 step 1 : tensor<2x36xf32> -> tensor<2x32xf32>
// CHECK-NEXT: nn.reshape {{.*}} : tensor<2x32xf32> -> tensor<2x4x8xf32>
// CHECK-NEXT: nn.reshape {{.*}} : tensor<2x4x8xf32> -> tensor<8x8xf32>
// CHECK-NEXT: nn.slice %[[ROWS]] dim 1 start 32 step 1 : tensor<2x36xf32> -> tensor<2x4xf32>
// CHECK-NEXT: nn.reshape {{.*}} : tensor<2x4xf32> -> tensor<8xf32>
// CHECK: nn.linear
// CHECK: tp.all_gather {{.*}}fqn = "a.h"
// CHECK: tp.all_gather {{.*}}fqn = "c.w"
// CHECK: nn.linear
// CHECK: nn.recompute %[[W]] {tp.pass = 1 : i64}
// CHECK: nn.recompute %[[B]] {tp.pass = 1 : i64}
// CHECK: nn.concat
// CHECK-NEXT: tp.all_gather {{.*}}fqn = "a.w, a.b"
// CHECK: nn.recompute %[[W]] {tp.pass = 2 : i64}
// CHECK-NEXT: tp.all_gather {{.*}}fqn = "a.w"
// CHECK-NOT: tp.all_gather
func.func @gathers(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf16>, tensor<4x8xf32>, tensor<8x8xf32>) {
  %w = nn.parameter "a.w" {tp.fsdp_group = "a"} : tensor<4x8xf32>
  %0 = tp.all_gather %w dim 0 over @mesh {dp} {fqn = "a.w"} : tensor<4x8xf32> -> tensor<8x8xf32>
  %y = nn.linear %x, %0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %b = nn.parameter "a.b" {tp.fsdp_group = "a"} : tensor<4xf32>
  %1 = tp.all_gather %b dim 0 over @mesh {dp} {fqn = "a.b"} : tensor<4xf32> -> tensor<8xf32>
  %z = nn.add %y, %1 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %h = nn.parameter "a.h" {tp.fsdp_group = "a"} : tensor<4xf16>
  %2 = tp.all_gather %h dim 0 over @mesh {dp} {fqn = "a.h"} : tensor<4xf16> -> tensor<8xf16>
  %c = nn.parameter "c.w" {tp.fsdp_group = "c"} : tensor<4x8xf32>
  %3 = tp.all_gather %c dim 0 over @mesh {dp} {fqn = "c.w"} : tensor<4x8xf32> -> tensor<8x8xf32>
  %u = nn.linear %z, %3 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %w1 = nn.recompute %w {tp.pass = 1 : i64} : tensor<4x8xf32>
  %4 = tp.all_gather %w1 dim 0 over @mesh {dp} {fqn = "a.w"} : tensor<4x8xf32> -> tensor<8x8xf32>
  %v = nn.linear %u, %4 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %b1 = nn.recompute %b {tp.pass = 1 : i64} : tensor<4xf32>
  %5 = tp.all_gather %b1 dim 0 over @mesh {dp} {fqn = "a.b"} : tensor<4xf32> -> tensor<8xf32>
  %s = nn.add %v, %5 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // A parameter that is read twice in one pass is gathered once.
  %w3 = nn.recompute %w {tp.pass = 1 : i64} : tensor<4x8xf32>
  %6 = tp.all_gather %w3 dim 0 over @mesh {dp} {fqn = "a.w"} : tensor<4x8xf32> -> tensor<8x8xf32>
  %t = nn.linear %s, %6 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %w2 = nn.recompute %w {tp.pass = 2 : i64} : tensor<4x8xf32>
  %7 = tp.all_gather %w2 dim 0 over @mesh {dp} {fqn = "a.w"} : tensor<4x8xf32> -> tensor<8x8xf32>
  return %u, %2, %t, %7 : tensor<4x8xf32>, tensor<8xf16>, tensor<4x8xf32>, tensor<8x8xf32>
}

// The gradients of a group: one reduce-scatter where the last is computed, and what comes behind waits.
// CHECK-LABEL: func.func @gradients
// CHECK-NOT: tp.reduce_scatter
// CHECK: nn.exp
// CHECK: %[[R0:.*]] = nn.reshape %{{.*}} : tensor<8x8xf32> -> tensor<2x4x8xf32>
// CHECK-NEXT: %[[R1:.*]] = nn.reshape %[[R0]] : tensor<2x4x8xf32> -> tensor<2x32xf32>
// CHECK-NEXT: %[[R2:.*]] = nn.reshape %{{.*}} : tensor<8xf32> -> tensor<2x4xf32>
// CHECK-NEXT: %[[ALL:.*]] = nn.concat %[[R1]], %[[R2]] dim 1 : (tensor<2x32xf32>, tensor<2x4xf32>) -> tensor<2x36xf32>
// CHECK-NEXT: %[[S:.*]] = tp.reduce_scatter sum %[[ALL]] dim 0 over @mesh {dp} {bytes = 144 : i64, fqn = "a.w, a.b"} : tensor<2x36xf32> -> tensor<1x36xf32>
// CHECK-NEXT: %[[F:.*]] = nn.reshape %[[S]] : tensor<1x36xf32> -> tensor<36xf32>
// CHECK-NEXT: %[[GW:.*]] = nn.slice %[[F]] dim 0 start 0 step 1 : tensor<36xf32> -> tensor<32xf32>
// CHECK-NEXT: %[[GW2:.*]] = nn.reshape %[[GW]] : tensor<32xf32> -> tensor<4x8xf32>
// CHECK-NEXT: %[[GB:.*]] = nn.slice %[[F]] dim 0 start 32 step 1 : tensor<36xf32> -> tensor<4xf32>
// CHECK-NEXT: tp.all_reduce sum %[[GW2]] over @mesh {r}
// CHECK-NEXT: nn.sub
// CHECK-NEXT: nn.assign "a.w"
// CHECK: nn.sub %{{.*}}, %[[GB]]
func.func @gradients(%g: tensor<8x8xf32>, %h: tensor<8xf32>) {
  %w = nn.parameter "a.w" {tp.fsdp_group = "a"} : tensor<4x8xf32>
  %b = nn.parameter "a.b" {tp.fsdp_group = "a"} : tensor<4xf32>
  %0 = tp.reduce_scatter sum %g dim 0 over @mesh {dp} {fqn = "a.w"} : tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = tp.all_reduce sum %0 over @mesh {r} : tensor<4x8xf32>
  %2 = nn.sub %w, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  nn.assign "a.w", %2 : tensor<4x8xf32>
  %e = nn.exp %h : tensor<8xf32>
  %3 = tp.reduce_scatter sum %e dim 0 over @mesh {dp} {fqn = "a.b"} : tensor<8xf32> -> tensor<4xf32>
  %4 = nn.sub %b, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  nn.assign "a.b", %4 : tensor<4xf32>
  return
}

// Uneven blocks, here the larger ones, are cut out of what is filled up.
// CHECK-LABEL: func.func @uneven
// CHECK: nn.concat %{{.*}} dim 0 : (tensor<6xf32>, tensor<1xf32>) -> tensor<7xf32>
// CHECK: tp.all_gather {{.*}} : tensor<7xf32> -> tensor<14xf32>
// CHECK: nn.slice %{{.*}} dim 0 start 0 step 1 : tensor<4x3xf32> -> tensor<3x3xf32>
// CHECK: nn.slice %{{.*}} dim 0 start 0 step 1 : tensor<2xf32> -> tensor<1xf32>
func.func @uneven() -> (tensor<3x3xf32>, tensor<1xf32>) attributes {tp.ranks = array<i64: 0, 2>} {
  %w = nn.parameter "a.w" {tp.fsdp_group = ""} : tensor<2x3xf32>
  %0 = tp.all_gather %w dim 0 over @mesh {dp} {fqn = "a.w"} : tensor<2x3xf32> -> tensor<3x3xf32>
  %b = nn.parameter "a.b" {tp.fsdp_group = ""} : tensor<1xf32>
  %1 = tp.all_gather %b dim 0 over @mesh {dp} {fqn = "a.b"} : tensor<1xf32> -> tensor<1xf32>
  return %0, %1 : tensor<3x3xf32>, tensor<1xf32>
}

// The smaller ones, of none of which a rank may have any element.
// CHECK-LABEL: func.func @uneven_rest
// CHECK: nn.concat %{{.*}} dim 0 : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
// CHECK: tp.all_gather {{.*}} : tensor<7xf32> -> tensor<14xf32>
func.func @uneven_rest() -> (tensor<3x3xf32>, tensor<1xf32>) attributes {tp.copy_of = @uneven, tp.ranks = array<i64: 1, 3>} {
  %w = nn.parameter "a.w" {tp.fsdp_group = ""} : tensor<1x3xf32>
  %0 = tp.all_gather %w dim 0 over @mesh {dp} {fqn = "a.w"} : tensor<1x3xf32> -> tensor<3x3xf32>
  %b = nn.parameter "a.b" {tp.fsdp_group = ""} : tensor<0xf32>
  %1 = tp.all_gather %b dim 0 over @mesh {dp} {fqn = "a.b"} : tensor<0xf32> -> tensor<1xf32>
  return %0, %1 : tensor<3x3xf32>, tensor<1xf32>
}
