//===- Passes.td - The passes of tp-mlir -------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TRANSFORMS_PASSES_TD
#define TP_TRANSFORMS_PASSES_TD

include "tp/Transforms/Options.td"

def ApplyPlan : Pass<"tp-apply-plan", "::mlir::ModuleOp"> {
  let summary = "Annotate a model with a parallelize plan";
  let description = [{
    Reads a plan (docs/Plans.md), checks it against the model, and writes it into the IR: the mesh,
    the placement of each parameter that a style shards, and a `tp.redistribute` for each layout at
    the boundary of an `nn.module`. Values in between get their placement from `tp-propagate`.

    An input is first redistributed to its declared layout, and then, if it differs, to the layout
    that the module's computation desires. The same holds for an output. Both redistributions stand
    outside the module, next to it. `reason` is the location in the plan, the style, the argument
    and the placement.

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

    An argument of the function gets a `tp.sharding` if all of its uses declare the same layout. A
    result gets one if a layout of the plan determines it. If the plan covers only some of the
    mesh's dimensions, each redistribution names them with `over`.

    Findings of the lint (docs/Plans.md) are warnings; with `strict` they are errors.

    Fails if the plan can't be read or parsed, names a style, argument, placement or mesh dimension
    that doesn't exist, has a pattern that matches no module, puts a style on a module that it can't
    shard, gives a layout for a tensor that a module doesn't have, splits a dimension that doesn't
    exist, or asks for two placements of one parameter. Each problem is reported at its line and
    column of the plan. Also fails if the module already has a `tp.mesh`.
  }];
  let options = [RequiredPlan, Strict];
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
    Runs `inline` and `symbol-dce` if the module has private functions. `tp-propagate` makes each
    function that is called private, and `tp-partition` keeps it private. Calls are inlined, and
    functions without callers are erased.

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

def DropGradientForms : Pass<"nn-drop-gradient-forms"> {
  let summary = "Replace ops that only differ from simpler ones in their gradients";
  let description = [{
    Replaces ops by the forms of `GradientOpInterface::buildUndifferentiated`: `nn.stop_gradient` by
    its operand, and an `nn.gather` of the largest or the smallest elements along a dimension by an
    `nn.reduce`, which is faster and can be split along the dimension. Nothing in the result may be
    differentiated.

    ```mlir
    %i = nn.argmax %x dim 1 keepdim : tensor<2x4xf32> -> tensor<2x1xi64>
    %y = nn.gather %x, %i dim 1 : (tensor<2x4xf32>, tensor<2x1xi64>) -> tensor<2x1xf32>
    ```

    becomes

    ```mlir
    %y = nn.reduce max %x dims [1] keepdim : tensor<2x4xf32> -> tensor<2x1xf32>
    ```
  }];
}

def Propagate : Pass<"tp-propagate", "::mlir::ModuleOp"> {
  let summary = "Give every value a placement";
  let description = [{
    Spreads the fixed placements (`tp.sharding` on arguments, results, parameters and other ops,
    every `tp.redistribute` and `tp.constraint`) through the ops' sharding rules, forward and
    backward, until nothing changes. This gives each op its candidates, the ways in which it may
    run. The pass then chooses one candidate per op so that the whole program communicates least.
    The cost is the bytes that ranks receive, and `latency-bytes` per rank for each collective;
    among equal costs, the choice that leaves the least to compute wins.

    If an operand isn't placed as its op needs it, the pass inserts a `tp.redistribute`, which names
    the reason. Uses that need the same placement share it. A value from outside a loop is
    redistributed outside the loop. Modules are inlined first (`nn-inline-modules`).

    `strategy=optimal` (the default) solves the choice exactly by variable elimination. If a program
    is too entangled for that, candidates that can't be part of a cheapest choice are removed first;
    `search-budget` limits this work. If that isn't enough, a remark (category `tp-propagate`) says,
    in bytes and per cent, how far the choice may be above the optimum. In functions of at most
    `exhaustive-ops` ops, the pass considers every split of every op over all mesh dimensions; in
    larger ones, only the splits that spread to an op. `strategy=greedy` decides op by op, then
    improves locally.

    A parameter keeps its placement if something else can move instead. Arguments and results
    without `tp.sharding` are replicated; for those with `tp.open`, the pass chooses the cheapest
    placement. A value that a region op passes on (the iteration arguments of `scf.for`, the values
    that the branches of `scf.if` yield, …) has one placement on all paths. A callee is decided
    separately for each call: calls that end up with equal placements share one function, others
    call a copy.

    If a tensor dimension is a product of factors, and a mesh dimension doesn't divide the major
    factor, the mesh dimension is cut into parts, and each part splits one factor. With four ranks
    and two key-value heads, `tp:(1)2` splits the heads and `tp:(2)2` splits each head.

    ```mlir
    %w = nn.parameter "net2.weight" {tp.fqn = "net2", tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<10x16xf32>
    %y = nn.linear %x, %w {tp.fqn = "net2"} : (tensor<8x16xf32>, tensor<10x16xf32>) -> tensor<8x10xf32>
    return %y : tensor<8x10xf32>
    ```

    becomes, if `%x` is split along dimension 1,

    ```mlir
    %w = nn.parameter "net2.weight" {…} : tensor<10x16xf32>
    %y = nn.linear %x, %w {tp.fqn = "net2", tp.sharding = #tp.sharding<@mesh, [{}, {} ], partial = {tp: sum}>} : …
    %z = tp.redistribute %y to <@mesh, [{}, {} ]> {fqn = "", reason = "result 0 of the function is (Replicate)"} : tensor<8x10xf32>
    return %z : tensor<8x10xf32>
    ```

    With `forbid-implicit`, a redistribution that moves bytes is an error unless something asks for
    it: a layout of the plan, a `tp.constraint`, a `tp.sharding` on a function's result, or another
    op of the IR. The error says what the redistribution would cost.

    Fails on an op without a sharding rule, on control flow between blocks, on recursion, and if a
    fixed placement can't be reached (a redistribution can't make a value Partial).
  }];
  let options = [Strategy, ForbidImplicit, ExhaustiveOps, LatencyBytes, SearchBudget, OneShot, Memory];
  let statistics = [
    Statistic<"numCopies", "copies", "Functions copied for calls with other placements">,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect"];
}

def Partition : Pass<"tp-partition", "::mlir::ModuleOp"> {
  let summary = "Turn a sharded program into one rank's program";
  let description = [{
    Each type becomes the type of one rank's block. Each op becomes its local form, which the op's
    own partition hook builds. Each `tp.redistribute` becomes the collectives that lead from one
    placement to the other. The pass also checks the placements of each op against its sharding
    rule. Function arguments, function results and parameters keep their placement (`tp.sharding`)
    and their global type (`tp.global_type`).

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

    If sizes don't divide evenly, ranks whose blocks have different shapes run different programs.
    There is a copy of the function for each further program, which names the function in
    `tp.copy_of`. The function and its copies list the ranks that run them in `tp.ranks`. All programs
    have the same collectives in the same order.

    ```mlir
    // 10 rows over 4 ranks
    func.func @forward(%x: tensor<3x8xf32> …) attributes {tp.ranks = array<i64: 0, 1, 2>}
    func.func @forward_0(%x: tensor<1x8xf32> …) attributes {tp.copy_of = @forward, tp.ranks = array<i64: 3>}
    ```

    The function's attribute `tp.redistributions` records, for `tp-report`, the cost of each
    redistribution and a lower bound of it.

    Fails if a value has no placement, an op's placements break its rule, or the program is already
    partitioned.
  }];
  let options = [OneShot, Memory];
  let dependentDialects = ["::mlir::tp::TPDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def CutStages : Pass<"tp-cut-stages", "::mlir::ModuleOp"> {
  let summary = "Give each stage of a pipeline a program of its own";
  let description = [{
    Without a `tp.pipeline`, nothing changes. Otherwise the ranks at each index of its mesh
    dimension get a program of their own. With n indices, the program of index i runs stage i, or
    the stages i, i + n, i + 2n, … if the pipeline has more than n stages. The function itself
    becomes the program of index 0. The function of each further index names it in `tp.stage_of`.

    An op that is marked with `tp.stage`, and depends on an activation, runs on that stage. So does
    an unmarked op whose operands come from one stage. All other ops run on each stage that needs
    them: parameters, constants, what depends on nothing else or on arguments alone, and what
    combines values of several stages. A stage therefore holds the parameters that it reads, and
    updates them. If several stages hold a parameter, as a tied weight, each of them receives the
    others' gradients and updates its own copy alike.

    A value that another rank needs becomes a `tp.transfer` in both programs. The sender starts it
    where the value is computed. Count the passes of all ranks in steps, as if every pass took one
    step: the sender waits for the transfer when it sends a value to the same rank at least two
    steps after the receipt. The receiver waits for it where it first needs the value.

    Ops run in the order of the pipeline's schedule, by their passes (`tp.pass`). With
    `InterleavedZeroBubble`, the ops of a backward pass that no other stage's ops depend on run
    later: these are the gradients of weights. Tensors that a stage doesn't take or return have an
    empty type and the attribute `tp.absent`. Scalars are returned by all stages.

    With a pipeline over {pp: 2}, the program

    ```mlir
    func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %w = nn.parameter "a.weight" : tensor<8x8xf32>
      %0 = nn.linear %x, %w {tp.stage = 0 : i64} : …
      %v = nn.parameter "b.weight" : tensor<8x8xf32>
      %1 = nn.linear %0, %v {tp.stage = 1 : i64} : …
      return %1 : tensor<4x8xf32>
    }
    ```

    becomes

    ```mlir
    func.func @main(%x: tensor<4x8xf32>) -> (tensor<0x0xf32> {tp.absent})
        attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
      %w = nn.parameter "a.weight" : tensor<8x8xf32>
      %0 = nn.linear %x, %w : …
      %1 = tp.start { tp.transfer %0 from 0 to 1 … : tensor<4x8xf32> -> tensor<0x0xf32> }
      %2 = tensor.empty() : tensor<0x0xf32>
      tp.wait %1
      return %2 : tensor<0x0xf32>
    }
    func.func @main_stage1(%x: tensor<0x0xf32> {tp.absent}) -> tensor<4x8xf32>
        attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @main} {
      %0 = tp.start { tp.transfer %empty from 0 to 1 … : tensor<0x0xf32> -> tensor<4x8xf32> }
      %1 = tp.wait %0
      %v = nn.parameter "b.weight" : tensor<8x8xf32>
      %2 = nn.linear %1, %v : …
      return %2 : tensor<4x8xf32>
    }
    ```

    Run it on per-rank IR, after `tp-inline-calls`, and before collectives are optimized. Fails if a
    function has several blocks, or if the pipeline's mesh dimension splits a value unevenly.
  }];
  let dependentDialects = ["::mlir::tp::TPDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numTransfers", "transfers", "Values that a stage sends to another">,
  ];
}

def OptimizeCollectives : Pass<"tp-optimize-collectives", "::mlir::ModuleOp"> {
  let summary = "Remove, share and merge collectives, and replace them by cheaper ones";
  let description = [{
    Rewrites collectives so that ranks exchange fewer bytes in fewer collectives. The following
    rewrites always apply:

    - a collective whose operand doesn't change in a loop is issued once, before the loop;
    - if only this rank's slice of an `all_reduce` is used, the `all_reduce` becomes a
      `reduce_scatter` over the mesh dimensions that the two share; if only a slice of an
      `all_gather` along another dimension is used, the `all_gather` becomes an `all_to_all`;
    - pairs that undo each other are removed: a gather of a slice, a slice of a gather, and an
      `all_to_all` or `exchange` followed by its inverse. Consecutive permutes become one. A
      `reduce_scatter` followed directly by an `all_gather` becomes an `all_reduce`;
    - equal collectives of one operand are issued once;
    - reductions (R) whose results are added become one reduction of the sum, even if other values
      are added in between: `(x + R(a)) + R(b)` becomes `x + R(a + b)`. This applies to `all_reduce`
      and `reduce_scatter`. Both also move down through ops that are linear in their result, to
      where they move fewer bytes;
    - a collective whose result no rank uses is removed from all programs.

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

    #### Groups of FSDP

    Parameters that FSDP splits are gathered by group (`tp.fsdp_group`, the module that PyTorch's
    `fully_shard` would be called on). In each pass over the model that needs any of them (`tp.pass`
    of `nn.recompute`), one `all_gather` stands before the first use. One `reduce_scatter` takes the
    gradients of the group, where the last of them is computed. Uneven blocks are padded with zeros.
    `fsdp-groups=false` keeps these collectives separate.

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

    #### Rewrites by request

    The following rewrites trade one cost for another, so each must be requested:

    - `sequence-parallel`: an `all_reduce` becomes a `reduce_scatter` before, and `all_gather`s
      after, the norms, additions and activations that follow it, if that moves no more bytes. These
      ops then work on blocks, but there are more collectives.

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
      joined into one. Its operand has at most this many bytes, unless all members are gradients of
      one FSDP group.

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
    - `memory-limit`: where more than this many bytes of values are live at once, a gathered value
      with later uses isn't kept. Its `all_gather` is issued again before those uses.

    All other ops keep their order. If ranks have different programs, all of the programs change in
    the same way, or none does, so ranks never wait for different collectives
    (`tp-verify-collectives`).

    Fails on control flow between blocks.
  }];
  let options = [
    SequenceParallel,
    BucketBytes,
    Option<"bucketGathers", "bucket-gathers", "bool", /*default=*/"true",
           "Whether gathers are joined as well; if not, each stays where it is">,
    Option<"fsdpGroups", "fsdp-groups", "bool", /*default=*/"true",
           "Whether what FSDP gathers and reduces for one module's parameters is joined">,
    MemoryLimit,
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
  let dependentDialects = ["::mlir::tp::TPDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def OverlapCollectives : Pass<"tp-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Overlap collectives with computation";
  let description = [{
    Splits each collective into a `tp.start`, right after its operand, and a `tp.wait`, before the
    first use, if there is something to compute in between. Starts keep their order, because all
    ranks issue collectives in the same order.

    A collective keeps its operand alive until it is waited for. If its result is smaller than its
    operand, as in the reduction of a gradient, it is waited for before the next such collective
    starts, so at most one such operand is kept at a time.

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

    Parameters (FSDP) are gathered one module ahead, in the forward and in the backward pass: the
    gathers for the next module start before the first use of the current module's gathered
    parameters. Consecutive gathers with the same FQN belong to one module. So at most two modules
    have gathered parameters at once.

    ```mlir
    %0 = tp.all_gather %w dim 0 over @mesh {dp} {fqn = "layers.1"} : tensor<2x8xf32> -> tensor<8x8xf32>
    %1 = nn.outer_sum %g, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %2 = nn.matmul %g, %0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = tp.reduce_scatter sum %1 dim 0 over @mesh {dp} : tensor<8x8xf32> -> tensor<2x8xf32>
    %4 = tp.all_gather %v dim 0 over @mesh {dp} {fqn = "layers.0"} : tensor<2x8xf32> -> tensor<8x8xf32>
    ```

    Here, `%4` starts before `%2`, and so before `%3`.

    With `chunks`, an `all_gather` of the rows of a contraction's operand, and a `reduce_scatter` of
    the rows of a contraction's result, are cut into chunks together with the contraction. One chunk
    is then moved while another is multiplied. Rows are never contracted, so no sum changes.

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

    A collective isn't cut if the number of chunks doesn't divide its blocks. All ranks' programs
    change in the same way, or none does.
  }];
  let options = [Chunks];
  let statistics = [
    Statistic<"numPrefetched", "prefetched", "Gathers of parameters moved up to the module before">,
    Statistic<"numStarted", "started", "Collectives split into start and wait">,
    Statistic<"numDecomposed", "decomposed", "Collectives done in chunks">,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def LowerStartWait : Pass<"tp-lower-start-wait"> {
  let summary = "Run each collective where it is started";
  let description = [{
    Replaces each `tp.start` by its collective, and removes the `tp.wait`. `tp-verify-spmd` uses
    this pass, because it checks what a program computes, not when. Neither the results nor the
    order in which ranks issue collectives change.

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

def HoistParameterUpdates : Pass<"tp-hoist-parameter-updates", "::mlir::func::FuncOp"> {
  let summary = "Move the updates of parameters up to where their gradients are computed";
  let description = [{
    A training step ends with its updates, so all gradients are kept until then. This pass moves
    each update up to the point where its parameter's gradient is computed and no later op reads the
    parameter. Then one gradient is live at a time, and the update still overwrites the parameter in
    place. Collectives don't move, and no update moves above a collective whose result it needs. If
    an update needs all gradients first, as with clipping, nothing moves. In a pipeline, nothing
    moves above a transfer that sends a value, because another stage waits for it.

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

    `tp-parallelize` runs it on training steps, unless `overlap` is set. With `overlap`, gradients
    are reduced while the rest of the backward pass runs, and their updates wait for the reductions.
  }];
}

def VerifyCollectives : Pass<"tp-verify-collectives", "::mlir::ModuleOp"> {
  let summary = "Prove that all ranks issue the same collectives in the same order";
  let description = [{
    Ranks that issue the same collectives in the same order can't wait for each other forever,
    whatever the data. The pass proves this from the text of the programs. It walks the programs of
    different ranks (`tp.ranks`) side by side, through regions and calls, and checks that they have
    the same collectives in the same positions. It also checks that all ranks have the same values
    where a value decides which regions with collectives run, or how often.

    All ranks have the same value for arguments and parameters that no mesh dimension splits, for
    results of `all_reduce`, `all_gather` and `broadcast`, and for results of pure ops on such
    values. Slices, offsets and blocks differ between ranks.

    ```mlir
    %n = tensor.extract %count[] : tensor<i1>      // of an argument that is split over tp
    %1 = scf.if %n -> tensor<8x16xf32> {           // error: what 'scf.if' decides by may differ between ranks along 'tp'; …
      %2 = tp.all_reduce sum %x over @mesh {tp} : tensor<8x16xf32>
      …
    ```

    Fails at the first collective for which this can't be proven, and names both ops. The program
    isn't changed.

    The programs of a pipeline's stages issue different collectives. The ranks of each stage are
    proven like all ranks of another program. Collectives of a stage must not be over the pipeline's
    mesh dimension; only `tp.transfer` connects stages. The n-th transfer from one stage to another
    must have the same type in both programs. The pass then runs the stages' transfers against each
    other, a transfer being over when both of its stages have started it. If all stages get to their
    ends in one order of steps, they do in every order. If not, the error shows what each stage waits
    for. A stage that receives values must also know along which mesh dimensions they may differ: if a
    stage has collectives in a branch or a loop, each transfer must name all such dimensions in
    `varying`.
  }];
  let statistics = [
    Statistic<"numProven", "proven", "Collectives that all ranks are proven to issue alike">,
  ];
}

#endif // TP_TRANSFORMS_PASSES_TD
