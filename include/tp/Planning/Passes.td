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

def ScalePlan : Pass<"tp-scale-plan", "::mlir::ModuleOp"> {
  let summary = "Predict what a plan costs on other numbers of ranks";
  let description = [{
    Gives one dimension of the plan's mesh after the other the sizes 1, 2, 4, … while the others keep
    theirs, and predicts each of these plans on a machine (docs/Prediction.md): the time, the memory
    of a rank, and the bytes that ranks receive. The model and its inputs stay the same, so this is
    strong scaling. Prints a table to the standard output, or writes JSON to `report`, which the page
    of `tp-report` takes as `scaling`. The program isn't changed. If this is the only pass, `tp-opt`
    prints the program only with `-o`:

    ```sh
    tp-opt model.mlir --tp-scale-plan="plan=plan.yaml machine=h100-nvlink"
    ```

    A size is left out, with the reason, if the plan would split something unevenly over it, or if
    the plan doesn't fit the model there. The dimension of a pipeline isn't varied, because its size is
    the number of stages that the plan names.

    Fails if the plan can't be applied to the model, if the module already has a `tp.mesh`, or if the
    plan lists the ranks of its mesh.
  }];
  let options = [
    RequiredPlan,
    Machine,
    Train,
    Option<"maxRanks", "max-ranks", "int64_t", "4096",
           "The largest number of ranks, all dimensions together; default 4096">,
    ReportOption<"report">,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect", "::mlir::nn::NNDialect"];
}

#endif // TP_PLANNING_PASSES_TD
