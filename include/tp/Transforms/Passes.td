//===- Passes.td - the passes of tp-mlir -------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TRANSFORMS_PASSES_TD
#define TP_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ApplyPlan : Pass<"tp-apply-plan", "::mlir::ModuleOp"> {
  let summary = "Annotate a model with a parallelize plan";
  let description = [{
    Reads a plan (docs/Plans.md), checks it against the model, and writes what it asks for into the
    IR: the mesh, the placement of each parameter that a style shards, and a `tp.redistribute` for
    each layout at the boundary of an `nn.module`. Values in between get their placement from
    `tp-propagate`.

    For an input, the redistribution to the declared layout comes first, then, where it differs, the
    one to the layout that the module's computation desires; for an output likewise. Both stand
    outside the module, next to it. `reason` is the place in the plan, the style, the argument and
    the placement.

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

    Arguments of the function that are declared with one layout wherever they are used, and results
    that a layout gives, have it as their `tp.sharding`. In a plan over some of the mesh's
    dimensions, a redistribution is `over` these.

    Warns of what lint finds (docs/Plans.md), and fails instead when `strict`.

    Fails, with every problem at its line and column of the plan, when the plan can't be read or
    parsed, names a style, argument, placement or mesh dimension that doesn't exist, has a pattern
    that matches no module, puts a style on a module that it can't shard, gives a layout for a
    tensor that a module doesn't have, splits a dimension that doesn't exist, or asks for two
    placements of one parameter. Fails as well when the module has a `tp.mesh` already.
  }];
  let options = [
    Option<"planPath", "plan", "std::string", "",
           "Path of the plan file (YAML or JSON); required">,
    Option<"strict", "strict", "bool", "false",
           "Make errors of what lint finds; default false: warnings">,
  ];
  let statistics = [
    Statistic<"numParameters", "parameters-placed", "Parameters that the plan places">,
    Statistic<"numRedistributions", "redistributions",
              "Redistributions inserted at module boundaries">,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect"];
}

def InlineCalls : Pass<"tp-inline-calls", "::mlir::ModuleOp"> {
  let summary = "Make each entry point one program";
  let description = [{
    Runs `inline` and `symbol-dce` where the module has private functions: what `tp-propagate` and
    `tp-partition` leave of functions that are called is private. Calls are inlined, and functions
    that nobody calls any more are erased.

    ```mlir
    func.func private @layer(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %y = nn.relu %x : tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %y = call @layer(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    ```

    becomes

    ```mlir
    func.func @forward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %y = nn.relu %x : tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    ```
  }];
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
    Spreads what is fixed (`tp.sharding` on arguments, results, parameters and other ops, every
    `tp.redistribute` and `tp.constraint`) through the ops' sharding rules, forward and backward,
    until nothing changes: that gives each op its candidates, the ways in which it may run. Of
    these, one per op is chosen such that the whole program communicates least: the bytes that ranks
    receive, and `latency-bytes` per rank for each collective; of equal ones, the choice that leaves
    the least to compute. Where an operand isn't placed as its op needs it, a `tp.redistribute` is
    inserted, which names the reason. Uses that need the same placement share it, and it is done as
    often as the value is computed, not as often as it is used in a loop. Modules are inlined first
    (`nn-inline-modules`).

    `strategy=optimal` (the default) solves the choice exactly by variable elimination. Where a
    program is entangled too much for that, candidates that can't be part of a cheapest choice are
    removed first; `search-budget` limits the work for it. If that isn't enough, a remark (category
    `tp-propagate`) says, in bytes and per cent, how far the choice may be above the optimum.
    Functions of at most `exhaustive-ops` ops consider every split of every op over all mesh
    dimensions; larger ones consider only the splits that spread to an op. `strategy=greedy` decides
    op by op, then improves locally.

    A parameter stays as it is placed, wherever anything else can move. Arguments and results
    without `tp.sharding` are replicated; those with `tp.open` are placed as is cheapest. Values
    that a region op passes on (the iteration arguments of `scf.for`, what the branches of `scf.if`
    yield, …) are placed alike on all ways. Functions are decided for each call; calls that come out
    equal share a function, others call a copy of their own.

    A mesh dimension that doesn't divide the major factor of a product splits it in parts: of four
    ranks, with two key-value heads, `tp:(1)2` splits the heads and `tp:(2)2` what is within one.

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

    With `forbid-implicit`, a redistribution that moves bytes and that no layout of the plan,
    `tp.constraint`, `tp.sharding` on a function's result or other op of the IR asks for is an
    error, which says what it would cost.

    Fails on an op without a sharding rule, on control flow between blocks, on recursion, and where
    a fixed placement can't be reached (nothing becomes Partial by a redistribution).
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
           "Programs of at most this many ops consider every split of every op">,
    Option<"latencyBytes", "latency-bytes", "int64_t", "65536",
           "Cost of a collective besides the bytes that it moves, in bytes that a rank could have "
           "received">,
    Option<"searchBudget", "search-budget", "uint64_t", "500000000",
           "Limit of the work to bound the search where its tables would be too large: costs of "
           "moves that are examined">,
    Option<"oneShot", "one-shot", "bool", "true",
           "As for tp-partition, whose plans determine what redistributions cost">,
    Option<"memory", "memory", "bool", "false",
           "As for tp-partition, whose plans determine what redistributions cost">,
  ];
  let statistics = [
    Statistic<"numCopies", "copies", "Functions copied for calls with other placements">,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect"];
}

