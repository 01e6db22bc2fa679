// Styles for modules without a tensor input.
// RUN: split-file %s %t
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/plan.yaml -o %t/out.mlir 2>&1 | FileCheck %t/plan.yaml --implicit-check-not=error:
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/columns.yaml | FileCheck %s --check-prefix=COLUMNS
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/rows.yaml -o %t/out.mlir 2>&1 | FileCheck %t/rows.yaml --implicit-check-not=error:

// The weight is split although nothing passes through the module's input.
// COLUMNS: nn.module "fixed"
// COLUMNS: nn.parameter "fixed.weight"
// COLUMNS-SAME: [{tp}, {}]

//--- columns.yaml
mesh: {tp: 2}
plan:
  fixed: ColwiseParallel

//--- rows.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: input_layouts is Shard(-1), but 'fixed' takes a constant, which each rank has: write input_layouts: Replicate
  fixed: RowwiseParallel

//--- model.mlir
func.func @main() -> tensor<4x8xf32> {
  %i = nn.module "table" class "Positions" () {
    %p = nn.parameter "table.positions" : tensor<4x8xf32>
    nn.yield %p : tensor<4x8xf32>
  } : () -> tensor<4x8xf32>
  %r = nn.module "fixed" class "Fixed" () {
    %x = nn.parameter "fixed.x" : tensor<4x8xf32>
    %w = nn.parameter "fixed.weight" : tensor<8x8xf32>
    %y = nn.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    nn.yield %y : tensor<4x8xf32>
  } : () -> tensor<4x8xf32>
  %s = nn.add %i, %r : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

//--- plan.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: SequenceParallel splits the first input of a module, and 'table' has no tensor input
  table: SequenceParallel
# CHECK: :[[#@LINE+1]]:3: error: sequence_parallel splits the first input of a module, and 'fixed' has no tensor input
  fixe[d]: sequence_parallel
# CHECK: :[[#@LINE+1]]:3: error: module 'fixed' is matched by two entries
  fixed: ColwiseParallel
# CHECK: :[[#@LINE+1]]:3: error: module 'table' is matched by two entries
  tabl?: PrepareModuleInput
