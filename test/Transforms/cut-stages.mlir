// RUN: tp-opt %s --tp-cut-stages --split-input-file | FileCheck %s
// RUN: tp-opt %s --tp-cut-stages --tp-verify-collectives --split-input-file -o /dev/null

// Forward and backward passes of three microbatches, in the order of 1F1B. A stage holds the parameters that it reads;
// scalars are returned by both.
tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 3

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
// CHECK-SAME: tp.ranks = array<i64: 0>, tp.stage = 0 : i64
// CHECK-NOT: tp.pass
// CHECK: %[[A:.*]] = nn.parameter "a"
// CHECK-NEXT: %[[F0:.*]] = nn.mul %[[X]], %[[A]]
// CHECK-NEXT: %[[P0:.*]] = tp.start
// CHECK-NEXT: tp.transfer %[[F0]] from 0 to 1 over @mesh {pp} {bytes = 0 : i64, fqn = "", reason = "pipeline: stage 0 to 1, forward pass of microbatch 0"} : tensor<4xf32> -> tensor<0xf32>
// CHECK: %[[F1:.*]] = nn.add %[[X]], %[[A]]
// CHECK: %[[P1:.*]] = tp.start
// CHECK-NEXT: tp.transfer %[[F1]] from 0 to 1 {{.*}} forward pass of microbatch 1
// CHECK: tp.transfer %{{.*}} from 1 to 0 over @mesh {pp} {bytes = 16 : i64, {{.*}} backward pass of microbatch 0"} : tensor<0xf32> -> tensor<4xf32>
// CHECK: %[[G0:.*]] = tp.wait
// CHECK-NEXT: %[[B0:.*]] = nn.mul %[[X]], %[[G0]]
// CHECK: %[[F2:.*]] = nn.sub %[[X]], %[[A]]
// The value of microbatch 0 has arrived long ago.
// CHECK-NEXT: tp.wait %[[P0]]
// CHECK-NEXT: %[[P2:.*]] = tp.start
// CHECK-NEXT: tp.transfer %[[F2]] from 0 to 1 {{.*}} forward pass of microbatch 2
// CHECK: backward pass of microbatch 1
// CHECK: backward pass of microbatch 2
// CHECK: %[[NEW:.*]] = nn.add
// CHECK: nn.assign "a", %[[NEW]]
// CHECK: %[[LOSS:.*]] = nn.reshape %{{.*}} : tensor<1xf32> -> tensor<f32>
// CHECK: tp.wait %[[P1]]
// CHECK-NEXT: tp.wait %[[P2]]
// CHECK-NEXT: return %[[LOSS]], %[[NEW]]

