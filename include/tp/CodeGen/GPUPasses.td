//===- GPUPasses.td - Kernels of blocks and threads --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_GPUPASSES_TD
#define TP_CODEGEN_GPUPASSES_TD

include "mlir/Pass/PassBase.td"

def SplitReductions : Pass<"tp-split-reductions", "::mlir::func::FuncOp"> {
  let summary = "Split reductions to few elements into two steps";
  let description = [{
    A reduction over several dimensions to a few elements, such as the norm of a gradient, would run
    in equally few blocks of a device. If the result has fewer than 128 elements, and each reduces
    16384 elements or more, the reduction is split: the first op keeps the outermost reduced
    dimension of size 32 or more, and a second op reduces that dimension.

    ```mlir
    %1 = linalg.generic {… "reduction", "reduction"} ins(%x : tensor<4096x512xf32>) outs(%0 : tensor<f32>) { addf }
    ```

    becomes

    ```mlir
    %p = linalg.generic {… "parallel", "reduction"} ins(%x : tensor<4096x512xf32>) outs(%zeros : tensor<4096xf32>) { addf }
    %1 = linalg.generic {… "reduction"} ins(%p : tensor<4096xf32>) outs(%0 : tensor<f32>) { addf }
    ```

    Only reductions that may be reassociated are split: float sums that allow it, integer
    reductions, maxima.
  }];
  let statistics = [Statistic<"numSplit", "split", "Reductions in two steps">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
        "::mlir::tensor::TensorDialect"];
}