def Partition : Pass<"tp-partition", "::mlir::ModuleOp"> {
  let summary = "Turn a sharded program into one rank's program";
  let description = [{
    Each type becomes the type of one rank's block, each op its local form (the op's own partition
    hook), each `tp.redistribute` the collectives that lead from one placement to the other. The
    placements of each op are checked against its sharding rule on the way. Function arguments and
    results and parameters keep their placement (`tp.sharding`) and their whole's type
    (`tp.global_type`).

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

    Where sizes don't divide, ranks whose blocks have different shapes run different programs: the
    function is followed by a copy for each further program, and all of them carry `tp.ranks`, the
    ranks that run them. They have the same collectives in the same order.

    ```mlir
    func.func @forward(%x: tensor<3x8xf32> …) attributes {tp.ranks = array<i64: 0, 1, 2>}
    func.func @forward_0(%x: tensor<1x8xf32> …) attributes {tp.ranks = array<i64: 3>}     // 10 rows over 4 ranks
    ```

    What each redistribution costs, and what it would at least, stays on the function as
    `tp.redistributions`, for `tp-report`.

    Fails where a value has no placement, an op's placements break its rule, or the program is
    partitioned already.
  }];
  let options = [
    Option<"oneShot", "one-shot", "bool", /*default=*/"true",
           "Whether one exchange may replace several collectives">,
    Option<"memory", "memory", "bool", /*default=*/"false",
           "Allow no block during a redistribution that is larger than both its first and its "
           "last one">];
  let dependentDialects = ["::mlir::tp::TPDialect", "::mlir::nn::NNDialect"];
}

