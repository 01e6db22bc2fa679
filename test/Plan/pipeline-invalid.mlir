// Pipelines that don't fit the mesh or the model.
// RUN: split-file %s %t
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/keys.yaml -o %t/out.mlir 2>&1 | FileCheck %t/keys.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/list.yaml -o %t/out.mlir 2>&1 | FileCheck %t/list.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/stages.yaml -o %t/out.mlir 2>&1 | FileCheck %t/stages.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/axes.yaml -o %t/out.mlir 2>&1 | FileCheck %t/axes.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/data.yaml -o %t/out.mlir 2>&1 | FileCheck %t/data.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/style.yaml -o %t/out.mlir 2>&1 | FileCheck %t/style.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/one.yaml -o %t/out.mlir 2>&1 | FileCheck %t/one.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/names.yaml -o %t/out.mlir 2>&1 | FileCheck %t/names.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/order.yaml -o %t/out.mlir 2>&1 | FileCheck %t/order.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/context.yaml -o %t/out.mlir 2>&1 | FileCheck %t/context.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/word.yaml -o %t/out.mlir 2>&1 | FileCheck %t/word.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/blocks.yaml -o %t/out.mlir 2>&1 | FileCheck %t/blocks.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/interleaved.yaml -o %t/out.mlir 2>&1 | FileCheck %t/interleaved.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/zero.yaml -o %t/out.mlir 2>&1 | FileCheck %t/zero.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/rounds.yaml -o %t/out.mlir 2>&1 | FileCheck %t/rounds.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/count.yaml -o %t/out.mlir 2>&1 | FileCheck %t/count.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/single.yaml -o %t/out.mlir 2>&1 | FileCheck %t/single.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/listed.yaml -o %t/out.mlir 2>&1 | FileCheck %t/listed.yaml --implicit-check-not=error:
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/machine.yaml -o %t/out.mlir 2>&1 | FileCheck %t/machine.yaml --implicit-check-not=error:
// RUN: sed 's/net1/net.0/g; s/net2/net.1/g' %S/Inputs/mlp.mlir > %t/list.mlir
// RUN: not tp-opt %S/Inputs/mlp.mlir --tp-apply-plan=plan=%t/batch.yaml -o %t/out.mlir 2>&1 | FileCheck %t/batch.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/list.mlir --tp-apply-plan=plan=%t/fewer.yaml -o %t/out.mlir 2>&1 | FileCheck %t/fewer.yaml --implicit-check-not=error:
// RUN: not tp-opt %t/branch.mlir --tp-apply-plan=plan=%t/branch.yaml -o %t/out.mlir 2>&1 | FileCheck %t/branch.yaml --implicit-check-not=error:

//--- keys.yaml
mesh: {pp: 2}
pipeline:
  pp:
    # CHECK: :[[#@LINE+1]]:5: error: unknown key 'chunks'; keys are split, schedule, stages_per_rank, machine, microbatches
    chunks: 2
    split: [net2]
    # CHECK: :[[#@LINE+1]]:15: error: there is no schedule 'gpipe'; did you mean 'GPipe'?
    schedule: gpipe
    # CHECK: :[[#@LINE+1]]:19: error: microbatches must be an integer from 1 to 1024, found '0'
    microbatches: 0

//--- list.yaml
mesh: {pp: 2}
# CHECK: :[[#@LINE+1]]:1: error: pipeline must map a mesh dimension to its stages, such as {pp: {split: [layers.2]}}, found a list
pipeline: [pp]

//--- stages.yaml
mesh: {pp: 3}
# CHECK: :[[#@LINE+1]]:17: error: split must have 2 modules, as the 3 ranks of 'pp' run a stage each, found 1
pipeline: {pp: {split: [net2]}}

//--- axes.yaml
mesh: {pp: 2, tp: 2}
# CHECK: :[[#@LINE+2]]:12: error: the mesh has no dimension 'qp'; did you mean 'pp'?
# CHECK: :[[#@LINE+1]]:54: error: a plan has one pipeline, and 'pp' has one already
pipeline: {qp: {split: [net2]}, pp: {split: [net2]}, tp: {split: [net2]}}
mesh_dim: tp
plan: {net1: ColwiseParallel}

//--- data.yaml
mesh: {pp: 2}
data_parallel: {pp: ddp}
# CHECK: :[[#@LINE+1]]:12: error: 'pp' is in data_parallel, so it can't have the stages of a pipeline, too
pipeline: {pp: {split: [net2]}}

//--- style.yaml
mesh: {pp: 2, tp: 2}
# CHECK: :[[#@LINE+1]]:12: error: 'pp' has the stages of a pipeline, so the plan can't split over it, too
pipeline: {pp: {split: [net2]}}
mesh_dim: pp
plan: {net1: ColwiseParallel}

//--- one.yaml
mesh: {pp: 1}
# CHECK: :[[#@LINE+1]]:12: error: 'pp' has one rank, and a pipeline has at least two stages
pipeline: {pp: {split: [net2]}}

