// RUN: tp-opt %s --tp-predict-traffic --split-input-file --verify-diagnostics
// RUN: not tp-opt %s --tp-predict-traffic=max-blocks=0 --split-input-file 2>&1 | FileCheck %s
// RUN: not tp-opt %s --tp-predict-traffic=max-blocks=-1 --split-input-file 2>&1 | FileCheck %s

// CHECK: 'max-blocks' must be at least 1

module attributes {gpu.container_module} {
  func.func @main(%x: memref<96xf32>) {
    %c1 = arith.constant 1 : index
    %c96 = arith.constant 96 : index
    gpu.launch_func @kernels::@unknown blocks in (%c1, %c1, %c1) threads in (%c96, %c1, %c1) args(%x : memref<96xf32>)
    return
  }
  gpu.module @kernels {
    // expected-error @+1 {{needs 'known_grid_size' and 'known_block_size' of one dimension, as 'tp-map-kernels-to-gpu' gives them}}
    gpu.func @unknown(%x: memref<96xf32>) kernel {
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  func.func @main(%x: memref<96xf32>) {
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    gpu.launch_func @kernels::@plane blocks in (%c1, %c1, %c1) threads in (%c8, %c8, %c1) args(%x : memref<96xf32>)
    return
  }
  gpu.module @kernels {
    // expected-error @+1 {{of one dimension}}
    gpu.func @plane(%x: memref<96xf32>) kernel attributes {known_block_size = array<i32: 8, 8, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      gpu.return
    }
  }
}
