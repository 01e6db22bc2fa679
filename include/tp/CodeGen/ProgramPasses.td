//===- ProgramPasses.td - A program as straight-line code --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_CODEGEN_PROGRAMPASSES_TD
#define TP_CODEGEN_PROGRAMPASSES_TD

include "mlir/Pass/PassBase.td"

def FlattenControlFlow : Pass<"tp-flatten-control-flow", "::mlir::func::FuncOp"> {
  let summary = "Turn loops and branches into straight-line code";
  let description = [{
    A program becomes straight-line code, in which buffers' lifetimes are intervals, and all ranks
    run the same collectives in the same order. An `scf.for` with constant bounds is unrolled. Both
    branches of an `scf.if` run, and the results are selected, so ranks that take different branches
    can't wait for each other's collectives.

    ```mlir
    %0 = scf.if %c -> tensor<8xf32> {
      %1 = math.exp %x : tensor<8xf32>
      scf.yield %1 : tensor<8xf32>
    } else {
      scf.yield %x : tensor<8xf32>
    }
    ```

    becomes

    ```mlir
    %1 = math.exp %x : tensor<8xf32>
    %0 = arith.select %c, %1, %x : tensor<8xf32>
    ```

    Fails at a loop whose number of iterations isn't known; if all loops together have more than
    4096 iterations; at a branch with an op that mustn't run if the condition is false; at any other
    op with control-flow regions; and at a call, which only the inliner can remove. Scalar loops and
    branches in the bodies of linalg ops stay. What was flattened is canonicalized, and equal ops are
    merged.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def CreateEntryPoint : Pass<"tp-create-entry-point", "::mlir::ModuleOp"> {
  let summary = "Give programs the signature of an artifact's entry";
  let description = [{
    A per-rank program takes tensors, names its parameters and returns tensors. In an artifact it
    gets its rank and one buffer for every input, parameter and output. This pass turns the first
    form into the second. It describes the buffers in the module's attribute `tprt.manifest`
    (docs/Artifact.md), using `tp.name`, `tp.symbolic_shape`, `tp.sharding` and
    `tp.global_type`.

    ```mlir
    func.func @main(%x: tensor<8x4xf32> {tp.name = "x"}) -> tensor<8x2xf32> {
      %w = nn.parameter "w" : tensor<2x4xf32>
      …
      return %y : tensor<8x2xf32>
    }
    ```

    becomes

    ```mlir
    func.func @main(%rank: index {tprt.role = "rank"}, %x: memref<8x4xf32> {tp.name = "x", tprt.role = "input"},
                    %w: memref<2x4xf32> {tprt.role = "parameter"}, %out: memref<8x2xf32> {tprt.role = "output"}) {
      %0 = bufferization.to_tensor %x restrict : …
      %1 = bufferization.to_tensor %w restrict : …
      …
      bufferization.materialize_in_destination %y in restrict writable %out : …
      return
    }
    ```

    Parameters with the same FQN become one argument. The programs are the functions with
    `tp.ranks`, which lists the ranks that run them. Without `tp.ranks`, the program is `@main` or
    the only function, and all ranks run it. Several programs have the same interface: each gets all
    parameters that any of them reads.

    Fails if a rank has no program or more than one, if programs differ in names, types or
    shardings, if a program still has global shapes (a sharding without `tp.global_type`, a
    `tp.redistribute`), or if its local types aren't those of its ranks' blocks.
  }];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect", "::mlir::tensor::TensorDialect"];
}

def LocateOrigins : Pass<"tp-locate-origins", "::mlir::ModuleOp"> {
  let summary = "Keep the ops' origins in their locations";
  let description = [{
    Adds each op's `tp.fqn`, name and position to its location. Lowering and fusion keep locations,
    so `tp-insert-profile-marks` can tell at the end which ops the code comes from. Nothing else
    changes.

    ```mlir
    %0 = nn.relu %x {tp.fqn = "net.1"} : tensor<8xf32> loc("m.py":1:1)
    ```

    becomes

    ```mlir
    %0 = nn.relu %x {tp.fqn = "net.1"} : tensor<8xf32> loc(fused<{fqn = "net.1", op = "relu", position = 4 : i64}>["m.py":1:1])
    ```
  }];
}

def ConvertTPToTPRT : Pass<"convert-tp-to-tprt", "::mlir::ModuleOp"> {
  let summary = "Turn collectives into runtime calls and rank queries into look-ups";
  let description = [{
    Each collective becomes `tprt.collective` with the next id, and an entry in the `collectives` of
    `tprt.manifest`. An all-reduce runs in place if nothing else uses its operand. `tp.shard_offset`
    becomes a look-up by rank in a constant, and `tp.local_slice` becomes a slice at such an offset.

    Programs of different ranks must run the same collectives in the same order, and the blocks of
    each group must fit together, because one entry describes a collective for all ranks. Otherwise
    the ranks would wait for each other forever; the error names the first difference.

    ```mlir
    %1 = tp.all_reduce sum %0 over @mesh {tp} : tensor<8x16xf32>
    ```

    becomes

    ```mlir
    %1 = tprt.collective 0 into %0 : tensor<8x16xf32> -> tensor<8x16xf32>
    ```

    A collective in a `tp.start` becomes `tprt.collective_start` and `tprt.collective_wait`, and is
    `started` in the manifest. Other ranks' programs may still run the same collective as a single
    `tprt.collective`.

    ```mlir
    %p = tp.start {
      %g = tp.all_gather %0 dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x8xf32>
      tp.yield %g : tensor<8x8xf32>
    } : !tp.pending<tensor<8x8xf32>>
    %1 = math.exp %y : tensor<8x8xf32>
    %2 = tp.wait %p : !tp.pending<tensor<8x8xf32>>
    ```

    becomes

    ```mlir
    %init = tensor.empty() : tensor<8x8xf32>
    %p = tprt.collective_start 0 %0 : tensor<8x4xf32> into %init : tensor<8x8xf32> -> tensor<8x8xf32>
    %1 = math.exp %y : tensor<8x8xf32>
    %2 = tprt.collective_wait 0 of %0 : tensor<8x4xf32> into %p : tensor<8x8xf32> -> tensor<8x8xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect",
    "::mlir::tprt::TPRTDialect"];
}

def OutlineRepeats : Pass<"tp-outline-repeats", "::mlir::ModuleOp"> {
  let summary = "Make ops that a program repeats one function";
  let description = [{
    A model repeats its layers. The passes after this one, and LLVM, then compile equal layers once.
    The pass looks for consecutive sequences of equally many ops that have the same names,
    attributes and types, compute from each other in the same way, and whose results are needed
    outside at the same places. They may differ in FQNs, in the numbers of their collectives, and in
    the parts that they take of an input, as microbatches do. One function takes what they read and
    write as buffers, and a `tprt.call` replaces each of them. A call takes the buffer of an input or
    parameter, instead of a tensor, if nothing updates it, or if only calls use it and none reads it
    after the call that updates it.

    ```mlir
    %w = bufferization.to_tensor %arg1 restrict : memref<4x4xf32> to tensor<4x4xf32>
    %v = bufferization.to_tensor %arg2 restrict : memref<4x4xf32> to tensor<4x4xf32>
    %1 = nn.linear %0, %w {tp.fqn = "layers.0"} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %2 = tprt.collective 0 into %1 : tensor<8x4xf32> -> tensor<8x4xf32>
    %3 = nn.linear %2, %v {tp.fqn = "layers.1"} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %4 = tprt.collective 1 into %3 : tensor<8x4xf32> -> tensor<8x4xf32>
    ```

    becomes

    ```mlir
    %2 = tprt.call @layer rank %rank ins(%0, %arg1 : tensor<8x4xf32>, memref<4x4xf32>)
      outs(%init0 : tensor<8x4xf32>) origins ["layers.0", ""] collectives [0] -> tensor<8x4xf32>
    %4 = tprt.call @layer rank %rank ins(%2, %arg2 : tensor<8x4xf32>, memref<4x4xf32>)
      outs(%init1 : tensor<8x4xf32>) origins ["layers.1", ""] collectives [1] -> tensor<8x4xf32>
    ```

    A parameter whose next value is computed is updated in its buffer, inside the function.

    Ops aren't fused across the ends of a function. So a sequence begins where the fewest ops could
    be fused with those before it, for example behind a collective; among such places, where the
    fewest values are needed later. Reshapes, transposes and slices move to the ops that read them,
    and so do integers that depend on no input, such as the indices of elements, so that no function
    stores what they give. A constant that differs between the calls, such as the stream of a
    dropout's random numbers, is an argument; on a device so is one that the runtime reads, such as
    a mask. An error about an index names the module of its call.

    Not outlined are ops with regions that use outer values, tensors without elements, and sequences
    at whose end a collective runs.
  }];
  let options = [Option<"minSaved", "min-saved", "unsigned", /*default=*/"192",
                        "Outline ops only if this many aren't compiled again">,
                 Option<"onDevice", "on-device", "bool", /*default=*/"false",
                        "The program runs on a CUDA device">];
  let statistics = [Statistic<"numOutlined", "outlined", "Sequences that became calls">];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect", "::mlir::tensor::TensorDialect",
    "::mlir::tprt::TPRTDialect"];
}

def MakeIntegersSignless : Pass<"make-integers-signless", "::mlir::ModuleOp"> {
  let summary = "Drop the signs of integer types";
  let description = [{
    `ui8` becomes `i8` in the types of all values and functions. `convert-nn-to-linalg` has already
    rewritten the ops that depend on the sign as ops on signless integers, between casts; this pass
    removes the casts. All other ops only move elements.

    ```mlir
    ^bb0(%x: ui8, %out: f32):
      %0 = builtin.unrealized_conversion_cast %x : ui8 to i8
      %1 = arith.extui %0 : i8 to i32
    ```

    becomes

    ```mlir
    ^bb0(%x: i8, %out: f32):
      %1 = arith.extui %x : i8 to i32
    ```
  }];
}

def ExpandTensorOps : Pass<"tp-expand-tensor-ops", "::mlir::func::FuncOp"> {
  let summary = "Express ops on tensors by structured ops and slices";
  let description = [{
    Rewrites ops that bufferization or the fusion of linalg ops doesn't support. Elementwise `arith`
    and `math` ops on tensors become `linalg.generic`; `linalg.softmax`, `linalg.pack` and
    `linalg.unpack` become the ops that they are made of; `tensor.concat` and `tensor.pad` become
    insertions; `tensor.gather`, and `tensor.scatter` at constant indices, become a `linalg.generic`
    that reads the source at the indices. A slice of a `linalg.fill` or of a `tensor.empty` becomes
    a smaller `linalg.fill` or `tensor.empty`.

    ```mlir
    %0 = arith.addf %a, %b : tensor<8xf32>
    ```

    becomes

    ```mlir
    %0 = linalg.generic {…} ins(%a, %b : tensor<8xf32>, tensor<8xf32>) outs(%a : tensor<8xf32>) { addf }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect", "::mlir::tprt::TPRTDialect"];
}

def CheckLowered : Pass<"tp-check-lowered", "::mlir::ModuleOp"> {
  let summary = "Report ops that code generation can't lower";
  let description = [{
    Reports, at its location, each op of the programs that isn't a runtime, linalg, tensor, arith or
    math op, or that works on tensors and can't be bufferized. The following passes would only
    report the first such op. The IR doesn't change.

    ```mlir
    // error: 'tensor.gather' can't be compiled: no lowering
    %2 = tensor.gather %0[%i] gather_dims([0]) : (tensor<4xf32>, tensor<4x1xindex>) -> tensor<4x1xf32>
    ```
  }];
}

#endif // TP_CODEGEN_PROGRAMPASSES_TD
