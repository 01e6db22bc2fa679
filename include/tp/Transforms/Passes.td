//===- Passes.td - the passes of tp-mlir -------------------*- tablegen -*-===//

#ifndef TP_TRANSFORMS_PASSES_TD
#define TP_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ApplyPlan : Pass<"tp-apply-plan", "::mlir::ModuleOp"> {
  let summary = "Annotate a model with a parallelize plan";
  let description = [{
    Reads a plan (docs/Plans.md), checks it against the model, and writes what it asks
    for into the IR: the mesh, the placement of each parameter that a style shards,
    and a `tp.redistribute` for each layout at the boundary of an `nn.module`. Values
    in between get their placement from `tp-propagate`.

    For an input, the redistribution to the declared layout comes first, then, where it
    differs, the one to the layout that the module's computation desires; for an output
    likewise. Both stand outside the module, next to it. `reason` is the place in the
    plan, the style, the argument and the placement.

    With this plan in `mlp.yaml`

    ```yaml
    mesh: {tp: 2}
    plan:
      net2: RowwiseParallel
    ```

    this model

    ```mlir
    %r = nn.module "net2" class "Linear" (%x as "input" at 0) {
    ^bb0(%input: tensor<8x16xf32>):
      %w = nn.parameter "net2.weight" : tensor<10x16xf32>
      %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
      nn.yield %y : tensor<8x10xf32>
    } : (tensor<8x16xf32>) -> tensor<8x10xf32>
    ```

    becomes

    ```mlir
    tp.mesh @mesh(tp = 2)
    …
    %0 = tp.redistribute %x to <@mesh, [{}, {tp} ]>
         {fqn = "net2", reason = "mlp.yaml:3:3: RowwiseParallel input_layouts Shard(-1)"} : tensor<8x16xf32>
    %r = nn.module "net2" class "Linear" (%0 as "input" at 0) {
    ^bb0(%input: tensor<8x16xf32>):
      %w = nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<10x16xf32>
      %y = nn.linear %input, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
      nn.yield %y : tensor<8x10xf32>
    } : (tensor<8x16xf32>) -> tensor<8x10xf32>
    %1 = tp.redistribute %r to <@mesh, [{}, {} ]>
         {fqn = "net2", reason = "mlp.yaml:3:3: RowwiseParallel output_layouts Replicate"} : tensor<8x10xf32>
    ```

    Arguments of the function that are declared with one layout wherever they are used,
    and results that a layout gives, have it as their `tp.sharding`. In a plan over some
    of the mesh's dimensions, a redistribution is `over` these.

    Warns of what lint finds (docs/Plans.md), and fails instead when `strict`.

    Fails, with every problem at its line and column of the plan, when the plan can't be
    read or parsed, names a style, argument, placement or mesh dimension that doesn't
    exist, has a pattern that matches no module, puts a style on a module that it can't
    shard, gives a layout for a tensor that a module doesn't have, splits a dimension that
    doesn't exist, or asks for two placements of one parameter. Fails as well when the
    module has a `tp.mesh` already.
  }];
  let options = [
    Option<"planPath", "plan", "std::string", "",
           "Path of the plan file (YAML or JSON); required">,
    Option<"strict", "strict", "bool", "false",
           "Refuse a plan that lint finds something wrong with; default false: warn">,
  ];
  let statistics = [
    Statistic<"numParameters", "parameters-placed", "Parameters that the plan places">,
    Statistic<"numRedistributions", "redistributions", "Redistributions inserted at module boundaries">,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect"];
}

def PrintPlan : Pass<"tp-print-plan", "::mlir::ModuleOp"> {
  let summary = "Show what a parallelize plan means for a model";
  let description = [{
    Reads and checks a plan as `tp-apply-plan` does, and prints it to the standard output instead of applying it: every
    module with its style, what its inputs and outputs come as and are brought to, and every parameter with its placements,
    one per mesh dimension, and its bytes per rank. The program isn't changed; where this is the only pass, `tp-opt` prints it with `-o` only:

    ```
    tp-opt model.mlir --tp-print-plan="plan=mlp.yaml"
    ```

    `json` is the same for programs, `python` the plan as PyTorch's `parallelize_module` takes it.
  }];
  let options = [
    Option<"planPath", "plan", "std::string", "",
           "Path of the plan file (YAML or JSON); required">,
    Option<"format", "format", "::mlir::tp::PlanFormat", "::mlir::tp::PlanFormat::Text",
           "How to print: text (the default), json or python",
           [{::llvm::cl::values(
               clEnumValN(::mlir::tp::PlanFormat::Text, "text", "a table for people"),
               clEnumValN(::mlir::tp::PlanFormat::Json, "json", "the same as JSON"),
               clEnumValN(::mlir::tp::PlanFormat::Python, "python", "the plan for PyTorch"))}]>,
    Option<"strict", "strict", "bool", "false",
           "Refuse a plan that lint finds something wrong with; default false: warn">,
  ];
}

