//===- Options.td - Options of several passes --------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options that passes have in common with each other or with the pipelines that they are in.
//
//===----------------------------------------------------------------------===//

#ifndef TP_TRANSFORMS_OPTIONS_TD
#define TP_TRANSFORMS_OPTIONS_TD

include "mlir/Pass/PassBase.td"

class PlanOption<string name, string otherwise>
    : Option<name, "plan", "std::string", "",
             "Path of the plan, YAML or JSON (docs/Plans.md); " # otherwise>;
def RequiredPlan : PlanOption<"planPath", "required">;
class OptionalPlan<string name>
    : PlanOption<name, "without one, the mesh and the placements in the IR are used">;

def Train : Option<"train", "train", "std::string", "",
    "Path of the training file, YAML or JSON (docs/Training.md)">;

def Strict : Option<"strict", "strict", "bool", "false",
    "Whether findings of lint are errors instead of warnings">;

def Strategy : Option<"strategy", "strategy", "::mlir::tp::PropagationStrategy",
    "::mlir::tp::PropagationStrategy::Optimal",
    "How placements are chosen: optimal (the default) or greedy",
    [{::llvm::cl::values(
        clEnumValN(::mlir::tp::PropagationStrategy::Greedy, "greedy",
                   "op by op, then local improvement"),
        clEnumValN(::mlir::tp::PropagationStrategy::Optimal, "optimal",
                   "the least communication over the whole program"))}]>;

def ForbidImplicit : Option<"forbidImplicit", "forbid-implicit", "bool", "false",
    "Refuse redistributions that nothing in the plan or the IR asks for">;

def ExhaustiveOps : Option<"exhaustiveOps", "exhaustive-ops", "unsigned", "256",
    "Programs of at most this many ops (default 256) consider every split of every op">;

class LatencyOption<string default, string defaultText>
    : Option<"latencyBytes", "latency-bytes", "int64_t", default,
             "Cost of a collective besides the bytes that it moves, in bytes that a rank could "
             "have received" # defaultText>;
def LatencyBytes : LatencyOption<"65536", " (default 65536)">;

def SearchBudget : Option<"searchBudget", "search-budget", "uint64_t", "500000000",
    "Maximum number of redistribution costs (default 500 million) that are examined to bound the "
    "search, if its tables would be too large">;

def OneShot : Option<"oneShot", "one-shot", "bool", "true",
    "Whether one exchange may replace several collectives where that moves less; default true">;

def Memory : Option<"memory", "memory", "bool", "false",
    "Allow no block during a redistribution to be larger than both the first and the last one">;

def SequenceParallel : Option<"sequenceParallel", "sequence-parallel", "bool", "false",
    "Whether ops after an all_reduce run on blocks, up to the ops that need its whole result">;

class BucketOption<string default, string defaultText>
    : Option<"bucketBytes", "bucket-bytes", "int64_t", default,
             "Join independent collectives up to this many bytes; 0: never" # defaultText>;
def BucketBytes : BucketOption<"0", "">;

def MemoryLimit : Option<"memoryLimit", "memory-limit", "uint64_t", "0",
    "Repeat all_gathers instead of keeping their results where more than this many bytes are "
    "live; 0: never">;

def Chunks : Option<"chunks", "chunks", "int64_t", "1",
    "Number of chunks into which collectives next to contractions are cut; 1: none is cut">;

class ReportOption<string name>
    : Option<name, name, "std::string", "",
             "Path of the JSON report (docs/Report.md); none is written when empty">;

def ReportPage : Option<"html", "html", "std::string", "",
    "Path of the report as an HTML page (docs/Report.md); none is written when empty">;

def ReportExplanation : Option<"explanation", "explanation", "std::string", "",
    "Path of the JSON that tp-explain has written about the same program, for the page to show">;

def ReportTrace : Option<"trace", "trace", "std::string", "",
    "Path of a trace that tp-run has written of the same program, for the page to show beside the "
    "prediction">;

def ReportAlternatives : Option<"alternatives", "alternatives", "std::string", "",
    "Path of the JSON that tp-auto-plan has written about the same model and machine, for the page "
    "to show beside the plan">;

def ReportScaling : Option<"scaling", "scaling", "std::string", "",
    "Path of the JSON that tp-scale-plan has written about the same plan and machine, for the page "
    "to show">;

def Machine : Option<"machine", "machine", "std::string", "",
    "Machine to predict a run on (docs/Prediction.md): name of a preset, or path of a "
    "description; without one, the module's dlti.target_system_spec, if any">;

def Table : Option<"table", "table", "bool", "false",
    "Print the prediction as a table to the standard output">;

#endif // TP_TRANSFORMS_OPTIONS_TD
