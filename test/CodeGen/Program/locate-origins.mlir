// RUN: tp-opt %s --tp-locate-origins --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: tp-opt %s --tp-lower-to-llvm | FileCheck %s --check-prefix=LOWERED

// CHECK: nn.relu {{.*}} loc(fused<{fqn = "net.0", op = "relu", position = 0 : i64}>["m.py":1:1])
// CHECK: arith.addf {{.*}} loc(fused<{fqn = "", op = "arith.addf", position = 1 : i64}>[

// After fusion both are one kernel.
// LOWERED: tprt.manifest = {{.*}}ops = [{bytes = 96 : i64, flops = 16 : i64, fqn = "net.0", kind = "kernel", op = "relu+arith.addf"}]
// LOWERED: llvm.call @tprt_mark(%{{.*}}, %{{.*}}) : (!llvm.ptr, i32) -> ()
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = nn.relu %x {tp.fqn = "net.0"} : tensor<8xf32> loc("m.py":1:1)
  %1 = arith.addf %0, %y : tensor<8xf32>
  return %1 : tensor<8xf32>
}