def CopyConstantsToDevice : Pass<"tp-copy-constants-to-device", "::mlir::func::FuncOp"> {
  let summary = "Give calls of the runtime copies of constants on the device";
  let description = [{
    The program's constants are in the host's memory, and each kernel has its own copy of those that
    it reads. What the runtime reads on the device (a constant mask of an attention, constant
    indices) is therefore copied to a buffer, by a kernel.

    ```mlir
    %0 = memref.get_global @mask : memref<8x8xi1>
    tprt.attention %q, %k, %v mask %0 …
    ```

    becomes

    ```mlir
    %0 = memref.get_global @mask : memref<8x8xi1>
    %1 = memref.alloc() : memref<8x8xi1>
    linalg.copy ins(%0) outs(%1)
    tprt.attention %q, %k, %v mask %1 …
    ```
  }];
  let statistics = [Statistic<"numCopied", "copied", "Constants copied to the device">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect"];
}

def MapKernelsToGPU : Pass<"tp-map-kernels-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Spread kernels over the threads of a GPU";
  let description = [{
    Each kernel becomes a `gpu.func` of the module `@kernels`, and each call of it a
    `gpu.launch_func` with as many blocks and threads as its iterations need. Ids, blocks and grids
    only use dimension x.

    - A thread of an elementwise op computes as many elements as 128 bits hold, at most 8, if the
      buffers are contiguous and aligned for that. Loops that walk all buffers like a single loop
      are merged. If operands are contiguous along a different loop than the results (transposes), a
      block computes a tile of up to 64 × 64 elements, and loads those operands through shared
      memory.
    - A nest of loops over rows, and a reduction, gets a team of 1 to 1024 threads per row. Within a
      row, the threads divide each op's elements among themselves. A reduction ends with shuffles,
      and beyond a warp in shared memory. One-element results are kept in the registers of all
      threads, row buffers in shared memory. There is a barrier only where one thread reads what
      another has written.
    - If memory is contiguous across iterations rather than within one (sums over the rows of a
      matrix), consecutive threads take consecutive iterations.
    - Loops that aren't linalg ops (scattered sums) keep their order. The longest loop of such a
      nest whose iterations write disjoint elements is spread over threads.

    Sums are computed in the same order on every run. `tprt.check_index` becomes a kernel that
    reports to the rank's error record; the number of the error's text is a `tprt.site`. A store of a
    number into a buffer by the program becomes `tprt.fill`.

    ```mlir
    func.call @kernel_0(%a, %b) : (memref<1024xf32>, memref<1024xf32>) -> ()
    ```

    becomes

    ```mlir
    gpu.launch_func @kernels::@kernel_0 blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1) args(%a : memref<1024xf32>, %b : memref<1024xf32>)
    ```

    Fails at an op with an index that isn't linear in the loops, at a nest whose row buffers take
    more than 48 KiB of shared memory, and at loops none of which is known to be parallel.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
        "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::tprt::TPRTDialect",
        "::mlir::vector::VectorDialect"];
}

def PredictTraffic : Pass<"tp-predict-traffic", "::mlir::ModuleOp"> {
  let summary = "Count the bytes that kernels move through a device's memory";
  let description = [{
    Runs after `tp-map-kernels-to-gpu`. For each kernel that the module launches, executes the index
    arithmetic of all threads, and counts the 32-byte sectors that its loads and stores touch.
    Nothing is measured. The device is a model with a cache of 25 MiB for data that is read again,
    and 132 processors of 2048 threads.

    - `LeastBytes`: the data that the kernel reads before it writes it, counted once, and the data
      that it writes, counted once.
    - `MovedBytes`: the sectors that come from memory or go to it. A sector is loaded again if the
      blocks that run at the same time have since touched more than the cache holds.
    - `RequestedBytes`: the sectors of every access of a warp, including those that are in the
      cache.
    - `SharedPasses`, `LeastSharedPasses`: how often shared memory's banks are accessed, and how
      often they would be without conflicts.

    An index that is loaded from memory is assumed to equal its own position there, as in lookups
    without repeats. A condition that depends on floats is assumed to be true. Each kernel gets a
    remark of the category `tp-predict-traffic`, with its `Blocks`, `Threads` and `Launches`. A
    kernel without a known one-dimensional grid and block size is an error.

    ```console
    $ tp-opt ranks.mlir --tp-lower-to-kernels --tp-predict-traffic --remarks-filter=tp-predict-traffic --remark-format=emitRemark -o /dev/null
    ranks.mlir:7:10: remark: [Analysis] kernel_0 | … | Blocks=1, Launches=1, LeastBytes=1152, …
    …
    ```
  }];
  let options = [
    Option<"maxBlocks", "max-blocks", "int64_t", "65536",
           "Maximum number of blocks of a kernel that are counted, in groups spread over the "
           "grid; the others are assumed to be like these">];
}

def ConvertKernelsToNVVM : Pass<"convert-kernels-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower the kernels of a GPU module to NVVM";
  let description = [{
    Kernels take bare pointers. Indices have 32 bits if these suffice for every buffer. Vectors are
    loaded and stored at their own alignment. Functions of the math dialect become functions of
    CUDA's device library.

    ```mlir
    gpu.func @kernel_0(%a: memref<1024xf32>) kernel { %t = gpu.thread_id x … }
    ```

    becomes

    ```mlir
    llvm.func @kernel_0(%a: !llvm.ptr) attributes {nvvm.kernel} { %t = nvvm.read.ptx.sreg.tid.x : i32 … }
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::cf::ControlFlowDialect",
        "::mlir::memref::MemRefDialect"];
}

def EmulateKernels : Pass<"tp-emulate-kernels", "::mlir::ModuleOp"> {
  let summary = "Turn kernels into functions that a CPU runs as a thread of a GPU";
  let description = [{
    Turns the kernels of a GPU module into host functions, to check kernels without a GPU. Each
    function runs as one thread: it takes a description of that thread and the kernel's parameters,
    and calls the emulator at barriers and shuffles.

    ```c
    #include <stdint.h>
    struct tp_emulated_thread { uint32_t thread, block, block_size, grid_size; void *shared; };
    void kernel_0(const struct tp_emulated_thread *self, void *const *arguments);
    extern const int32_t kernel_0_num_arguments;
    extern const int32_t kernel_0_shared_bytes, kernel_0_max_threads; // of a block; memory is aligned to 64
    // The emulator's:
    void tp_emulated_barrier(const struct tp_emulated_thread *self);
    uint32_t tp_emulated_shuffle_xor(const struct tp_emulated_thread *self, uint32_t value, uint32_t mask);
    ```

    ```mlir
    gpu.func @kernel_0(%a: memref<1024xf32>) kernel { %t = gpu.thread_id x … }
    ```

    becomes

    ```mlir
    llvm.func @kernel_0(%self: !llvm.ptr, %arguments: !llvm.ptr) { … }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::func::FuncDialect"];
}

#endif // TP_CODEGEN_GPUPASSES_TD