def OptimizeCollectives : Pass<"tp-optimize-collectives", "::mlir::ModuleOp"> {
  let summary = "Remove, share, merge and cheapen collectives";
  let description = [{
    - a collective whose operand doesn't change in a loop is issued before it, once;
    - an `all_reduce` of which only this rank's slice is used becomes a `reduce_scatter`, over the
      mesh dimensions that the two share, and an `all_gather` of which only a slice along another
      dimension is used an `all_to_all`;
    - pairs that undo each other are gone: a gather of a slice and a slice of a gather, an
      `all_to_all`, an `exchange` and their inverses; permutes of permutes are one; a
      `reduce_scatter` that is gathered at once is an `all_reduce`;
    - equal collectives on one operand are done once;
    - sums that meet are added before one reduction, whatever else is added to them on the way:
      `(x + R(a)) + R(b)` is `x + R(a + b)`. This holds for `all_reduce` and `reduce_scatter`.
      Either moves down through ops that are linear in it to where it moves less;
    - a collective whose result nothing uses is dropped, by all ranks alike.

    ```mlir
    %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x16xf32>
    %1 = tp.local_slice %0 dim 1 over @mesh {tp} : tensor<8x16xf32> -> tensor<8x8xf32>
    %2 = tp.all_reduce sum %a over @mesh {tp} : tensor<8x16xf32>
    %3 = tp.all_reduce sum %b over @mesh {tp} : tensor<8x16xf32>
    %4 = nn.add %2, %3 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    ```

    becomes

    ```mlir
    %1 = tp.reduce_scatter sum %x dim 1 over @mesh {tp} : tensor<8x16xf32> -> tensor<8x8xf32>
    %3 = nn.add %a, %b : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %4 = tp.all_reduce sum %3 over @mesh {tp} : tensor<8x16xf32>
    ```

    Parameters that FSDP splits are gathered by group (`tp.fsdp_group`, the module that PyTorch's
    `fully_shard` would be called on): one `all_gather` before the first of them is used, in each
    pass over the model that needs any (`tp.pass` of `nn.recompute`), and one `reduce_scatter` of
    their gradients where the last of these is computed. Uneven blocks are filled up with zeros.
    `fsdp-groups=false` leaves them apart.

    ```mlir
    %w = nn.parameter "up.w" {tp.fsdp_group = "up"} : tensor<4x8xf32>
    %0 = tp.all_gather %w dim 0 over @mesh {dp} : tensor<4x8xf32> -> tensor<8x8xf32>
    %b = nn.parameter "up.b" {tp.fsdp_group = "up"} : tensor<4xf32>
    %1 = tp.all_gather %b dim 0 over @mesh {dp} : tensor<4xf32> -> tensor<8xf32>
    …
    %4 = tp.reduce_scatter sum %2 dim 0 over @mesh {dp} : tensor<8x8xf32> -> tensor<4x8xf32>
    %5 = tp.reduce_scatter sum %3 dim 0 over @mesh {dp} : tensor<8xf32> -> tensor<4xf32>
    ```

    becomes

    ```mlir
    %0 = nn.concat (nn.reshape %w), %b dim 0 : (tensor<32xf32>, tensor<4xf32>) -> tensor<36xf32>
    %1 = tp.all_gather %0 dim 0 over @mesh {dp} : tensor<36xf32> -> tensor<72xf32>
    …                                          // cut out of tensor<2x36xf32>: a row is what a rank has
    %4 = nn.concat (nn.reshape %2), (nn.reshape %3) dim 1 : (tensor<2x32xf32>, tensor<2x4xf32>) -> tensor<2x36xf32>
    %5 = tp.reduce_scatter sum %4 dim 0 over @mesh {dp} : tensor<2x36xf32> -> tensor<1x36xf32>
    ```

    By request, as they trade one cost for another:

    - `sequence-parallel`: an `all_reduce` becomes a `reduce_scatter` and, behind the norms,
      additions and activations that follow it, `all_gather`s, where that moves no more bytes. These
      ops then work on blocks; there are more collectives.

      ```mlir
      %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x16xf32>
      %1 = nn.relu %0 : tensor<8x16xf32>
      ```

      becomes

      ```mlir
      %0 = tp.reduce_scatter sum %x dim 0 over @mesh {tp} : tensor<8x16xf32> -> tensor<4x16xf32>
      %1 = nn.relu %0 : tensor<4x16xf32>
      %2 = tp.all_gather %1 dim 0 over @mesh {tp} : tensor<4x16xf32> -> tensor<8x16xf32>
      ```
    - `bucket-bytes`: independent `all_reduce`s, or `all_gather`s, of one group and element type are
      joined into one whose operand has at most so many bytes, unless all are gradients of one of
      FSDP's groups.

      ```mlir
      %0 = tp.all_reduce sum %a over @mesh {tp} : tensor<4x2xf32>
      %1 = tp.all_reduce sum %b over @mesh {tp} : tensor<8xf32>
      ```

      becomes

      ```mlir
      %0 = nn.reshape %a : tensor<4x2xf32> -> tensor<8xf32>
      %1 = nn.concat %0, %b dim 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
      %2 = tp.all_reduce sum %1 over @mesh {tp} : tensor<16xf32>
      %3 = nn.slice %2 dim 0 start 0 step 1 : tensor<16xf32> -> tensor<8xf32>
      %4 = nn.reshape %3 : tensor<8xf32> -> tensor<4x2xf32>
      %5 = nn.slice %2 dim 0 start 8 step 1 : tensor<16xf32> -> tensor<8xf32>
      ```
    - `memory-limit`: where more bytes of values are alive at once, an `all_gather` with later uses
      is issued again before them instead of being kept.

    All other ops keep their order. If ranks have different programs, all of the programs change in
    the same way, or none does, so that ranks don't wait for different collectives
    (`tp-verify-collectives`).

    Fails on control flow between blocks.
  }];
  let options = [
    Option<"sequenceParallel", "sequence-parallel", "bool", /*default=*/"false",
           "Whether ops between an all_reduce and those that need its result whole run on blocks">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", /*default=*/"0",
           "Join independent collectives up to this many bytes; 0: never">,
    Option<"bucketGathers", "bucket-gathers", "bool", /*default=*/"true",
           "Whether gathers are joined as well; if not, each stays where it is">,
    Option<"fsdpGroups", "fsdp-groups", "bool", /*default=*/"true",
           "Whether what FSDP gathers and reduces for one module's parameters is joined">,
    Option<"memoryLimit", "memory-limit", "uint64_t", /*default=*/"0",
           "Repeat all_gathers instead of keeping their results where more than this many bytes "
           "are live; 0: never">,
  ];
  let statistics = [
    Statistic<"numShared", "shared", "Collectives replaced by an equal earlier one">,
    Statistic<"numUnused", "unused", "Collectives dropped because nothing uses their result">,
    Statistic<"numHoisted", "hoisted", "Collectives moved out of a loop">,
    Statistic<"numMerged", "merged", "All-reduces saved by reducing sums">,
    Statistic<"numSplit", "split", "All-reduces split around what follows them">,
    Statistic<"numJoined", "joined", "Collectives saved by joining">,
    Statistic<"numRematerialized", "rematerialized", "All-gathers issued again">,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect", "::mlir::nn::NNDialect"];
}

def OverlapCollectives : Pass<"tp-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Let collectives run beside computation";
  let description = [{
    Splits each collective into a `tp.start`, right behind its operand, and a `tp.wait`, before the
    first use, where there is something to compute in between. Starts keep their order: it is that
    of all ranks.

    A collective keeps its operand until it is waited for. One whose result is smaller, as the
    reduction of a gradient, is waited for before the next such one starts, so that no more than one
    of them is kept for it.

    ```mlir
    %0 = nn.linear %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %1 = nn.relu %y : tensor<8x4xf32>
    %2 = tp.all_gather %0 dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x8xf32>
    ```

    becomes

    ```mlir
    %0 = nn.linear %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %p = tp.start {
      %g = tp.all_gather %0 dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x8xf32>
      tp.yield %g : tensor<8x8xf32>
    } : !tp.pending<tensor<8x8xf32>>
    %1 = nn.relu %y : tensor<8x4xf32>
    %2 = tp.wait %p : !tp.pending<tensor<8x8xf32>>
    ```

    What is gathered of parameters (FSDP) is gathered one module ahead, in the forward and in the
    backward pass: before the first use of one module's gathered parameters, the gathers of the next
    module's are started. A module's are those that follow each other with one FQN. So at most two
    modules' parameters are whole at once.

    ```mlir
    %0 = tp.all_gather %w dim 0 over @mesh {dp} {fqn = "layers.1"} : tensor<2x8xf32> -> tensor<8x8xf32>
    %1 = nn.outer_sum %g, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %2 = nn.matmul %g, %0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = tp.reduce_scatter sum %1 dim 0 over @mesh {dp} : tensor<8x8xf32> -> tensor<2x8xf32>
    %4 = tp.all_gather %v dim 0 over @mesh {dp} {fqn = "layers.0"} : tensor<2x8xf32> -> tensor<8x8xf32>
    ```

    has `%4` started before `%2`, and so before `%3`.

    With `chunks`, an `all_gather` whose rows a contraction then works on, and a `reduce_scatter` of
    the rows of one, are done piece by piece together with it, so that one piece is moved while
    another is multiplied. Rows are never contracted, so that no sum changes.

    ```mlir
    %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<4x8xf32> -> tensor<8x8xf32>
    %1 = nn.linear %0, %w : (tensor<8x8xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
    ```

    becomes, for `chunks=2` and before starts are moved,

    ```mlir
    %0 = nn.slice %x dim 0 start 0 step 1 : tensor<4x8xf32> -> tensor<2x8xf32>
    %1 = tp.all_gather %0 dim 0 over @mesh {tp} : tensor<2x8xf32> -> tensor<4x8xf32>
    %2 = nn.linear %1, %w : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
    %3 = nn.reshape %2 : tensor<4x6xf32> -> tensor<2x2x6xf32>
    …                                                            // the same for rows 2 and 3: %7
    %8 = nn.concat %3, %7 dim 1 : (tensor<2x2x6xf32>, tensor<2x2x6xf32>) -> tensor<2x4x6xf32>
    %9 = nn.reshape %8 : tensor<2x4x6xf32> -> tensor<8x6xf32>
    ```

    Collectives whose blocks the chunks don't divide stay whole. Programs of different ranks change
    alike, or not at all.
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", /*default=*/"1",
           "Number of chunks into which collectives next to contractions are cut; 1: none is cut">,
  ];
  let statistics = [
    Statistic<"numPrefetched", "prefetched", "Gathers of parameters moved up to the module before">,
    Statistic<"numStarted", "started", "Collectives split into start and wait">,
    Statistic<"numDecomposed", "decomposed", "Collectives done in chunks">,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect", "::mlir::nn::NNDialect"];
}

def LowerStartWait : Pass<"tp-lower-start-wait"> {
  let summary = "Run each collective where it is started";
  let description = [{
    Moves each collective to its `tp.start`, and removes the `tp.wait`. Used by `tp-verify-spmd`,
    for which it matters what a program computes, and not when. The order in which ranks issue
    collectives, and the results, don't change.

    ```mlir
    %p = tp.start {
      %g = tp.all_gather %0 dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x8xf32>
      tp.yield %g : tensor<8x8xf32>
    } : !tp.pending<tensor<8x8xf32>>
    %1 = nn.relu %y : tensor<8x4xf32>
    %2 = tp.wait %p : !tp.pending<tensor<8x8xf32>>
    ```

    becomes

    ```mlir
    %2 = tp.all_gather %0 dim 1 over @mesh {tp} : tensor<8x4xf32> -> tensor<8x8xf32>
    %1 = nn.relu %y : tensor<8x4xf32>
    ```
  }];
}

def UpdateEarly : Pass<"tp-update-early", "::mlir::func::FuncOp"> {
  let summary = "Update parameters as soon as their gradients are there";
  let description = [{
    A training step ends with its updates, so that all gradients are kept until then. This moves
    each up to where its parameter's gradient is there and nothing else reads the parameter any
    more: one gradient lives at a time, and the update still takes place in the parameter's own
    memory. Collectives stay where they are, and with them what needs their results; where all
    gradients are needed first, as for clipping, nothing moves.

    ```mlir
    %3 = tp.reduce_scatter sum %2 dim 0 over @mesh {dp} : tensor<8x8xf32> -> tensor<2x8xf32>
    %4 = nn.outer_sum %1, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    …
    %6 = nn.sub %w, %3 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    nn.assign "w", %6 : tensor<2x8xf32>
    ```

    becomes

    ```mlir
    %3 = tp.reduce_scatter sum %2 dim 0 over @mesh {dp} : tensor<8x8xf32> -> tensor<2x8xf32>
    %4 = nn.sub %w, %3 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    nn.assign "w", %4 : tensor<2x8xf32>
    %5 = nn.outer_sum %1, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    …
    ```

    `tp-parallelize` runs it on training steps without `overlap`, with which gradients are reduced
    beside the rest of the backward pass, and their updates wait for that.
  }];
}

def VerifyCollectives : Pass<"tp-verify-collectives", "::mlir::ModuleOp"> {
  let summary = "Prove that all ranks issue the same collectives in the same order";
  let description = [{
    Ranks that do can't wait for each other forever, whatever the data. The proof is over the text
    of the programs: those of different ranks (`tp.ranks`) are walked side by side, through regions
    and calls, and have the same collectives in the same places; and what decides how often, and
    which, regions with collectives run is the same on all ranks.

    That is so for what is computed by pure ops from values that are the same: arguments and
    parameters that no mesh dimension splits, and results of `all_reduce`, `all_gather` and
    `broadcast`. A slice, an offset, or a block differs.

    ```mlir
    %n = tensor.extract %count[] : tensor<i1>      // of an argument that is split over tp
    %1 = scf.if %n -> tensor<8x16xf32> {           // error: what 'scf.if' decides by may differ between ranks along 'tp'; …
      %2 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x16xf32>
      …
    ```

    Fails at the first collective that can't be proven to be met, and names both ops. The program
    isn't changed.
  }];
  let statistics = [
    Statistic<"numProven", "proven", "Collectives that all ranks are proven to issue alike">,
  ];
}

#endif // TP_TRANSFORMS_PASSES_TD
