// A program whose ranks would wait forever, or that sends what nobody receives, has no predicted time.
// RUN: tp-opt %s --split-input-file --verify-diagnostics --tp-report=machine=cpu

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @received(%e: tensor<0xf32>) -> tensor<4xf32> attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  // expected-error@+1 {{the program has no predicted time, because its ranks would wait forever: rank 0 waits here for rank 1}}
  %0 = tp.transfer %e from 1 to 0 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @received_stage1(%e: tensor<0xf32>) -> tensor<4xf32> attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @received} {
  %0 = nn.constant dense<1.0> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @sent(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  // expected-error@+1 {{the program has no predicted time: rank 0 sends a value here, and rank 1 doesn't receive it}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}
func.func @sent_stage1(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @sent} {
  return
}

// -----

// Each stage waits for what the other one sends later.
tp.mesh @mesh(pp = 2, tp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @crossed(%e: tensor<0xf32>) attributes {tp.ranks = array<i64: 0, 1>, tp.stage = 0 : i64} {
  // expected-error@+1 {{its ranks would wait forever: rank 0 waits here for rank 2}}
  %0 = tp.transfer %e from 1 to 0 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  %1 = tp.transfer %0 from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}
func.func @crossed_stage1(%e: tensor<0xf32>) attributes {tp.ranks = array<i64: 2, 3>, tp.stage = 1 : i64, tp.stage_of = @crossed} {
  // expected-note@+1 {{rank 2 waits here for rank 0}}
  %0 = tp.transfer %e from 0 to 1 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  %1 = tp.transfer %0 from 1 to 0 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}
