//===- CPUPasses.td - Code for the host --------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_CPUPASSES_TD
#define TP_CODEGEN_CPUPASSES_TD

include "mlir/Pass/PassBase.td"

def MultithreadKernels : Pass<"tp-multithread-kernels", "::mlir::ModuleOp"> {
  let summary = "Let the runtime run large kernels in parts, on several threads";
  let description = [{
    A kernel that takes long enough, estimated from the floating-point operations and bytes of the
    mark before its call, becomes a function of a range of its iterations. Its calls become
    `tprt.parallel`, and the runtime decides how many threads share the range.

    The iterations are those of a nest that `tp-fuse-rows` made, or of the outer parallel loops of a
    linalg op. If these are too few, as in a sum over rows, the contiguous loop is cut into blocks
    as well. An iteration runs the same code in every range, and nothing is summed across
    iterations, so results don't depend on the number of threads.

    ```mlir
    tprt.mark 0    // {flops = 1048576, bytes = 8388608, …}
    func.call @kernel_0(%a, %b) : (memref<1024x1024xf32>, memref<1024x1024xf32>) -> ()

    func.func private @kernel_0(%a: memref<1024x1024xf32>, %b: memref<1024x1024xf32>) {
      linalg.generic {parallel, parallel} ins(%a) outs(%b)
      return
    }
    ```

    becomes

    ```mlir
    tprt.parallel @kernel_0(%a, %b) count 1024 nanoseconds 655360 : memref<1024x1024xf32>, memref<1024x1024xf32>

    func.func private @kernel_0(%a: memref<1024x1024xf32>, %b: memref<1024x1024xf32>, %begin: index, %end: index) {
      scf.for %i = %begin to %end {
        linalg.generic {parallel, parallel} ins(%a[%i, :]) outs(%b[%i, :])
      }
      return
    }
    ```

    A nest of loops is shared if each of its iterations touches only its own rows of the buffers
    that the nest writes. Buffers on the stack that an iteration writes before it reads them are
    allowed, because every part has its own. Other kernels stay calls. A kernel also stays a call if
    it has any use other than calls at the top level of entry programs, each after a mark for which
    the manifest has flops and bytes.
  }];
  let options = [
    Option<"minNanoseconds", "min-nanoseconds", "int64_t", "50000",
           "Kernels whose estimated time on one core is shorter than this stay calls">];
  let statistics = [Statistic<"numShared", "shared", "Kernels that run in parts">];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::tprt::TPRTDialect"];
}

def LowerKernels : Pass<"tp-lower-kernels", "::mlir::func::FuncOp"> {
  let summary = "Turn linalg ops on buffers into loops that vectorize";
  let description = [{
    The innermost loop is the one along which most operands are contiguous. The loops around it keep
    their order, with reductions inside parallel loops. A reduction of 32 elements or more in the
    innermost loop, if it may be reassociated, becomes 16 partial reductions, joined in pairs at the
    end. LLVM vectorizes them, and their order doesn't depend on what else the loop computes. In
    f32, exp, log, tanh and erf become polynomials, so LLVM can vectorize the loops around them.
    Other functions stay calls of the C library.

    ```mlir
    linalg.generic {… ["parallel", "reduction"]} ins(%x : memref<8x16xf32>) outs(%y : memref<8xf32>) { addf }
    ```

    becomes

    ```mlir
    scf.for %r = %c0 to %c8 step %c1 {
      scf.for %c = %c0 to %c16 step %c1 {
        %0 = memref.load %x[%r, %c] : memref<8x16xf32>
        %1 = memref.load %y[%r] : memref<8xf32>
        %2 = arith.addf %1, %0 : f32
        memref.store %2, %y[%r] : memref<8xf32>
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def ConvertTPRTToCalls : Pass<"convert-tprt-to-calls", "::mlir::ModuleOp"> {
  let summary = "Call the runtime's C functions";
  let description = [{
    A program gets the runtime's context as its first argument and returns a status. Each tprt op
    becomes a call of its C function (docs/Artifact.md). If the call's status isn't 0, the program
    returns it immediately.

    ```mlir
    tprt.collective 3 into %0 : memref<8x16xf32>
    ```

    becomes

    ```mlir
    %s = func.call @tprt_collective(%ctx, %c3, %p, %p) : (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> i32
    %failed = arith.cmpi ne, %s, %c0 : i32
    cf.cond_br %failed, ^exit(%s : i32), ^next
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def ConvertProgramToLLVM : Pass<"convert-program-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Lower a program to the LLVM dialect";
  let description = [{
    Lowers the remaining ops (func, cf, arith, math, memref) to the LLVM dialect; buffers become
    bare pointers. Adds the exported entry `tpx_main`, which reads the pointers from its tables and
    calls the rank's program. `convert-tprt-to-calls` has declared the functions that
    `tprt_parallel` calls; here they get bodies, which read a kernel's arguments from their table.
    Programs only call kernels, layers and the runtime, so LLVM doesn't optimize them: its time for
    a function of many calls would grow faster than their number.

    ```mlir
    func.func @main(%ctx: !llvm.ptr {tprt.role = "context"}, %rank: index {tprt.role = "rank"},
                    %x: memref<8xf32> {tprt.role = "input"}, %y: memref<8xf32> {tprt.role = "output"}) -> i32 {…}
    ```

    becomes

    ```mlir
    llvm.func internal @main(%ctx: !llvm.ptr, %rank: i64, %x: !llvm.ptr, %y: !llvm.ptr) -> i32 {…}
    llvm.func @tpx_main(%ctx: !llvm.ptr, %rank: i64, %inputs: !llvm.ptr, %parameters: !llvm.ptr,
                        %outputs: !llvm.ptr, %arena: !llvm.ptr) -> i32 {
      %xslot = llvm.getelementptr %inputs[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
      %x = llvm.load %xslot : !llvm.ptr -> !llvm.ptr
      %yslot = llvm.getelementptr %outputs[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
      %y = llvm.load %yslot : !llvm.ptr -> !llvm.ptr
      %status = llvm.call @main(%ctx, %rank, %x, %y) : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> i32
      llvm.return %status : i32
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // TP_CODEGEN_CPUPASSES_TD
