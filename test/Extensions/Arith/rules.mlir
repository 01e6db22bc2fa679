// RUN: tp-opt %s --tp-print-sharding-rules --verify-diagnostics -o /dev/null

func.func @sums(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>, %i: tensor<8xi32>, %b: tensor<8xi1>) {
  // Jointly linear; in one operand alone, if the other counts once.
  // expected-remark@+1 {{([0][1], [0][1]) -> ([0][1]) {0=8, 1=16} linear={{0, 1}} once={{0}, {1}}}}
  %0 = arith.addf %x, %y : tensor<8x16xf32>
  // expected-remark@+1 {{([0], [0]) -> ([0]) {0=8} linear={{0, 1}} once={{0}, {1}}}}
  %1 = arith.subi %i, %i : tensor<8xi32>
  // A sum of booleans is none.
  // expected-remark@+1 {{([0], [0]) -> ([0]) {0=8}}}
  %2 = arith.addi %b, %b : tensor<8xi1>
  // A part of a sum may overflow where the sum doesn't, which is undefined here.
  // expected-remark-re@+1 {{{{^}}([0], [0]) -> ([0]) {0=8}{{$}}}}
  %3 = arith.addi %i, %i overflow<nsw> : tensor<8xi32>
  // expected-remark-re@+1 {{{{^}}([0], [0]) -> ([0]) {0=8}{{$}}}}
  %4 = arith.subi %i, %i overflow<nuw> : tensor<8xi32>
  return
}

func.func @products(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>, %c: i1, %m: tensor<8x16xi1>) {
  // expected-remark@+1 {{([0][1], [0][1]) -> ([0][1]) {0=8, 1=16} linear={{0}, {1}}}}
  %0 = arith.mulf %x, %y : tensor<8x16xf32>
  // expected-remark@+1 {{linear={{0}}}}
  %1 = arith.divf %x, %y : tensor<8x16xf32>
  // expected-remark@+1 {{linear={{0}}}}
  %2 = arith.negf %x : tensor<8x16xf32>
  // A scalar corresponds to nothing.
  // expected-remark@+1 {{(, [0][1], [0][1]) -> ([0][1]) {0=8, 1=16} linear={{1, 2}}}}
  %3 = arith.select %c, %x, %y : tensor<8x16xf32>
  // expected-remark@+1 {{([0][1], [0][1], [0][1]) -> ([0][1]) {0=8, 1=16} linear={{1, 2}}}}
  %4 = arith.select %m, %x, %y : tensor<8x16xi1>, tensor<8x16xf32>
  return
}

func.func @casts(%x: tensor<8xf16>, %y: tensor<8xf32>, %i: tensor<8xi32>) {
  // expected-remark@+1 {{([0]) -> ([0]) {0=8} linear={{0}}}}
  %0 = arith.extf %x : tensor<8xf16> to tensor<8xf32>
  // Rounding a sum isn't summing what is rounded.
  // expected-remark-re@+1 {{{{^}}([0]) -> ([0]) {0=8}{{$}}}}
  %1 = arith.truncf %y : tensor<8xf32> to tensor<8xf16>
  // A part may wrap where the sum doesn't.
  // expected-remark-re@+1 {{{{^}}([0]) -> ([0]) {0=8}{{$}}}}
  %2 = arith.sitofp %i : tensor<8xi32> to tensor<8xf32>
  // expected-remark-re@+1 {{{{^}}([0], [0]) -> ([0]) {0=8}{{$}}}}
  %3 = arith.maximumf %y, %y : tensor<8xf32>
  return
}

func.func @constants() {
  // expected-remark@+1 {{() -> ([0]) {0=4}}}
  %0 = arith.constant dense<1.0> : tensor<4xf32>
  // Each rank cuts its block out of the constant.
  // expected-remark@+1 {{() -> ([0]) {0=4}}}
  %1 = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  // expected-remark@+1 {{() -> () {}}}
  %2 = arith.constant 1.0 : f32
  return
}
