// FSDP's groups: the modules that the plan names, or else the model's blocks, and the root. Scalars are in none.
// RUN: split-file %s %t
// RUN: tp-opt %t/blocks.mlir --tp-apply-plan=plan=%t/found.yaml | FileCheck %s --check-prefix=FOUND
// RUN: tp-opt %t/blocks.mlir --tp-apply-plan=plan=%t/named.yaml | FileCheck %s --check-prefix=NAMED
// RUN: tp-opt %t/blocks.mlir --tp-apply-plan=plan=%t/root.yaml | FileCheck %s --check-prefix=ROOT
// RUN: tp-opt %t/leaves.mlir --tp-apply-plan=plan=%t/found.yaml | FileCheck %s --check-prefix=LEAVES
// RUN: tp-opt %t/series.mlir --tp-apply-plan=plan=%t/found.yaml | FileCheck %s --check-prefix=SERIES
// RUN: tp-opt %t/none.mlir --tp-apply-plan=plan=%t/found.yaml | FileCheck %s --check-prefix=NONE

// A list of blocks; a list of layers beside it, in the head, is no block. What isn't the root's is gathered again.
// FOUND: nn.parameter "embed.w" {tp.fsdp_group = ""
// FOUND-NEXT: tp.redistribute
// FOUND-NOT: tp.reshard
// FOUND: nn.parameter "layers.0.up.w" {tp.fsdp_group = "layers.0"
// FOUND-NEXT: tp.redistribute {{.*}}tp.reshard
// FOUND: nn.parameter "layers.0.scale" {tp.fsdp_group = "layers.0"
// FOUND: nn.parameter "layers.1.up.w" {tp.fsdp_group = "layers.1"
// FOUND: nn.parameter "head.0.w" {tp.fsdp_group = ""
// FOUND: nn.parameter "head.1.w" {tp.fsdp_group = ""

// NAMED: nn.parameter "embed.w" {tp.fsdp_group = "embed"
// NAMED: nn.parameter "layers.0.up.w" {tp.fsdp_group = "layers.0.up"
// NAMED: nn.parameter "layers.0.scale" {tp.fsdp_group = "layers.0"
// NAMED: nn.parameter "head.0.w" {tp.fsdp_group = ""

// ROOT: nn.parameter "embed.w" {tp.fsdp_group = ""
// ROOT-NOT: {{tp.fsdp_group = "[^"]|tp.reshard}}
// ROOT: nn.parameter "head.1.w" {tp.fsdp_group = ""
// ROOT-NOT: tp.reshard

// LEAVES: nn.parameter "net.0.w" {tp.fsdp_group = "net.0"
// LEAVES: nn.parameter "net.1.w" {tp.fsdp_group = "net.1"

// SERIES: nn.parameter "stage1.up.w" {tp.fsdp_group = "stage1"
// SERIES: nn.parameter "stage2.up.w" {tp.fsdp_group = "stage2"

// Groups of 25 MiB: the second doesn't fit beside the first.
// NONE: nn.parameter "a.w" {tp.fsdp_group = ""
// NONE: nn.parameter "b.w" {tp.fsdp_group = "b.w"
// NONE: nn.parameter "c.w" {tp.fsdp_group = "b.w"

//--- found.yaml
mesh: {dp: 2}
data_parallel: {dp: fsdp}

//--- named.yaml
mesh: {dp: 2}
data_parallel: {dp: {style: fsdp, modules: [embed, "layers.*", "layers.*.up"]}}

//--- root.yaml
mesh: {dp: 2}
data_parallel: {dp: {style: fsdp, modules: []}}

