// The ways of matching patterns besides PyTorch's.
// RUN: split-file %s %t
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/hf.yaml | FileCheck %t/hf.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/regex.yaml 2>&1 | FileCheck %t/regex.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/prefix.yaml 2>&1 | FileCheck %t/prefix.yaml
// RUN: tp-opt %t/model.mlir --tp-apply-plan=plan=%t/warn.yaml 2>&1 | FileCheck %t/warn.yaml
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/hf-invalid.yaml -o %t/out.mlir 2>&1 | FileCheck %t/hf-invalid.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/regex-invalid.yaml -o %t/out.mlir 2>&1 | FileCheck %t/regex-invalid.yaml --implicit-check-not=error:

// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/wrapped.yaml -o %t/out.mlir 2>&1 | FileCheck %t/wrapped.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/hf-inner.yaml -o %t/out.mlir 2>&1 | FileCheck %t/hf-inner.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/regex-inner.yaml -o %t/out.mlir 2>&1 | FileCheck %t/regex-inner.yaml --implicit-check-not=error:
// RUN: %python -c "print('mesh: [tp, 2]\nmatch: regex\nplan:\n  \"' + '(' * 100000 + '\": colwise')" | tr '[],' '{}:' > %t/long.yaml
// RUN: not tp-opt %t/model.mlir --tp-apply-plan=plan=%t/long.yaml -o %t/out.mlir 2>&1 | FileCheck %s --check-prefix=LONG --match-full-lines
// LONG: {{.*}}long.yaml:4:3: error: '{{[(]+}}…' has 100000 characters, expected at most 4096

// Names of a wrapped model, or of an inner one.
//--- wrapped.yaml
# CHECK: wrapped.yaml:[[#@LINE+3]]:3: error: pattern '_orig_mod.model.layers.*.w1' matches no module: no submodule '_orig_mod' in the root module; did you mean 'model.layers.*.w1'?
mesh: {tp: 2}
plan:
  _orig_mod.model.layers.*.w1: ColwiseParallel
//--- hf-inner.yaml
# CHECK: error: pattern 'w*' matches no module: no FQN matches it after each number is replaced by '*'; did you mean 'model.layers.*.w*'?
mesh: {tp: 2}
match: hf
plan:
  'w*': colwise
//--- regex-inner.yaml
# CHECK: error: pattern 'layers\.\d+\.w1' matches no module: no FQN begins with it; did you mean 'model\.layers\.\d+\.w1'?
mesh: {tp: 2}
match: regex
plan:
  'layers\.\d+\.w1': ColwiseParallel

//--- model.mlir
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r0 = nn.module "model.layers.0.w1" class "Linear" (%x as "input" at 0) {
  ^bb0(%input: tensor<4x8xf32>):
    %w = nn.parameter "model.layers.0.w1.weight" : tensor<8x8xf32>
    %y = nn.linear %input, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    nn.yield %y : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %r1 = nn.module "model.layers.10.out2" class "Linear" (%r0 as "input" at 0) {
  ^bb0(%input: tensor<4x8xf32>):
    %w = nn.parameter "model.layers.10.out2.weight" : tensor<8x8xf32>
    %y = nn.linear %input, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %s = nn.parameter "model.layers.10.sinks" : tensor<8xf32>
    %z = nn.mul %y, %s : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    nn.yield %z : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r1 : tensor<4x8xf32>
}

// Numbers are stars, the name of the base model may lack; version 4 took the
// digits in out2 for a number as well. A key may be a parameter.
//--- hf.yaml
# CHECK: "model.layers.0.w1.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
# CHECK: "model.layers.10.out2.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
# CHECK: "model.layers.10.sinks" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}]>}
mesh: {tp: 2}
match: hf
plan:
  layers.*.w1: colwise
  model.layers.*.out*.weight: {style: rowwise}
  layers.*.sinks: colwise

//--- regex.yaml
# CHECK: regex.yaml:[[#@LINE+8]]:3: warning: 'model[.]layers[.]0[.]w1' is shadowed by '(?:model\.)?layers\.\d+\.w1': all that it matches has a style from there [shadowed]
# CHECK: regex.yaml:[[#@LINE+7]]:3: note: fix: remove the entry, or move it before the other one
# CHECK: "model.layers.0.w1.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
# CHECK: "model.layers.10.out2.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
mesh: {tp: 2}
match: regex
plan:
  '(?:model\.)?layers\.\d+\.w1': {style: ColwiseParallel, output_layouts: Replicate}
  'model[.]layers[.]0[.]w1': RowwiseParallel
  '.*\.out[\d]': rowwise_split_input

# vLLM: re.match takes a prefix, of each nn.Linear alone; Hugging Face's keys are read as regular expressions.
//--- prefix.yaml
# CHECK: "model.layers.0.w1.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
# CHECK: "model.layers.10.out2.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{}, {tp}]>}
# CHECK: "model.layers.10.sinks" :
mesh: {tp: 2}
match: regex
plan:
  'model.layers.*.w': colwise_gather_output
  'model.layers.1': rowwise_split_input

# As PyTorch does.
//--- warn.yaml
# CHECK: warn.yaml:[[#@LINE+5]]:3: warning: pattern 'net3' matches no module: no submodule 'net3' in the root module; its submodules are 'model'
# CHECK: "model.layers.0.w1.weight" {tp.sharding = #tp.sharding<@mesh, {{\[}}{tp}, {}]>}
mesh: {tp: 2}
on_unmatched: warn
plan:
  net3: ColwiseParallel
  model.layers.0.w1: {style: ColwiseParallel, output_layouts: Replicate}

//--- hf-invalid.yaml
mesh: {tp: 2}
match: hf
plan:
# CHECK: :[[#@LINE+1]]:3: error: pattern 'model.layers.*.w3' matches no module: no FQN matches it after each number is replaced by '*'; did you mean 'model.layers.*.w1'?
  model.layers.*.w3: colwise
# CHECK: :[[#@LINE+1]]:3: error: pattern 'layers.0.w1' matches no module: no FQN matches it after each number is replaced by '*'
  layers.0.w1: colwise

//--- regex-invalid.yaml
mesh: {tp: 2}
match: regex
plan:
# CHECK: :[[#@LINE+1]]:3: error: 'model.(layers' isn't a regular expression: parentheses not balanced
  'model.(layers': colwise
# CHECK: :[[#@LINE+1]]:3: error: pattern 'layers' matches no module: no FQN begins with it
  'layers': colwise
