// RUN: tp-opt %s --tp-predict-traffic --remarks-filter=tp-predict-traffic --remark-format=emitRemark -o %t 2>&1 | FileCheck %s

// Blocks of 40 threads: the second warp has only eight, which read one sector. Wide words of shared memory go one by one.

// CHECK: partial {{.*}}Blocks=2, Launches=1, LeastBytes=640, LeastSharedPasses=80, MovedBytes=640, RequestedBytes=640,
// CHECK-SAME: Threads=40

module attributes {gpu.container_module} {
  func.func @main(%x: memref<80xf32>, %y: memref<80xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c40 = arith.constant 40 : index
    gpu.launch_func @kernels::@partial blocks in (%c2, %c1, %c1) threads in (%c40, %c1, %c1) args(%x : memref<80xf32>, %y : memref<80xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @partial(%x: memref<80xf32>, %y: memref<80xf32>) workgroup(%s : memref<2560xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 40, 1, 1>, known_grid_size = array<i32: 2, 1, 1>} {
      %c40 = arith.constant 40 : index
      %c64 = arith.constant 64 : index
      %wide = arith.constant dense<0.0> : vector<64xf32>
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %first = arith.muli %b, %c40 : index
      %i = arith.addi %first, %t : index
      %v = memref.load %x[%i] : memref<80xf32>
      %at = arith.muli %t, %c64 : index
      vector.store %wide, %s[%at] : memref<2560xf32, #gpu.address_space<workgroup>>, vector<64xf32>
      memref.store %v, %y[%i] : memref<80xf32>
      gpu.return
    }
  }
}
