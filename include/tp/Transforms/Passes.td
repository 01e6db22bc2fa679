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

    Fails, with every problem at its line and column of the plan, when the plan can't be
    read or parsed, names a style, argument, placement or mesh dimension that doesn't
    exist, has a pattern that matches no module, puts a style on a module that it can't
    shard, gives a layout for a tensor that a module doesn't have, splits a dimension that
    doesn't exist or doesn't divide by the mesh dimension, or asks for two placements of
    one parameter. Fails as well when the module has a `tp.mesh` already.
  }];
  let options = [
    Option<"planPath", "plan", "std::string", "",
           "Path of the plan file (YAML or JSON); required">,
  ];
  let statistics = [
    Statistic<"numParameters", "parameters-placed", "Parameters that the plan places">,
    Statistic<"numRedistributions", "redistributions", "Redistributions inserted at module boundaries">,
  ];
  let dependentDialects = ["::mlir::tp::TPDialect"];
}

#endif // TP_TRANSFORMS_PASSES_TD
