// RUN: tp-opt %s --convert-program-to-llvm --verify-diagnostics

// expected-error @+1 {{argument 1 has no 'tprt.role' of a program's argument}}
func.func @main(%ctx: !llvm.ptr {tprt.role = "context"}, %x: memref<8xf32>) -> i32 {
  %0 = arith.constant 0 : i32
  return %0 : i32
}
