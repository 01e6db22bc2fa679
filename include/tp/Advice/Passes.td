//===- Passes.td - Passes that explain and report ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_ADVICE_PASSES_TD
#define TP_ADVICE_PASSES_TD

include "tp/Transforms/Options.td"

def PrintPlan : Pass<"tp-print-plan", "::mlir::ModuleOp"> {
  let summary = "Show what a parallelize plan means for a model";
  let description = [{
    Reads and checks a plan as `tp-apply-plan` does, and prints it to the standard output instead of
    applying it: the stages of a pipeline, every module with its style, the layouts that its inputs
    and outputs have and the layouts that they are redistributed to, and every parameter with its
    placements, one per mesh dimension, and its bytes per rank. The program isn't changed. If this is the only pass, `tp-opt`
    prints the program only with `-o`:

    ```sh
    tp-opt model.mlir --tp-print-plan="plan=plan.yaml"
    ```

    `format=json` prints the same as JSON. `format=python` prints the plan as PyTorch's
    `parallelize_module` takes it.
  }];
  let options = [
    RequiredPlan,
    Option<"format", "format", "::mlir::tp::PlanFormat", "::mlir::tp::PlanFormat::Text",
           "How to print: text (the default), json or python",
           [{::llvm::cl::values(
               clEnumValN(::mlir::tp::PlanFormat::Text, "text", "a table for people"),
               clEnumValN(::mlir::tp::PlanFormat::Json, "json", "the same as JSON"),
               clEnumValN(::mlir::tp::PlanFormat::Python, "python", "the plan for PyTorch"))}]>,
    Strict,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect"];
}

def Explain : Pass<"tp-explain", "::mlir::ModuleOp"> {
  let summary = "Explain every placement and every collective";
  let description = [{
    Applies the plan at `plan`, if one is given, and decides placements as `tp-propagate` does.
    Prints the reasons for them to the standard output or to `file` (docs/Explain.md):

    - for each value, its placement and, over each mesh dimension, the chain that led to it, from
      the plan's entry or the `tp.sharding` where the chain began;
    - for each redistribution that communicates, its cause, the placement that lost and the one that
      won, its collectives and their bytes, the cheapest other ways to run the op, and the edits of
      the plan (without a plan, of the IR) that remove it or make it cheaper. Each edit was tried,
      and its effect is the one on the whole program.

    The program isn't changed. If this is the only pass, `tp-opt` prints the program only with `-o`:

    ```sh
    tp-opt model.mlir --tp-explain="plan=plan.yaml"
    ```

    Emits one remark per redistribution that communicates (category `tp-explain`), which says the
    same in one line.

    Two totals are printed: one of the propagated program, to which everything else refers, and one
    of the program after `tp-partition` and `tp-optimize-collectives`.

    Fails if `tp-apply-plan`, `tp-propagate` or `tp-partition` fails, or if nothing has the name
    that `value` gives.
  }];
  let options = [
    OptionalPlan<"planPath">,
    Option<"format", "format", "::mlir::tp::ExplanationFormat",
           "::mlir::tp::ExplanationFormat::Text",
           "How to print: text (the default) or json",
           [{::llvm::cl::values(
               clEnumValN(::mlir::tp::ExplanationFormat::Text, "text", "for people"),
               clEnumValN(::mlir::tp::ExplanationFormat::Json, "json", "the same as JSON"))}]>,
    Option<"file", "file", "std::string", "",
           "Path of the file to write to; empty: the standard output">,
    Option<"value", "value", "std::string", "",
           "Explain only what has this name: the FQN of a module or parameter (a pattern as in a "
           "plan), the name of an argument or op; empty: everything">,
    Option<"trials", "trials", "unsigned", "128",
           "Maximum number of edits to try; each runs one propagation">,
    Strategy,
    ExhaustiveOps,
    LatencyBytes,
    SearchBudget,
    OneShot,
    Memory,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect", "::mlir::nn::NNDialect"];
}

def Report : Pass<"tp-report", "::mlir::ModuleOp"> {
  let summary = "List the collectives and parameters of a per-rank program, and predict its run";
  let description = [{
    Emits one remark per collective (category `tp-report`: kind, mesh dimension, bytes per rank,
    FQN, reason), and writes all of it to `file` as JSON, and to `html` as a page for people
    (docs/Report.md). The page also has what `tp-explain` has written to `explanation` before:

    ```sh
    tp-opt model.mlir --tp-explain="plan=plan.yaml format=json file=explanation.json" \
      --tp-parallelize="plan=plan.yaml html=report.html explanation=explanation.json" -o ranks.mlir
    ```

    With `trace`, it also has what ranks did in a run, as `tp-run --trace` has written it. With
    `alternatives` and `scaling`, it has what other plans cost, and what this one costs on other
    numbers of ranks, as `tp-auto-plan` and `tp-scale-plan` have written it to their `report`.

    The program isn't changed.

    With a `machine`, or a `dlti.target_system_spec` on the module that describes one
    (docs/Prediction.md), the report also predicts a run: seconds by rank, op, module and
    collective, and, if `tp-predict-memory` ran before, the memory of each rank. `table` prints this
    to the standard output.

    ```sh
    tp-opt ranks.mlir --tp-predict-memory --tp-report="machine=h100-nvlink table" -o /dev/null
    ```

    Warns if a rank needs more memory than a device of the machine has. Fails if the machine's name
    or description is wrong, if a table is asked for without a machine, or an explanation, a trace,
    alternatives or scaling without a page, or if one of these is of another program.
  }];
  let options = [ReportOption<"file">, ReportPage, ReportExplanation, ReportTrace,
                 ReportAlternatives, ReportScaling, Machine, Table];
}

def PrintShardingRules : Pass<"tp-print-sharding-rules"> {
  let summary = "Show each op's sharding rule";
  let description = [{
    Emits a remark for each op with a sharding rule. Each tensor is printed as a list of dimensions,
    and each dimension as the factors that it is made of (`_`: none). The sizes of the factors
    follow, then the factors that are reduced or can't be split:

    ```mlir
    // remark: ([0][2], [1][2]) -> ([0][1]) {0=8, 1=10, 2=16} reduction={2} linear={{0}, {1}}
    %y = nn.linear %x, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
    ```
  }];
}

#endif // TP_ADVICE_PASSES_TD
