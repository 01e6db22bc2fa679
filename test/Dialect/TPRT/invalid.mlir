// RUN: tp-opt %s --split-input-file --verify-diagnostics

func.func @bound(%ids: tensor<2xi64>) {
  // expected-error @+1 {{attribute 'bound' failed to satisfy constraint}}
  tprt.check_index %ids below -1 what "embedding" : tensor<2xi64>
  return
}

// -----

func.func @float(%ids: tensor<2xf32>) {
  // expected-error @+1 {{operand #0 must be}}
  tprt.check_index %ids below 4 what "embedding" : tensor<2xf32>
  return
}

// -----

func.func @used_before(%x: tensor<4xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{needs one use, the 'tprt.collective_wait' with its id and its input}}
  %0 = tprt.collective_start 0 %x : tensor<4xf32> into %y : tensor<8xf32> -> tensor<8xf32>
  %1 = tprt.collective_wait 0 of %x : tensor<4xf32> into %0 : tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @other_id(%x: tensor<4xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{needs one use, the 'tprt.collective_wait' with its id and its input}}
  %0 = tprt.collective_start 0 %x : tensor<4xf32> into %y : tensor<8xf32> -> tensor<8xf32>
  %1 = tprt.collective_wait 1 of %x : tensor<4xf32> into %0 : tensor<8xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

func.func @other_operand(%x: tensor<4xf32>, %y: tensor<8xf32>, %z: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{needs one use, the 'tprt.collective_wait' with its id and its input}}
  %0 = tprt.collective_start 0 %x : tensor<4xf32> into %y : tensor<8xf32> -> tensor<8xf32>
  %1 = tprt.collective_wait 0 of %z : tensor<4xf32> into %0 : tensor<8xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

func.func @missing(%x: memref<8xf32>) {
  // expected-error @+1 {{there is no function 'kernel'}}
  tprt.parallel @kernel(%x) count 8 nanoseconds 100 : memref<8xf32>
  return
}

// -----

// expected-note @+1 {{the function is here}}
func.func private @kernel(memref<8xf32>)
func.func @no_range(%x: memref<8xf32>) {
  // expected-error @+1 {{'kernel' doesn't take the arguments' types and a range of two 'index', without results}}
  tprt.parallel @kernel(%x) count 8 nanoseconds 100 : memref<8xf32>
  return
}

// -----

func.func private @kernel(memref<8xf32>, index, index)
func.func @negative(%x: memref<8xf32>) {
  // expected-error @+1 {{attribute 'count' failed to satisfy constraint}}
  tprt.parallel @kernel(%x) count -1 nanoseconds 100 : memref<8xf32>
  return
}

// -----

func.func @gemm_adds_twice(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %c: memref<8x16xf32>) {
  // expected-error @+1 {{accumulates, and has an addend beside C}}
  tprt.gemm %a, %b into %c accumulate addend %c [16, 0, 0] sizes [8, 16, 4] batch [1, 1]
    a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
    : memref<8x4xf32>, memref<16x4xf32>, memref<8x16xf32> addend memref<8x16xf32>
  return
}

// -----

func.func @gemm_addend_in_c(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %c: memref<8x16xf32>) {
  // expected-error @+1 {{the addend is in C's buffer}}
  tprt.gemm %a, %b into %c addend %c [16, 0, 0] sizes [8, 16, 4] batch [1, 1]
    a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
    : memref<8x4xf32>, memref<16x4xf32>, memref<8x16xf32> addend memref<8x16xf32>
  return
}

// -----

func.func @gemm_factor_in_c(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %c: memref<8x16xf32>) {
  %v = memref.subview %c[0, 0] [8, 16] [1, 1] : memref<8x16xf32> to memref<8x16xf32, strided<[16, 1]>>
  // expected-error @+1 {{the factor is in C's buffer}}
  tprt.gemm %a, %b into %c factor %v [16, 0, 0] sizes [8, 16, 4] batch [1, 1]
    a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
    : memref<8x4xf32>, memref<16x4xf32>, memref<8x16xf32> factor memref<8x16xf32, strided<[16, 1]>>
  return
}

// -----

func.func @gemm_strides(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %c: memref<8x16xf32>) {
  // expected-error @+1 {{needs 3 strides of the factor, and only where there is one}}
  tprt.gemm %a, %b into %c factor %a [16] sizes [8, 16, 4] batch [1, 1]
    a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
    : memref<8x4xf32>, memref<16x4xf32>, memref<8x16xf32> factor memref<8x4xf32>
  return
}

// -----

func.func @gemm_types(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %c: memref<8x16xf32>, %x: memref<8x16xf16>) {
  // expected-error @+1 {{needs one element type}}
  tprt.gemm %a, %b into %c addend %x [16, 0, 0] sizes [8, 16, 4] batch [1, 1]
    a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
    : memref<8x4xf32>, memref<16x4xf32>, memref<8x16xf32> addend memref<8x16xf16>
  return
}

// -----

func.func @gemm_activation(%a: memref<8x4xf32>, %b: memref<16x4xf32>, %c: memref<8x16xf32>) {
  // expected-error @+1 {{expected string or keyword containing one of the following enum values}}
  tprt.gemm %a, %b into %c activation mish sizes [8, 16, 4] batch [1, 1]
    a [4, 1, 0, 0] b [1, 4, 0, 0] c [16, 0, 0]
    : memref<8x4xf32>, memref<16x4xf32>, memref<8x16xf32>
  return
}
