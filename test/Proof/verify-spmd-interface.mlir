// The attributes and the side effects of programs are checked too.
//
// RUN: tp-opt %s --tp-parallelize -o %t.mlir
// RUN: tp-opt %t.mlir --tp-verify-spmd=reference=%s -o /dev/null 2>&1 | FileCheck %s
// CHECK: remark: 'main' is proven for 2 ranks
// CHECK: remark: 'uneven' is proven for 2 ranks

// DEFINE: %{verify} = not tp-opt %t.bad.mlir --tp-verify-spmd="reference=%s accept-tested" -o /dev/null 2>&1 | FileCheck %s

// A function without programs, and one that can't be called.
// RUN: sed -e '/func.func @main(/,/^  }/d' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=MISSING
// RUN: sed -e 's/func.func @main(/func.func private @main(/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=MISSING
// MISSING: error: no program computes function 'main' of the reference
// MISSING: note: the reference is here

// Names, by which the runtime passes arguments and results.
// RUN: sed -e 's/tp.name = "x"/tp.name = "y"/; t; s/tp.name = "y"/tp.name = "x"/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=ARGUMENT
// ARGUMENT: error: not proven: argument 0 is named 'y', but named 'x' in the reference
// RUN: sed -e 's/tp.name = "a"/tp.name = "c"/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=RESULT
// RESULT: error: not proven: result 0 is named 'c', but named 'a' in the reference

// Sizes, by which the runtime pads arguments and cuts results.
// RUN: sed -e 's/"s0", "4"/"4", "s0"/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=SIZES
// SIZES: error: not proven: argument 0 has another symbolic shape than the reference's
// RUN: sed -e 's/"s0", "n"/"n", "s0"/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=CUT
// CUT: error: not proven: result 0 has another symbolic shape than the reference's

// Where the results of another rank's program are said to belong.
// RUN: sed -e '/func.func @uneven_0/ s/-> (tensor<2x5xf32> {tp.global_type = tensor<5x5xf32>, tp.name = "r", tp.sharding = .*>})/-> (tensor<2x5xf32> {tp.global_type = tensor<5x5xf32>, tp.name = "r", tp.sharding = #tp.sharding<@mesh, [{tp| 2, 3}, {}]>})/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=PLACED
// PLACED: error: not proven, for ranks 1: result 0 has another placement than in the first program
// RUN: sed -e '/func.func @uneven_0/ s/-> (tensor<2x5xf32> {.*>})/-> tensor<2x5xf32>/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=UNPLACED
// UNPLACED: error: not proven, for ranks 1: result 0 has no 'tp.sharding' and 'tp.global_type'

// The initial value of a parameter.
// RUN: sed -e 's/init 0.0/init 1.0/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=INIT
// INIT: error: the program gives "m" another initial value than the reference

// Whether training updates it.
// RUN: sed -e 's/nn.parameter "w" {/nn.parameter "w" frozen {/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=FROZEN
// FROZEN: error: not proven: parameter 'w' is frozen, but isn't in the reference

// An op that looks like a parameter.
// RUN: sed -e 's/%0 = nn.parameter "w" {\(.*\)} :/%0 = nn.constant {fqn = "w", \1} dense<1.0> :/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=CONSTANT
// CONSTANT: error: not proven: no op of the reference computes this on each rank's blocks
// CONSTANT-NEXT: nn.constant

// A parameter of which a rank would hold two blocks.
// RUN: sed -e 's/%2 = nn.sub/%again = nn.parameter "w" {tp.global_type = tensor<4x4xf32>, tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>} : tensor<4x2xf32>\n%2 = nn.sub/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=TWICE
// TWICE: error: not proven: parameter 'w' has two placements, but a rank holds one block of it

// A collective that only some ranks issue; nothing uses what it gives.
// RUN: sed -e 's/%2 = nn.sub/%offset = tp.shard_offset of 2 over @mesh {tp} : tensor<i64>\n%rank = tensor.extract %offset[] : tensor<i64>\n%when = arith.trunci %rank : i64 to i1\n%unused = scf.if %when -> (tensor<2x4xf32>) {\n%moved = tp.all_reduce sum %arg0 over @mesh {tp} : tensor<2x4xf32>\nscf.yield %moved : tensor<2x4xf32>\n} else {\nscf.yield %arg0 : tensor<2x4xf32>\n}\n%2 = nn.sub/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=BRANCH
// BRANCH: error: not proven: besides computing its results it has effects, such as collectives, that the reference doesn't have
// BRANCH-NEXT: scf.if

// An op of whole values.
// RUN: sed -e 's/%2 = nn.sub %arg0,/%moved = tp.redistribute %arg0 to <@mesh, [{}, {tp}]> : tensor<2x4xf32>\n%2 = nn.sub %moved,/' %t.mlir > %t.bad.mlir
// RUN: %{verify} --check-prefix=WHOLE
// WHOLE: error: not proven: no op of the reference computes this on each rank's blocks
// WHOLE: note: nor can the programs be tested: it places a whole value, but a rank's program has only blocks

tp.mesh @mesh(tp = 2)

func.func @main(%x: tensor<4x4xf32> {tp.name = "x", tp.symbolic_shape = ["s0", "4"], tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>},
                %y: tensor<4x4xf32> {tp.name = "y", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<4x4xf32> {tp.name = "a", tp.symbolic_shape = ["s0", "n"]}, tensor<4x4xf32> {tp.name = "b"}) {
  %w = nn.parameter "w" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<4x4xf32>
  %m = nn.parameter "m" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>} : tensor<4x4xf32>
  %0 = nn.sub %x, %y : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = nn.mul %0, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = nn.add %m, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  nn.assign "m", %2 init 0.0 : tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

func.func @uneven(%x: tensor<5x5xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<5x5xf32> {tp.name = "r", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>}) {
  %0 = nn.relu %x : tensor<5x5xf32>
  return %0 : tensor<5x5xf32>
}
