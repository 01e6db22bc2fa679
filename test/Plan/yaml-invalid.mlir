// YAML errors are reported at their place, with a correction.
// RUN: split-file %s %t
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/strided.yaml -o %t/out.mlir 2>&1 | FileCheck %t/strided.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/strided-list.yaml -o %t/out.mlir 2>&1 | FileCheck %t/strided-list.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/tuple.yaml -o %t/out.mlir 2>&1 | FileCheck %t/tuple.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/tuple-block.yaml -o %t/out.mlir 2>&1 | FileCheck %t/tuple-block.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/star.yaml -o %t/out.mlir 2>&1 | FileCheck %t/star.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/star-flow.yaml -o %t/out.mlir 2>&1 | FileCheck %t/star-flow.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/star-name.yaml -o %t/out.mlir 2>&1 | FileCheck %t/star-name.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/anchor.yaml -o %t/out.mlir 2>&1 | FileCheck %t/anchor.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/tag.yaml -o %t/out.mlir 2>&1 | FileCheck %t/tag.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/shallow.yaml -o %t/out.mlir 2>&1 | FileCheck %t/shallow.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/deep-line.yaml -o %t/out.mlir 2>&1 | FileCheck %t/deep-line.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/tab.yaml -o %t/out.mlir 2>&1 | FileCheck %t/tab.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/unindented.yaml -o %t/out.mlir 2>&1 | FileCheck %t/unindented.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/brace.yaml -o %t/out.mlir 2>&1 | FileCheck %t/brace.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/brace-inner.yaml -o %t/out.mlir 2>&1 | FileCheck %t/brace-inner.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/bracket.yaml -o %t/out.mlir 2>&1 | FileCheck %t/bracket.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/mixed.yaml -o %t/out.mlir 2>&1 | FileCheck %t/mixed.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/closing.yaml -o %t/out.mlir 2>&1 | FileCheck %t/closing.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/quote.yaml -o %t/out.mlir 2>&1 | FileCheck %t/quote.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/set.yaml -o %t/out.mlir 2>&1 | FileCheck %t/set.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/set-flow.yaml -o %t/out.mlir 2>&1 | FileCheck %t/set-flow.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/comma.yaml -o %t/out.mlir 2>&1 | FileCheck %t/comma.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/comma-json.yaml -o %t/out.mlir 2>&1 | FileCheck %t/comma-json.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/commas.yaml -o %t/out.mlir 2>&1 | FileCheck %t/commas.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/space.yaml -o %t/out.mlir 2>&1 | FileCheck %t/space.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/space-block.yaml -o %t/out.mlir 2>&1 | FileCheck %t/space-block.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/null-flag.yaml -o %t/out.mlir 2>&1 | FileCheck %t/null-flag.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/null-dim.yaml -o %t/out.mlir 2>&1 | FileCheck %t/null-dim.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/auto.yaml -o %t/out.mlir 2>&1 | FileCheck %t/auto.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/parent.yaml -o %t/out.mlir 2>&1 | FileCheck %t/parent.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/control.yaml -o %t/out.mlir 2>&1 | FileCheck %t/control.yaml
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/control-json.yaml -o %t/out.mlir 2>&1 | FileCheck %t/control-json.yaml
// RUN: tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/fine.yaml -o /dev/null 2>&1 | count 0
// RUN: not ls %t/out.mlir

//--- control.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:8: error: the control character U+001B has no place in a plan
plan: {"\e[31m": ColwiseParallel}

//--- control-json.yaml
# CHECK: :[[#@LINE+2]]:11: error: the control character U+009B has no place in a plan
{"mesh": {"tp": 2},
 "plan": {"\u009b31m": "ColwiseParallel"}}

//--- strided.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:21: error: put quotes around '_StridedShard(0, split_factor=2)': within { } and [ ] a comma ends a text
plan: {net1.weight: _StridedShard(0, split_factor=2)}

//--- strided-list.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:17: error: put quotes around '_StridedShard(0, split_factor=2)'
  net1.weight: [_StridedShard(0, split_factor=2)]

//--- tuple.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:52: error: '(Shard(1), None)' is a tuple in Python; a list is written in brackets here, and None as null, as in [Shard(1), null]
  net1: {style: PrepareModuleInput, input_layouts: (Shard(1), None), desired_input_layouts: (Replicate(), None)}

//--- tuple-block.yaml
mesh: {tp: 2}
plan:
  net1:
    style: PrepareModuleInput
    desired_input_layouts: [Replicate(), null]
