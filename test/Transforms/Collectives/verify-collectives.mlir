// RUN: tp-opt %s --tp-verify-collectives --split-input-file --verify-diagnostics | FileCheck %s

// Control flow that all ranks decide alike: by arguments that aren't split, by what was reduced, by constants.
tp.mesh @mesh(dp = 2, tp = 2)
// CHECK-LABEL: func.func @proven
func.func @proven(%x: tensor<4xf32> {tp.global_type = tensor<8xf32>, tp.sharding = #tp.sharding<@mesh, [{tp}]>}, %p: i1, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<4xf32> {
    %s = scf.if %p -> tensor<4xf32> {
      %a = tp.all_reduce sum %y over @mesh {tp} : tensor<4xf32>
      scf.yield %a : tensor<4xf32>
    } else {
      scf.yield %y : tensor<4xf32>
    }
    %e = nn.exp %s : tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  }
  %g = tp.all_reduce max %r over @mesh {dp, tp} : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %w = scf.while (%z = %g) : (tensor<4xf32>) -> tensor<4xf32> {
    %m = tp.all_reduce max %z over @mesh {dp, tp} : tensor<4xf32>
    %f = tensor.extract %m[%c0] : tensor<4xf32>
    %more = arith.cmpf ogt, %f, %zero : f32
    scf.condition(%more) %m : tensor<4xf32>
  } do {
  ^bb0(%z: tensor<4xf32>):
    %l = nn.neg %z : tensor<4xf32>
    scf.yield %l : tensor<4xf32>
  }
  %called = func.call @callee(%w, %p) : (tensor<4xf32>, i1) -> tensor<4xf32>
  return %called : tensor<4xf32>
}
func.func private @callee(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %s = scf.if %p -> tensor<4xf32> {
    %a = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    %b = tp.all_reduce sum %x over @mesh {dp} : tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}

// -----

// Nothing is issued in there: each rank may go its own way.
tp.mesh @mesh(tp = 2)
func.func @own_way(%x: tensor<4xf32>, %p: tensor<i1> {tp.sharding = #tp.sharding<@mesh, [], partial = {tp: sum}>}) -> tensor<4xf32> {
  %q = tensor.extract %p[] : tensor<i1>
  %s = scf.if %q -> tensor<4xf32> {
    %e = nn.exp %x : tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  %a = tp.all_reduce sum %s over @mesh {tp} : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

tp.mesh @mesh(dp = 2, tp = 2)
func.func @split_condition(%x: tensor<4xf32>, %p: tensor<1xi1> {tp.global_type = tensor<2xi1>, tp.sharding = #tp.sharding<@mesh, [{tp}]>}) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  // expected-note @+1 {{this is what it decides by}}
  %q = tensor.extract %p[%c0] : tensor<1xi1>
  // expected-error @+1 {{what 'scf.if' decides by may differ between ranks along 'tp'; the ranks would wait for each other forever}}
  %s = scf.if %q -> tensor<4xf32> {
    // expected-note @+1 {{'tp.all_reduce' is issued in it}}
    %a = tp.all_reduce sum %x over @mesh {dp} : tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}

// -----

// A loop that runs as often as this rank's index says.
tp.mesh @mesh(tp = 2)
func.func @own_bound(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %o = tp.shard_offset of 2 over @mesh {tp} : tensor<i64>
  %i = tensor.extract %o[] : tensor<i64>
  // expected-note @+1 {{this is what it decides by}}
  %n = arith.index_cast %i : i64 to index
  // expected-error @+1 {{what 'scf.for' decides by may differ between ranks along 'tp'}}
  %r = scf.for %j = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<4xf32> {
    // expected-note @+1 {{'tp.all_reduce' is issued in it}}
    %a = tp.all_reduce sum %y over @mesh {tp} : tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// The condition that the loop carries differs.
tp.mesh @mesh(tp = 2)
func.func @carried(%x: tensor<4xf32>, %b: tensor<1xi1> {tp.global_type = tensor<2xi1>, tp.sharding = #tp.sharding<@mesh, [{tp}]>}, %n: index, %true: i1) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%y = %x, %p = %true) -> (tensor<4xf32>, i1) {
    // expected-error @+1 {{what 'scf.if' decides by may differ}}
    %s = scf.if %p -> tensor<4xf32> {
      // expected-note @+1 {{'tp.all_reduce' is issued in it}}
      %a = tp.all_reduce sum %y over @mesh {tp} : tensor<4xf32>
      scf.yield %a : tensor<4xf32>
    } else {
      scf.yield %y : tensor<4xf32>
    }
    %q = tensor.extract %b[%c0] : tensor<1xi1>
    scf.yield %s, %q : tensor<4xf32>, i1
  } // expected-note @-11 {{this is what it decides by}}
  return %r#0 : tensor<4xf32>
}

// -----

// Programs of different ranks.
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tp.ranks = array<i64: 0>} {
  // expected-note @+1 {{the other one is here}}
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tp.copy_of = @main, tp.ranks = array<i64: 1>} {
  // expected-error @+1 {{'tp.all_reduce' has kind 2 : i32 in '@main_0' and 0 : i32 in '@main'; the ranks would wait for each other forever}}
  %0 = tp.all_reduce max %x over @mesh {tp} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tp.ranks = array<i64: 0>} {
  // expected-note @+1 {{the other one is here}}
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  %1 = tp.permute %0 from [1, 0] over @mesh {tp} : tensor<4xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @main_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tp.copy_of = @main, tp.ranks = array<i64: 1>} {
  // expected-error @+1 {{'tp.permute' of '@main_0' meets 'tp.all_reduce' of '@main'}}
  %1 = tp.permute %x from [1, 0] over @mesh {tp} : tensor<4xf32> -> tensor<4xf32>
  %0 = tp.all_reduce sum %1 over @mesh {tp} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tp.ranks = array<i64: 0>} {
  // expected-note @+1 {{this is the last one there}}
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tp.copy_of = @main, tp.ranks = array<i64: 1>} {
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  // expected-error @+1 {{'tp.all_reduce' of '@main_0' meets nothing in '@main'}}
  %1 = tp.all_reduce sum %0 over @mesh {tp} : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Loops that don't run equally often.
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tp.ranks = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @+1 {{by this there}}
  %n = arith.constant 3 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<4xf32> {
    %0 = tp.all_reduce sum %y over @mesh {tp} : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
func.func @main_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tp.copy_of = @main, tp.ranks = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @+1 {{and by this here}}
  %n = arith.constant 4 : index
  // expected-error @+1 {{what 'scf.for' decides by is computed in another way by other ranks}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<4xf32> {
    %0 = tp.all_reduce sum %y over @mesh {tp} : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

tp.mesh @mesh(tp = 2)
// expected-error @+1 {{can't prove that all ranks issue the same collectives where control flows between blocks}}
func.func @blocks(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  cf.cond_br %p, ^bb1, ^bb2
^bb1:
  // expected-note @+1 {{this collective is in one of them}}
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  return %0 : tensor<4xf32>
^bb2:
  return %x : tensor<4xf32>
}

// -----

tp.mesh @mesh(tp = 2)
func.func @parallel(%x: tensor<4xf32>) {
  // expected-error @+1 {{'scf.forall' doesn't say in which order, and how often, its regions run, but issues collectives}}
  scf.forall (%i) in (2) {
    // expected-note @+1 {{'tp.all_reduce' is issued in it}}
    %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  }
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @recursive(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{this is one of them}}
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<4xf32>
  // expected-error @+1 {{can't prove how often a function that calls itself issues its collectives}}
  %1 = func.call @recursive(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
