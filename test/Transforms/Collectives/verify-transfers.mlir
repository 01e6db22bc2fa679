// RUN: tp-opt %s --tp-verify-collectives --split-input-file --verify-diagnostics | FileCheck %s

// Each stage waits for its own send only after it has received.
tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
// CHECK-LABEL: func.func @proven
func.func @proven(%x: tensor<4xf32>, %e: tensor<0xf32> {tp.absent}) -> tensor<4xf32> attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  %p = tp.start {
    %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
    tp.yield %0 : tensor<0xf32>
  } : !tp.pending<tensor<0xf32>>
  %y = tp.transfer %e from 1 to 0 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  %0 = tp.wait %p : !tp.pending<tensor<0xf32>>
  return %y : tensor<4xf32>
}
func.func @proven_stage1(%x: tensor<4xf32>, %e: tensor<0xf32> {tp.absent}) -> tensor<4xf32> attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @proven} {
  %p = tp.start {
    %0 = tp.transfer %x from 1 to 0 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
    tp.yield %0 : tensor<0xf32>
  } : !tp.pending<tensor<0xf32>>
  %y = tp.transfer %e from 0 to 1 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  %0 = tp.wait %p : !tp.pending<tensor<0xf32>>
  return %y : tensor<4xf32>
}

// -----

// Both wait for their sends first.
tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @deadlock(%x: tensor<4xf32>, %e: tensor<0xf32>) -> tensor<4xf32> attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  // expected-error@+1 {{the stages of the pipeline would wait for each other forever: stage 0 waits here for stage 1}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  %y = tp.transfer %e from 1 to 0 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @deadlock_stage1(%x: tensor<4xf32>, %e: tensor<0xf32>) -> tensor<4xf32> attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @deadlock} {
  // expected-note@+1 {{stage 1 waits here for stage 0}}
  %0 = tp.transfer %x from 1 to 0 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  %y = tp.transfer %e from 0 to 1 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @surplus(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  // expected-error@+1 {{rank 0 sends 2 values to rank 1, which receives 1}}
  %1 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}