def InlineModules : Pass<"nn-inline-modules"> {
  let summary = "Flatten the module tree";
  let description = [{
    Moves the bodies of `nn.module` ops into their parents. Each op keeps the FQN of its module as
    `tp.fqn`.

    ```mlir
    %r = nn.module "mlp.act" class "ReLU" (%x as "input" at 0) {
    ^bb0(%input: tensor<8x16xf32>):
      %y = nn.relu %input : tensor<8x16xf32>
      nn.yield %y : tensor<8x16xf32>
    } : (tensor<8x16xf32>) -> tensor<8x16xf32>
    ```

    becomes

    ```mlir
    %r = nn.relu %x {tp.fqn = "mlp.act"} : tensor<8x16xf32>
    ```
  }];
}

def Propagate : Pass<"tp-propagate", "::mlir::ModuleOp"> {
  let summary = "Give every value a placement";
  let description = [{
    Spreads what is fixed (`tp.sharding` on arguments, results, parameters and other ops, every `tp.redistribute` and
    `tp.constraint`) through the ops' sharding rules, forward and backward, until nothing changes: that gives each op its
    candidates, the ways in which it may run. Of these, one per op is chosen such that the whole program communicates least:
    the bytes that ranks receive, and `latency-bytes` per rank for each collective; of equal ones, the choice that leaves the least
    to compute. Where an operand isn't placed as its op
    needs it, a `tp.redistribute` is inserted, which says so; uses that need the same share it, and it is done as often as the
    value is computed, not as often as it is used in a loop. Modules are inlined first (`nn-inline-modules`).

    `strategy=optimal` (the default) solves the choice exactly by variable elimination. Where a program is entangled
    too much for that, the search is bounded, and a remark says how many bytes it may be off the optimum. Functions of at
    most `exhaustive-ops` ops consider every split of every op over the mesh dimensions in use; larger ones those that
    spread. `strategy=greedy` decides op by op, then improves locally.

    A parameter stays as it is placed, wherever anything else can move. Arguments and results without `tp.sharding` are
    replicated; those with `tp.open` are placed as is cheapest. Values that a region op passes on (the iteration
    arguments of `scf.for`, what the branches of `scf.if` yield, …) are placed alike on all ways. Functions are decided
    for each call; calls that come out equal share a function, others call a copy of their own.

    A mesh dimension that doesn't divide the major factor of a product splits it in parts: of four ranks, with two
    key-value heads, `tp:(1)2` splits the heads and `tp:(2)2` what is within one.

    ```mlir
    %w = nn.parameter "net2.weight" {tp.fqn = "net2", tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<10x16xf32>
    %y = nn.linear %x, %w {tp.fqn = "net2"} : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
    return %y : tensor<8x10xf32>
    ```

    with `%x` split along dimension 1 becomes

    ```mlir
    %w = nn.parameter "net2.weight" {…} : tensor<10x16xf32>
    %y = nn.linear %x, %w {tp.fqn = "net2", tp.sharding = #tp.sharding<@mesh, [{}, {} ], partial = {tp: sum}>} : …
    %z = tp.redistribute %y to <@mesh, [{}, {} ]> {fqn = "", reason = "result 0 of the function is (Replicate)"} : tensor<8x10xf32>
    return %z : tensor<8x10xf32>
    ```

    With `forbid-implicit`, a redistribution that moves bytes and that no layout of the plan, `tp.constraint`, `tp.sharding` on a
    function's result or other op of the IR asks for is an error, which says what it would cost.

    Fails on an op without a sharding rule, on control flow between blocks, on recursion, and where a fixed placement can't be
    reached (nothing becomes Partial by a redistribution).
  }];
  let options = [
    Option<"strategy", "strategy", "::mlir::tp::PropagationStrategy",
           "::mlir::tp::PropagationStrategy::Optimal",
           "How placements are chosen: optimal (the default) or greedy",
           [{::llvm::cl::values(
               clEnumValN(::mlir::tp::PropagationStrategy::Greedy, "greedy",
                          "op by op, then local improvement"),
               clEnumValN(::mlir::tp::PropagationStrategy::Optimal, "optimal",
                          "the fewest bytes over the whole program"))}]>,
    Option<"forbidImplicit", "forbid-implicit", "bool", "false",
           "Refuse redistributions that nothing asks for">,
    Option<"exhaustiveOps", "exhaustive-ops", "unsigned", "256",
           "Programs of up to so many ops consider every split of every op">,
    Option<"latencyBytes", "latency-bytes", "int64_t", "65536",
           "What a collective costs beside the bytes that it moves, as bytes that a rank could have received">,
  ];
  let statistics = [
    Statistic<"numCopies", "copies", "Functions copied for calls with other placements">,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect"];
}

def Partition : Pass<"tp-partition", "::mlir::ModuleOp"> {
  let summary = "Turn a sharded program into one rank's program";
  let description = [{
    Each type becomes the type of one rank's block, each op its local form (the op's own partition hook), each
    `tp.redistribute` the collectives that lead from one placement to the other. The placements of each op are
    checked against its sharding rule on the way. Function arguments and results and parameters keep their
    placement (`tp.sharding`) and their whole's type (`tp.global_type`).

    ```mlir
    %w = nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<10x16xf32>
    %y = nn.linear %x, %w {tp.sharding = #tp.sharding<@mesh, [{}, {} ], partial = {tp: sum}>} : …
    %z = tp.redistribute %y to <@mesh, [{}, {} ]> {fqn = "net2", reason = "…"} : tensor<8x10xf32>
    ```

    becomes, for `tp = 2`,

    ```mlir
    %w = nn.parameter "net2.weight" {tp.global_type = tensor<10x16xf32>, tp.sharding = …} : tensor<10x8xf32>
    %y = nn.linear %x, %w : (tensor<8x8xf32>, tensor<10x8xf32>) -> tensor<8x10xf32>
    %z = tp.all_reduce sum %y over @mesh {tp} {bytes = 320 : i64, fqn = "net2", reason = "…"} : tensor<8x10xf32>
    ```

    Where sizes don't divide, ranks whose blocks have different shapes run different programs: the function is followed by
    a copy for each further program, and all of them carry `tp.ranks`, the ranks that run them. They have the same
    collectives in the same order.

    ```mlir
    func.func @forward(%x: tensor<3x8xf32> …) attributes {tp.ranks = array<i64: 0, 1, 2>}
    func.func @forward_0(%x: tensor<1x8xf32> …) attributes {tp.ranks = array<i64: 3>}     // 10 rows over 4 ranks
    ```

    What each redistribution costs, and what it would at least, stays on the function as `tp.redistributions`, for
    `tp-report`.

    Fails where a value has no placement, an op's placements break its rule, or the program is partitioned already.
  }];
  let options = [
    Option<"oneShot", "one-shot", "bool", /*default=*/"true",
           "Whether one exchange may stand for several collectives">,
    Option<"memory", "memory", "bool", /*default=*/"false",
           "Whether no block on the way of a redistribution may be larger than those it leads between">];
  let dependentDialects = ["::mlir::tp::TPDialect", "::mlir::nn::NNDialect"];
}