//--- names.yaml
mesh: {pp: 3}
# CHECK: :[[#@LINE+2]]:25: error: no stage can begin at 'net3': no submodule 'net3' in the root module; did you mean 'net1'?
# CHECK: :[[#@LINE+1]]:31: error: no stage can begin at ''
pipeline: {pp: {split: [net3, ""]}}

//--- order.yaml
mesh: {pp: 3}
# CHECK: :[[#@LINE+2]]:31: error: the model runs 'net1' before 'net2', so its stage can't come after that one; list the modules in the order in which the model runs them
# CHECK: :[[#@LINE+1]]:25: note: 'net2' is here
pipeline: {pp: {split: [net2, net1]}}

//--- context.yaml
mesh: {pp: 2}
pipeline: {pp: {split: [net2]}}
# CHECK: :[[#@LINE+1]]:20: error: 'pp' has the stages of a pipeline, so context_parallel can't split over it, too
context_parallel: {pp: ring}

//--- batch.yaml
mesh: {pp: 2, replicate: 3, dp: 2}
data_parallel: {replicate: ddp, dp: fsdp}
# CHECK: :[[#@LINE+1]]:46: error: the 6 ranks that split the batch don't divide the 8 examples of a microbatch; import the model for a multiple of 6 examples, or use 1 microbatch
pipeline: {pp: {split: [net2], microbatches: 4}}

//--- word.yaml
mesh: {pp: 2}
# CHECK: :[[#@LINE+1]]:24: error: split must be a list of modules, or auto, found 'automatic'
pipeline: {pp: {split: automatic}}

//--- blocks.yaml
mesh: {pp: 2}
# CHECK: :[[#@LINE+1]]:24: error: there is no place to cut: the model has no list of modules that every run calls, such as layers.0, layers.1; name the modules that begin the stages
pipeline: {pp: {split: auto}}

//--- interleaved.yaml
mesh: {pp: 2}
# CHECK: :[[#@LINE+1]]:17: error: split has 1 module, which make 2 stages; Interleaved1F1B needs a multiple of 2 stages, at least 4, for the 2 ranks of 'pp'
pipeline: {pp: {split: [net2], schedule: Interleaved1F1B}}

//--- zero.yaml
mesh: {pp: 2}
# CHECK: :[[#@LINE+1]]:17: error: split has 2 modules, which make 3 stages; InterleavedZeroBubble needs a multiple of 2 stages, at least 2, for the 2 ranks of 'pp'
pipeline: {pp: {split: [net1, net2], schedule: InterleavedZeroBubble}}

//--- rounds.yaml
mesh: {pp: 4}
# CHECK: :[[#@LINE+2]]:71: error: 9 microbatches on 4 ranks can't run in 2 rounds of equal size, which several stages per rank need; use a multiple of 4
# CHECK: :[[#@LINE+1]]:24: error: there is no place to cut
pipeline: {pp: {split: auto, schedule: Interleaved1F1B, microbatches: 9}}

//--- count.yaml
mesh: {pp: 2}
# CHECK: :[[#@LINE+2]]:47: error: 1F1B allows one stage per rank, found 2; use Interleaved1F1B or InterleavedZeroBubble for several
# CHECK: :[[#@LINE+1]]:24: error: there is no place to cut
pipeline: {pp: {split: auto, stages_per_rank: 2, schedule: 1F1B}}

//--- single.yaml
mesh: {pp: 2}
# CHECK: :[[#@LINE+2]]:47: error: Interleaved1F1B needs at least 2 stages per rank, found 1; 1F1B runs one
# CHECK: :[[#@LINE+1]]:24: error: there is no place to cut
pipeline: {pp: {split: auto, stages_per_rank: 1, schedule: Interleaved1F1B}}

//--- listed.yaml
mesh: {pp: 2}
# CHECK: :[[#@LINE+2]]:32: error: 'stages_per_rank' needs split: auto, and split is a list of modules; remove one of them
# CHECK: :[[#@LINE+1]]:52: error: 'machine' needs split: auto, and split is a list of modules; remove one of them
pipeline: {pp: {split: [net2], stages_per_rank: 1, machine: cpu}}

//--- machine.yaml
mesh: {pp: 2}
# CHECK: error: no machine is called 'h1000'
# CHECK: :[[#@LINE+1]]:39: error: the machine of the pipeline can't be read
pipeline: {pp: {split: auto, machine: h1000}}

//--- fewer.yaml
mesh: {pp: 3}
# CHECK: :[[#@LINE+1]]:24: error: the model can be cut into at most 2 stages, one for each module of its lists ('net.0', …), and the pipeline has 3; use fewer stages, or name the modules that begin them
pipeline: {pp: {split: auto}}

//--- branch.yaml
mesh: {pp: 2}
# CHECK: :[[#@LINE+2]]:25: error: no stage can begin at 'a': it isn't on every path through the model
# CHECK: branch.mlir:3:{{[0-9]+}}: note: it is in a branch, a loop or another function than the entry point
pipeline: {pp: {split: [a]}}

//--- branch.mlir
func.func @main(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = nn.module "a" class "A" (%x as "x" at 0) {
    ^bb0(%y: tensor<4xf32>):
      %2 = nn.relu %y : tensor<4xf32>
      nn.yield %2 : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
