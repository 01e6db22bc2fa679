// RUN: tp-opt %s --convert-tprt-to-calls --canonicalize | FileCheck %s --check-prefix=CALLS
// RUN: tp-opt %s --convert-tprt-to-calls --convert-scf-to-cf --convert-program-to-llvm --canonicalize | FileCheck %s

// Arguments go through a table of 8 bytes each, an index among them. Two calls of
// a kernel share the function that reads them.

// CALLS-LABEL: func.func @main
// CALLS: %[[FUNCTION:.+]] = llvm.mlir.addressof @kernel_0_range
// CALLS: %[[TABLE:.+]] = llvm.alloca %{{.+}} x i64
// CALLS: %[[X:.+]] = llvm.inttoptr
// CALLS: llvm.store %[[X]], %[[TABLE]] : !llvm.ptr, !llvm.ptr
// CALLS: %[[SLOT:.+]] = llvm.getelementptr %[[TABLE]][1]
// CALLS: llvm.store %c3_i64, %[[SLOT]] : i64, !llvm.ptr
// CALLS: call @tprt_parallel(%arg0, %[[FUNCTION]], %[[TABLE]], %c64_i64, %c90000_i64)
// CALLS: cf.cond_br
// CALLS: call @tprt_parallel
// CALLS: llvm.func @kernel_0_range(!llvm.ptr, i64, i64) attributes {tprt.range_of = @kernel_0}

// CHECK: llvm.func internal @kernel_0_range(%[[TABLE:.+]]: !llvm.ptr, %[[BEGIN:.+]]: i64, %[[END:.+]]: i64) {
// CHECK: %[[X:.+]] = llvm.load %[[TABLE]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[SLOT:.+]] = llvm.getelementptr %[[TABLE]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: %[[I:.+]] = llvm.load %[[SLOT]] : !llvm.ptr -> i64
// CHECK: llvm.call @kernel_0(%[[X]], %[[I]], %[[BEGIN]], %[[END]]) : (!llvm.ptr, i64, i64, i64) -> ()
// CHECK-NEXT: llvm.return
// CHECK-NOT: @kernel_0_range(
// CHECK: llvm.func @tpx_main
func.func private @kernel_0(%x: memref<64xf32>, %at: index, %begin: index, %end: index) {
  %value = memref.load %x[%at] : memref<64xf32>
  memref.store %value, %x[%begin] : memref<64xf32>
  return
}
func.func @main(%rank: index {tprt.role = "rank"}, %x: memref<64xf32> {tprt.role = "input"}, %y: memref<64xf32> {tprt.role = "output"}) {
  %c3 = arith.constant 3 : index
  tprt.parallel @kernel_0(%x, %c3) count 64 nanoseconds 90000 : memref<64xf32>, index
  tprt.parallel @kernel_0(%y, %c3) count 64 nanoseconds 90000 : memref<64xf32>, index
  return
}