// expected-note@+1 {{the other program is here}}
func.func @surplus_stage1(%e: tensor<0xf32>) attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @surplus} {
  %0 = tp.transfer %e from 0 to 1 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  return
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @types(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  // expected-note@+1 {{the other one is here}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}
func.func @types_stage1(%e: tensor<0xf32>) attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @types} {
  // expected-error@+1 {{rank 1 receives a value of type 'tensor<5xf32>', but rank 0 sends one of type 'tensor<4xf32>'}}
  %0 = tp.transfer %e from 0 to 1 over @mesh {pp} : tensor<0xf32> -> tensor<5xf32>
  return
}

// -----

tp.mesh @mesh(pp = 2, tp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @hidden(%x: tensor<4xf32> {tp.global_type = tensor<8xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}]>})
    attributes {tp.ranks = array<i64: 0, 1>, tp.stage = 0 : i64} {
  // expected-error@+1 {{sends a value that may differ along 'tp', which 'varying' doesn't name}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}
func.func @hidden_stage1(%e: tensor<0xf32>, %c: i1, %x: tensor<4xf32>)
    attributes {tp.ranks = array<i64: 2, 3>, tp.stage = 1 : i64, tp.stage_of = @hidden} {
  %0 = tp.transfer %e from 0 to 1 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  scf.if %c {
    %1 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  }
  return
}

// -----

// The collective in the branch is started.
tp.mesh @mesh(pp = 2, tp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @started(%x: tensor<4xf32> {tp.global_type = tensor<8xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}]>})
    attributes {tp.ranks = array<i64: 0, 1>, tp.stage = 0 : i64} {
  // expected-error@+1 {{sends a value that may differ along 'tp', which 'varying' doesn't name}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}
func.func @started_stage1(%e: tensor<0xf32>, %c: i1, %x: tensor<4xf32>)
    attributes {tp.ranks = array<i64: 2, 3>, tp.stage = 1 : i64, tp.stage_of = @started} {
  %0 = tp.transfer %e from 0 to 1 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  scf.if %c {
    %p = tp.start {
      %1 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
      tp.yield %1 : tensor<4xf32>
    } : !tp.pending<tensor<4xf32>>
    %2 = tp.wait %p : !tp.pending<tensor<4xf32>>
  }
  return
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func private @callee(%x: tensor<4xf32>) {
  %0 = tp.all_reduce sum %x over @mesh {pp} : tensor<4xf32>
  return
}
func.func @caller(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  // expected-error@+1 {{calls a function with collectives, in which transfers between stages aren't checked; inline the call first}}
  call @callee(%x) : (tensor<4xf32>) -> ()
  return
}
func.func @caller_stage1(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @caller} {
  call @callee(%x) : (tensor<4xf32>) -> ()
  return
}

// -----

// Nothing depends on it.
tp.mesh @mesh(pp = 2, tp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @undecided(%x: tensor<4xf32> {tp.global_type = tensor<8xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}]>})
    attributes {tp.ranks = array<i64: 0, 1>, tp.stage = 0 : i64} {
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}
func.func @undecided_stage1(%e: tensor<0xf32>) attributes {tp.ranks = array<i64: 2, 3>, tp.stage = 1 : i64, tp.stage_of = @undecided} {
  %0 = tp.transfer %e from 0 to 1 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  return
}

// -----

tp.mesh @mesh(pp = 2, tp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @differing(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0, 1>, tp.stage = 0 : i64} {
  // expected-note@+1 {{the other one is here}}
  %0 = tp.transfer %x from 0 to 1 varying {tp} over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}
func.func @differing_stage1(%e: tensor<0xf32>) attributes {tp.ranks = array<i64: 2, 3>, tp.stage = 1 : i64, tp.stage_of = @differing} {
  // expected-error@+1 {{sender and receiver say that the value differs along different mesh dimensions}}
  %0 = tp.transfer %e from 0 to 1 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  return
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @across(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  // expected-error@+1 {{'tp.all_reduce' is over 'pp', but the ranks along it run different stages of the pipeline; only 'tp.transfer' can be}}
  %0 = tp.all_reduce sum %x over @mesh {pp} : tensor<4xf32>
  return
}
func.func @across_stage1(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @across} {
  %0 = tp.all_reduce sum %x over @mesh {pp} : tensor<4xf32>
  return
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @branch(%x: tensor<4xf32>, %c: i1) attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  scf.if %c {
    // expected-error@+1 {{can't prove that the other stage takes part in a transfer in a branch or loop}}
    %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  }
  return
}
func.func @branch_stage1(%e: tensor<0xf32>, %c: i1) attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @branch} {
  return
}

// -----

tp.mesh @mesh(pp = 2)
func.func @no_stage(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>} {
  // expected-error@+1 {{is in a program that isn't a stage's: it needs 'tp.stage'}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}
func.func @no_stage_copy(%e: tensor<0xf32>) attributes {tp.ranks = array<i64: 1>, tp.copy_of = @no_stage} {
  %0 = tp.transfer %e from 0 to 1 over @mesh {pp} : tensor<0xf32> -> tensor<4xf32>
  return
}

// -----

tp.mesh @mesh(pp = 2)
// expected-error@+1 {{is a stage of a pipeline, but there is no 'tp.pipeline'}}
func.func @undeclared(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  return
}
func.func @undeclared_stage1(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @undeclared} {
  return
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
// expected-error@+1 {{rank 1 runs none of the programs}}
func.func @missing(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  return
}

// -----

tp.mesh @mesh(pp = 2)
// expected-error@+1 {{is a stage of @nothing, which must be the function of the first stage, with a body}}
func.func @orphan(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>, tp.stage = 1 : i64, tp.stage_of = @nothing} {
  return
}
