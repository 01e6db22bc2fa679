//===- Passes.td - Passes that make plans ------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PLANNING_PASSES_TD
#define TP_PLANNING_PASSES_TD

include "tp/Transforms/Options.td"

def AutoPlan : Pass<"tp-auto-plan", "::mlir::ModuleOp"> {
  let summary = "Find a parallelize plan by predicted time and memory";
  let description = [{
    Finds a plan (docs/Plans.md) for a model on a machine (docs/Prediction.md), and prints it to the
    standard output or to `file`, with its predicted costs and those of the best alternatives as
    comments. The program isn't changed. If this is the only pass, `tp-opt` prints the program only
    with `-o`:

    ```sh
    tp-opt model.mlir --tp-auto-plan="ranks=8 machine=h100-nvlink file=plan.yaml"
    ```

    The mesh is given (`mesh=dp=2,tp=4`), or all meshes of one or two dimensions with `ranks` ranks
    are tried. Each mesh dimension splits the batch (`ddp` or `fsdp`) or the model's parameters. For
    each choice, the search of `tp-propagate` finds placements of parameters with little computing,
    communicating and memory, for several prices of memory. They are written as styles, or as
    placements of parameters where no style says the same. Each plan that results is compiled as by
    `tp-parallelize` and predicted. The fastest of them whose ranks need at most `memory-limit` bytes
    wins. Norms are split along the sequence (`SequenceParallel`) where that saves time or memory.

    With a training file, plans that need too much memory are tried with recomputation as well:
    first, modules with weights are kept, then only the inputs of the model's blocks are. The keys
    `checkpoint` and `keep` that this needs are printed as comments, and `train-file` writes the
    whole training file. A training file that has these keys already is taken as it is.

    Fails, with the least memory that any of these plans needs, and the largest value in it, if none
    fits. Fails if the module already
    has a `tp.mesh`, or if the mesh or the machine is wrong.
  }];
  let options = [
    Option<"ranks", "ranks", "int64_t", "0", "The number of ranks; all meshes {dp, tp} are tried">,
    Option<"mesh", "mesh", "std::string", "",
           "The names and sizes of the mesh's dimensions, major to minor: dp=2,tp=4">,
    Machine,
    Option<"memoryLimit", "memory-limit", "uint64_t", "0",
           "The bytes that a rank may need; 0 (the default): what a device of the machine has">,
    Train,
    Option<"file", "file", "std::string", "",
           "Path of the plan to write; empty: the standard output">,
    Option<"trainFile", "train-file", "std::string", "",
           "Path of the training file to write: that of `train`, with the recomputation that is "
           "chosen">,
    ReportOption<"report">,
    Option<"alternatives", "alternatives", "unsigned", "5",
           "The number of other plans to list, with their costs">,
    SearchBudget,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect", "::mlir::nn::NNDialect"];
}

#endif // TP_PLANNING_PASSES_TD
