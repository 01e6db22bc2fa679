// RUN: tp-opt %s --convert-tprt-to-calls --canonicalize | FileCheck %s

// Each argument of a kernel fills a slot of 8 bytes, zeros above a narrow number, because the driver
// of a device, or what stands for it, may read whole slots.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[NUMBER:[^:]+]]: i32, %[[FACTOR:[^:]+]]: bf16)
// CHECK-DAG: %[[VALUES:.+]] = llvm.alloca %{{.+}} x i64
// CHECK: llvm.store %{{.+}}, %[[VALUES]] : !llvm.ptr, !llvm.ptr
// CHECK: %[[SITE:.+]] = arith.extui %[[NUMBER]] : i32 to i64
// CHECK: llvm.store %[[SITE]], %{{.+}} : i64, !llvm.ptr
// CHECK: %[[BITS:.+]] = arith.bitcast %[[FACTOR]] : bf16 to i16
// CHECK: %[[SCALE:.+]] = arith.extui %[[BITS]] : i16 to i64
// CHECK: llvm.store %[[SCALE]], %{{.+}} : i64, !llvm.ptr
// CHECK: llvm.store %c7_i64, %{{.+}} : i64, !llvm.ptr
// CHECK: call @tprt_launch
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @add(%x: memref<64xf32>, %site: i32, %scale: bf16, %at: index) kernel {
    gpu.return
  }
}
func.func @main(%x: memref<64xf32> {tprt.role = "input"}, %site: i32, %scale: bf16) {
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<64xf32>, %site : i32, %scale : bf16, %c7 : index)
  return
}
}