// CHECK-LABEL: func.func @main_stage1
// CHECK-SAME: (%{{.*}}: tensor<0xf32> {tp.absent}) -> (tensor<f32>, tensor<0xf32> {tp.absent})
// CHECK-SAME: tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @main
// CHECK-NOT: nn.parameter "a"
// CHECK: forward pass of microbatch 0
// CHECK: backward pass of microbatch 0
// CHECK: forward pass of microbatch 1
// CHECK: backward pass of microbatch 1
// CHECK: forward pass of microbatch 2
// CHECK: backward pass of microbatch 2
// CHECK: nn.assign "b"
func.func @main(%x: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  %a = nn.parameter "a" : tensor<4xf32>
  %b = nn.parameter "b" : tensor<4xf32>
  %f0 = nn.mul %x, %a {tp.pass = 0 : i64, tp.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %l0 = nn.mul %f0, %b {tp.pass = 0 : i64, tp.stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g0 = nn.exp %l0 {tp.pass = 1 : i64, tp.stage = 1 : i64} : tensor<4xf32>
  %h0 = nn.mul %x, %g0 {tp.pass = 1 : i64, tp.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f1 = nn.add %x, %a {tp.pass = 2 : i64, tp.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %l1 = nn.mul %f1, %b {tp.pass = 2 : i64, tp.stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g1 = nn.exp %l1 {tp.pass = 3 : i64, tp.stage = 1 : i64} : tensor<4xf32>
  %h1 = nn.mul %x, %g1 {tp.pass = 3 : i64, tp.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f2 = nn.sub %x, %a {tp.pass = 4 : i64, tp.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %l2 = nn.mul %f2, %b {tp.pass = 4 : i64, tp.stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g2 = nn.exp %l2 {tp.pass = 5 : i64, tp.stage = 1 : i64} : tensor<4xf32>
  %h2 = nn.mul %x, %g2 {tp.pass = 5 : i64, tp.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // Unmarked ops run where their operands are.
  %s = nn.add %h0, %h1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = nn.add %s, %h2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  nn.assign "a", %t : tensor<4xf32>
  %u = nn.add %g0, %g1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v = nn.add %u, %g2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  nn.assign "b", %v : tensor<4xf32>
  %loss = nn.reduce sum %v dims [0] : tensor<4xf32> -> tensor<f32>
  return %loss, %t : tensor<f32>, tensor<4xf32>
}

// -----

// A tied weight, and what depends on no activation, are on both stages. Each of them gets the other's term of the
// weight's gradient, and adds them up in the same order. A value of stage 0 goes to stage 2 directly.
tp.mesh @mesh(pp = 3, tp = 2)
tp.pipeline @mesh over "pp" schedule "GPipe" microbatches 1

// CHECK-LABEL: func.func @tied(
// CHECK-SAME: tp.ranks = array<i64: 0, 1>
// CHECK: %[[MASK:.*]] = nn.exp %arg1
// CHECK: %[[W:.*]] = nn.parameter "w"
// CHECK: %[[Y:.*]] = nn.mul %[[MASK]], %[[W]]
// CHECK: tp.transfer %[[Y]] from 0 to 1 over
// CHECK: tp.transfer %[[Y]] from 0 to 2 over
// CHECK: tp.transfer %{{.*}} from 2 to 0 varying {tp} over
// CHECK: %[[G:.*]] = tp.wait
// CHECK: %[[N:.*]] = nn.add %[[Y]], %[[G]]
// CHECK: nn.assign "w", %[[N]]
// CHECK-LABEL: func.func @tied_stage1
// CHECK-SAME: tp.ranks = array<i64: 2, 3>
// CHECK-NOT: nn.parameter
// CHECK-NOT: nn.assign
// CHECK-LABEL: func.func @tied_stage2
// CHECK-SAME: tp.ranks = array<i64: 4, 5>
// CHECK: nn.exp %arg1
// CHECK: nn.parameter "w"
// CHECK: %[[Y:.*]] = tp.wait
// CHECK: %[[G:.*]] = nn.sub
// CHECK: %[[N:.*]] = nn.add %[[Y]], %[[G]]
// CHECK: nn.assign "w", %[[N]]
func.func @tied(%x: tensor<4xf32>, %positions: tensor<4xf32>, %part: tensor<4xf32> {tp.global_type = tensor<8xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}]>}) {
  %mask = nn.exp %positions {tp.stage = 0 : i64} : tensor<4xf32>
  %w = nn.parameter "w" : tensor<4xf32>
  %y = nn.mul %mask, %w {tp.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %z = nn.exp %y {tp.stage = 1 : i64} : tensor<4xf32>
  %q = nn.mul %z, %mask {tp.stage = 2 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r = nn.mul %q, %w {tp.stage = 2 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p = nn.mul %r, %part {tp.stage = 2 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = nn.sub %p, %y {tp.stage = 2 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %n = nn.add %y, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  nn.assign "w", %n : tensor<4xf32>
  return
}

// -----

// Without a pipeline, nothing changes.
tp.mesh @mesh(pp = 2)
// CHECK-LABEL: func.func @whole
// CHECK: nn.exp %{{.*}} {tp.stage = 0 : i64}
func.func @whole(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.exp %x {tp.stage = 0 : i64} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// What decides a branch isn't a tensor: each stage computes it from the tensor that it receives.
tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
// CHECK-LABEL: func.func @branch_stage1
// CHECK: tp.transfer %{{.*}} from 0 to 1 {{.*}} -> tensor<1xi1>
// CHECK: %[[C:.*]] = tensor.extract
// CHECK: scf.if %[[C]]
func.func @branch(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = nn.parameter "w" : tensor<4xf32>
  %y = nn.mul %x, %w {tp.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %sum = nn.reduce sum %y dims [0] {tp.stage = 0 : i64} : tensor<4xf32> -> tensor<f32>
  %zero = nn.constant dense<0.0> : tensor<f32>
  %positive = nn.compare gt %sum, %zero {tp.stage = 0 : i64} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %c = tensor.extract %positive[] {tp.stage = 0 : i64} : tensor<i1>
  %r = scf.if %c -> tensor<4xf32> {
    %e = nn.exp %y : tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  } else {
    scf.yield %y : tensor<4xf32>
  } {tp.stage = 1 : i64}
  return %r : tensor<4xf32>
}