# CHECK: :[[#@LINE+1]]:20: error: input_layouts: '(Shard(1), None)' is a tuple in Python; a list is written in brackets here
    input_layouts: (Shard(1), None)

//--- star.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: '*' is a YAML alias, which a plan doesn't have; put quotes around a text that begins with '*'
  *: ColwiseParallel

//--- star-flow.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:8: error: '*' is a YAML alias
plan: {*: ColwiseParallel}

//--- star-name.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: '*.net1' is a YAML alias
  *.net1: ColwiseParallel

//--- anchor.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:9: error: '&style' is a YAML anchor, which a plan doesn't have; put quotes around a text that begins with '&'
  net1: &style ColwiseParallel

//--- tag.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:9: error: '!!str' is a YAML tag
  net1: !!str ColwiseParallel

//--- shallow.yaml
mesh: {tp: 2}
plan:
  net1: ColwiseParallel
# CHECK: :[[#@LINE+1]]:2: error: this line is indented by 1 space, the lines above that it could belong to by 0 or 2
 net2: RowwiseParallel

//--- deep-line.yaml
mesh: {tp: 2}
plan:
  net1: ColwiseParallel
# CHECK: :[[#@LINE+1]]:5: error: this line is indented by 4 spaces, deeper than line 3, which has its value already
    net2: RowwiseParallel

//--- tab.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:1: error: a tab can't indent a line of YAML; write spaces
	net1: ColwiseParallel

//--- unindented.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:1: error: 'plan' has nothing below it; indent the lines that belong to it
plan:
net1: ColwiseParallel

//--- brace.yaml
plan: {net1: ColwiseParallel}
# CHECK: :[[#@LINE+1]]:7: error: '{' is never closed
mesh: {tp: 2

//--- brace-inner.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:9: error: '{' is never closed
  net1: {style: ColwiseParallel, input_layouts: Replicate

//--- bracket.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:16: error: '[' is never closed
  net1.weight: [Shard(0)

//--- mixed.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:16: error: '[' is closed by '}'
  net1.weight: [Shard(0)}

//--- closing.yaml
plan: {net1: ColwiseParallel}
# CHECK: :[[#@LINE+1]]:14: error: '}' closes nothing
mesh: {tp: 2}}

//--- quote.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:14: error: the text that begins with this quote is never closed
plan: {net1: "ColwiseParallel}

//--- set.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: 'net[12' isn't a pattern: its '[' lacks a ']'
  net[12: ColwiseParallel

//--- set-flow.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:8: error: put quotes around 'net[12]': within { } and [ ] a bracket ends a text
plan: {net[12]: ColwiseParallel}

//--- comma.yaml
plan: {net1: ColwiseParallel}
# CHECK: :[[#@LINE+1]]:13: error: nothing stands behind this comma
mesh: {tp: 2,}

//--- comma-json.yaml
{"mesh": {"tp": 2},
# CHECK: :[[#@LINE+1]]:36: error: nothing stands behind this comma
 "plan": {"net1": "ColwiseParallel",}}

//--- commas.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:30: error: nothing stands before this comma
plan: {net1: ColwiseParallel,, net2: RowwiseParallel}

//--- space.yaml
plan: {net1: ColwiseParallel}
# CHECK: :[[#@LINE+1]]:8: error: 'tp:2' needs a space after ':'
mesh: {tp:2}

//--- space-block.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:3: error: 'net1:ColwiseParallel' needs a space after ':'
  net1:ColwiseParallel

//--- null-flag.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:52: error: use_local_output must be true or false, found nothing
  net1: {style: ColwiseParallel, use_local_output: null}

//--- null-dim.yaml
mesh: {tp: 2}
plan:
# CHECK: :[[#@LINE+1]]:49: error: sequence_dim must be an integer, found nothing
  net1: {style: SequenceParallel, sequence_dim: null}

//--- auto.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:7: error: unknown style 'auto': plans aren't chosen automatically; write out the model's tp_plan, with match: hf
plan: auto

//--- parent.yaml
mesh: {tp: 2}
# CHECK: :[[#@LINE+1]]:8: error: ColwiseParallel can't shard the root module of class 'MLP'; it shards nn.Linear and nn.Embedding, here 'net1', 'net2'
plan: {"": ColwiseParallel}

# What looks like a slip and is none.
//--- fine.yaml
mesh:	{ tp : 2 } # a comment, with { and [

plan:
  # a comment {
	
  'net[1]': {style: ColwiseParallel, input_layouts: "Replicate"}
  "net2":
    style:
      RowwiseParallel
