// RUN: tp-opt %s --tp-flatten-control-flow --split-input-file --verify-diagnostics

func.func @unknown(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'scf.for' can't be compiled: a program is straight-line code, and how often the loop runs isn't known; its bounds must be constants}}
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<8xf32> {
    scf.yield %a : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @many(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c = arith.constant 5000 : index
  // expected-error@+1 {{'scf.for' can't be compiled: a program is straight-line code, and unrolling it makes more than 4096 iterations}}
  %0 = scf.for %i = %c0 to %c step %c1 iter_args(%a = %x) -> tensor<8xf32> {
    %e = math.exp %a : tensor<8xf32>
    scf.yield %e : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @while(%x: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  // expected-error@+1 {{'scf.while' can't be compiled: a program is straight-line code, made of 'scf.for' with constant bounds and of 'scf.if'}}
  %0 = scf.while (%a = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    scf.condition(%c) %a : tensor<8xf32>
  } do {
  ^bb0(%a: tensor<8xf32>):
    scf.yield %a : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @effect(%m: memref<8xf32>, %i: index, %v: f32, %c: i1) {
  // expected-error@+1 {{'scf.if' can't be compiled: a program is straight-line code, which runs both branches}}
  scf.if %c {
    // expected-note@+1 {{'memref.store' mustn't run where the condition doesn't hold}}
    memref.store %v, %m[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @recursive(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{a call of '@recursive' can't be compiled: a program is one function, and recursive, external and indirect calls can't be inlined}}
  %0 = func.call @recursive(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @indirect(%f: (tensor<8xf32>) -> tensor<8xf32>, %x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{a call can't be compiled}}
  %0 = func.call_indirect %f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