def OptimizeCollectives : Pass<"tp-optimize-collectives", "::mlir::ModuleOp"> {
  let summary = "Remove, share and cheapen collectives";
  let description = [{
    - an `all_reduce` of which only this rank's slice is used becomes a `reduce_scatter`;
    - a gather of a slice, and a slice of a gather, over the same mesh dimensions and dimension, are gone;
    - equal collectives on one operand are done once;
    - a collective whose result nothing uses is dropped, by all ranks alike.

    ```mlir
    %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x16xf32>
    %1 = tp.local_slice %0 dim 1 over @mesh {tp} : tensor<8x16xf32> -> tensor<8x8xf32>
    ```

    becomes

    ```mlir
    %1 = tp.reduce_scatter sum %x dim 1 over @mesh {tp} : tensor<8x16xf32> -> tensor<8x8xf32>
    ```

    The order of what remains is kept, and where ranks have programs of their own all of these change alike,
    or none: ranks can't wait for different collectives.
  }];
  let statistics = [
    Statistic<"numShared", "shared", "Collectives replaced by an equal earlier one">,
    Statistic<"numUnused", "unused", "Collectives dropped because nothing uses their result">,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect"];
}

def Report : Pass<"tp-report", "::mlir::ModuleOp"> {
  let summary = "List the collectives and parameters of a per-rank program, and predict its run";
  let description = [{
    Emits one remark per collective (category `tp-report`: kind, mesh dimension, bytes per rank, FQN, reason), and writes
    all of it to `file` as JSON (docs/Report.md). The program isn't changed.

    With a `machine`, or a `dlti.target_system_spec` on the module that describes one (docs/Prediction.md), the report also predicts
    what a run takes: seconds by rank, op, module and collective, and the memory of each rank where `tp-predict-memory` ran before.
    `table` prints this to the standard output.

    ```
    tp-opt ranks.mlir --tp-predict-memory --tp-report="machine=h100-nvlink table" -o /dev/null
    ```

    Warns where a rank needs more memory than a device of the machine has. Fails where the machine's name or description is
    wrong, and where a table is asked for without a machine.
  }];
  let options = [
    Option<"file", "file", "std::string", "", "Path of the JSON file; none is written when empty">,
    Option<"machine", "machine", "std::string", "",
           "Name of a preset, or path of a machine's description; without one, the module's dlti.target_system_spec, if any">,
    Option<"table", "table", "bool", "false", "Print the prediction as a table to the standard output">,
  ];
}

def PrintShardingRules : Pass<"tp-print-sharding-rules"> {
  let summary = "Show each op's sharding rule";
  let description = [{
    Emits a remark per op with a rule. Each tensor is a list of dimensions, each dimension the factors that it is made
    of (`_`: none); sizes, and the factors that reduce or must stay whole, follow:

    ```mlir
    // remark: ([0][2], [1][2]) -> ([0][1]) {0=8, 1=10, 2=16} reduction={2} linear={{0}, {1}}
    %y = nn.linear %x, %w : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
    ```
  }];
}

#endif // TP_TRANSFORMS_PASSES_TD
