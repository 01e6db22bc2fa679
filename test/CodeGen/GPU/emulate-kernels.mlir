// RUN: tp-opt %s --convert-scf-to-cf --tp-emulate-kernels | FileCheck %s

// A thread reads who it is, meets others in the emulator, and finds its block's shared memory behind a pointer.

// CHECK-NOT: gpu.
// CHECK-LABEL: llvm.func internal @kernel_body
// CHECK-SAME: (%[[SELF:.+]]: !llvm.ptr, %[[A:.+]]: !llvm.ptr, %[[N:.+]]: i64, %[[S:.+]]: !llvm.ptr, %[[T:.+]]: !llvm.ptr)
// CHECK: llvm.load %[[SELF]] : !llvm.ptr -> i32
// CHECK: %[[BLOCK:.+]] = llvm.getelementptr %[[SELF]][1] : (!llvm.ptr) -> !llvm.ptr, i32
// CHECK: llvm.call @tp_emulated_shuffle_xor(%[[SELF]], %{{.+}}, %{{.+}}) : (!llvm.ptr, i32, i32) -> i32
// CHECK: llvm.call @tp_emulated_barrier(%[[SELF]]) : (!llvm.ptr) -> ()
// CHECK: llvm.mlir.global external constant @kernel_num_arguments(2 : i32)
// CHECK: llvm.mlir.global external constant @kernel_shared_bytes(192 : i32)
// CHECK: llvm.mlir.global external constant @kernel_max_threads(32 : i32)
// CHECK: llvm.func @kernel(%[[SELF:.+]]: !llvm.ptr, %[[TABLE:.+]]: !llvm.ptr)
// CHECK: llvm.getelementptr %[[TABLE]][0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: llvm.getelementptr %[[TABLE]][1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: %[[SLOT:.+]] = llvm.getelementptr %[[SELF]][2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK: %[[SHARED:.+]] = llvm.load %[[SLOT]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.getelementptr %[[SHARED]][128] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK: llvm.call @kernel_body
module {
  gpu.module @kernels {
    gpu.func @kernel(%a: memref<32xi32>, %n: i64) workgroup(%s: memref<32xi32, #gpu.address_space<workgroup>>, %t: memref<8xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %thread = gpu.thread_id x
      %block = gpu.block_id x
      %c1 = arith.constant 1 : i32
      %c32 = arith.constant 32 : i32
      %i = arith.index_cast %n : i64 to index
      %j = arith.addi %thread, %block : index
      %k = arith.addi %i, %j : index
      %0 = memref.load %a[%k] : memref<32xi32>
      %1, %valid = gpu.shuffle xor %0, %c1, %c32 : i32
      memref.store %1, %s[%thread] : memref<32xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      gpu.return
    }
  }
}
