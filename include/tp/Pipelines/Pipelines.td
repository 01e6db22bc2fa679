//===- Pipelines.td - Named pipelines and registration -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PIPELINES_PIPELINES_TD
#define TP_PIPELINES_PIPELINES_TD

include "tp/Transforms/Options.td"

def Parallelize : PassBase<"tp-parallelize", ""> {
  let summary = "Turn a model into one rank's program: apply the plan, propagate, partition, "
                "optimize the collectives, report";
  let description = [{
    Lowers Model IR to per-rank IR. This pipeline consists of

    - `tp-add-loss`, with a plan and a training file: the plan is checked against the loss, too;
    - `tp-apply-plan`, with a plan;
    - `tp-grad`, with a training file: the program becomes a training step; with `gradients`: it
      returns the gradients of its first result;
    - `tp-split-batch`, in any other program with a pipeline;
    - `tp-propagate`, `tp-partition`, `tp-inline-calls` and `tp-cut-stages`;
    - `tp-optimize-collectives`;
    - `tp-overlap-collectives`, with `overlap`; without it, `tp-hoist-parameter-updates` in a
      training step;
    - `tp-verify-collectives`;
    - `tp-predict-memory`, with a machine;
    - `tp-report`.

    ```
    tp-opt model.mlir --tp-parallelize="plan=plan.yaml report=report.json" -o ranks.mlir
    ```
  }];
  let options = [
    OptionalPlan<"plan">,
    Train,
    Option<"gradients", "gradients", "bool", "false",
           "Whether to differentiate the program, whose first result is a scalar, with respect to its "
           "parameters and float arguments; without effect on a training step">,
    Strict,
    Strategy,
    ForbidImplicit,
    ExhaustiveOps,
    SearchBudget,
    LatencyOption<"-1", "; -1 (the default): 65536, or 1024 in a training step, where many "
                        "collectives are joined">,
    ReportOption<"report">,
    ReportPage,
    ReportExplanation,
    ReportTrace,
    ReportAlternatives,
    ReportScaling,
    Machine,
    Table,
    OneShot,
    Memory,
    SequenceParallel,
    BucketOption<"-1", ", not even those of an FSDP group; -1 (the default): FSDP's groups and, in "
                       "a training step, reductions up to 25 MiB, as DistributedDataParallel does">,
    MemoryLimit,
    Option<"overlap", "overlap", "bool", "false",
           "Whether collectives are started early and waited for late; needed for 'chunks'">,
    Chunks,
  ];
}

#endif // TP_PIPELINES_PIPELINES_TD