//--- blocks.mlir
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.module "embed" class "Linear" (%x as "x" at 0) {
  ^bb0(%a: tensor<2x4xf32>):
    %w = nn.parameter "embed.w" : tensor<4x4xf32>
    %y = nn.linear %a, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = nn.module "layers.0" class "Block" (%0 as "x" at 0) {
  ^bb0(%a: tensor<2x4xf32>):
    %u = nn.module "layers.0.up" class "Linear" (%a as "x" at 0) {
    ^bb0(%b: tensor<2x4xf32>):
      %w = nn.parameter "layers.0.up.w" : tensor<4x4xf32>
      %y = nn.linear %b, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      nn.yield %y : tensor<2x4xf32>
    } : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %s = nn.parameter "layers.0.scale" : tensor<4xf32>
    %y = nn.mul %u, %s : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = nn.module "layers.1" class "Block" (%1 as "x" at 0) {
  ^bb0(%a: tensor<2x4xf32>):
    %u = nn.module "layers.1.up" class "Linear" (%a as "x" at 0) {
    ^bb0(%b: tensor<2x4xf32>):
      %w = nn.parameter "layers.1.up.w" : tensor<4x4xf32>
      %y = nn.linear %b, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      nn.yield %y : tensor<2x4xf32>
    } : (tensor<2x4xf32>) -> tensor<2x4xf32>
    nn.yield %u : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = nn.module "head.0" class "Linear" (%2 as "x" at 0) {
  ^bb0(%a: tensor<2x4xf32>):
    %w = nn.parameter "head.0.w" : tensor<4x4xf32>
    %y = nn.linear %a, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = nn.module "head.1" class "Linear" (%3 as "x" at 0) {
  ^bb0(%a: tensor<2x4xf32>):
    %w = nn.parameter "head.1.w" : tensor<4x4xf32>
    %y = nn.linear %a, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}

//--- leaves.mlir
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.module "net.0" class "Linear" (%x as "x" at 0) {
  ^bb0(%a: tensor<2x4xf32>):
    %w = nn.parameter "net.0.w" : tensor<4x4xf32>
    %y = nn.linear %a, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = nn.module "net.1" class "Linear" (%0 as "x" at 0) {
  ^bb0(%a: tensor<2x4xf32>):
    %w = nn.parameter "net.1.w" : tensor<4x4xf32>
    %y = nn.linear %a, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    nn.yield %y : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

//--- series.mlir
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = nn.module "stage1" class "Stage" (%x as "x" at 0) {
  ^bb0(%a: tensor<2x4xf32>):
    %u = nn.module "stage1.up" class "Linear" (%a as "x" at 0) {
    ^bb0(%b: tensor<2x4xf32>):
      %w = nn.parameter "stage1.up.w" : tensor<4x4xf32>
      %y = nn.linear %b, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      nn.yield %y : tensor<2x4xf32>
    } : (tensor<2x4xf32>) -> tensor<2x4xf32>
    nn.yield %u : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = nn.module "stage2" class "Stage" (%0 as "x" at 0) {
  ^bb0(%a: tensor<2x4xf32>):
    %u = nn.module "stage2.up" class "Linear" (%a as "x" at 0) {
    ^bb0(%b: tensor<2x4xf32>):
      %w = nn.parameter "stage2.up.w" : tensor<4x4xf32>
      %y = nn.linear %b, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      nn.yield %y : tensor<2x4xf32>
    } : (tensor<2x4xf32>) -> tensor<2x4xf32>
    nn.yield %u : tensor<2x4xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

//--- none.mlir
func.func @main(%x: tensor<2x2048xf32>) -> tensor<2x2048xf32> {
  %a = nn.parameter "a.w" : tensor<2048x2048xf32>
  %0 = nn.linear %x, %a : (tensor<2x2048xf32>, tensor<2048x2048xf32>) -> tensor<2x2048xf32>
  %b = nn.parameter "b.w" : tensor<2048x2048xf32>
  %1 = nn.linear %0, %b : (tensor<2x2048xf32>, tensor<2048x2048xf32>) -> tensor<2x2048xf32>
  %c = nn.parameter "c.w" : tensor<2048xf32>
  %2 = nn.mul %1, %c : (tensor<2x2048xf32>, tensor<2048xf32>) -> tensor<2x2048xf32>
  return %2 : tensor<2x2048xf32>
}
