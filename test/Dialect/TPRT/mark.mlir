// RUN: tp-opt %s --verify-roundtrip | FileCheck %s
// RUN: tp-opt %s --canonicalize --cse | FileCheck %s

// Marks stay in place, and equal ones aren't merged.

// CHECK-LABEL: @main
// CHECK: tprt.mark 3
// CHECK-NEXT: tprt.mark 3
func.func @main() {
  tprt.mark 3
  tprt.mark 3
  return
}
