// Ranks get whole blocks of other ranks, of another size than their own. Blocks are followed as blocks, in another shape, and by execution;
// in none of these ways is a permute with another source accepted.
//
// RUN: tp-opt %s --tp-parallelize -o %t.blocks.mlir
// RUN: FileCheck %s --check-prefix=RANKS --input-file=%t.blocks.mlir
// RANKS: tp.permute {{.*}} from [0, 2, 1, 3] {{.*}} : tensor<2x2xf32> -> tensor<2x2xf32>
// RANKS: tp.permute {{.*}} from [0, 2, 1, 3] {{.*}} : tensor<2x2xf32> -> tensor<1x2xf32>
// RANKS: tp.permute {{.*}} from [0, 2, 1, 3] {{.*}} : tensor<1x2xf32> -> tensor<2x2xf32>
// RANKS: tp.permute {{.*}} from [0, 2, 1, 3] {{.*}} : tensor<1x2xf32> -> tensor<1x2xf32>

// DEFINE: %{form} = blocks
// DEFINE: %{sources} =
// DEFINE: %{file} = %t.%{form}.mlir
// DEFINE: %{verify} = tp-opt %{file} --tp-verify-spmd="reference=%s accept-tested" -o /dev/null 2>&1 | FileCheck %s
// DEFINE: %{refuse} = sed 's/from \[0, 2, 1, 3\]/from [%{sources}]/' %t.%{form}.mlir > %t.wrong.mlir && not %{verify} --check-prefix=WRONG
// WRONG: error: not proven

// RUN: %{verify} --check-prefix=BLOCKS
// BLOCKS: remark: 'main' is proven for 4 ranks: 1 ops by rule (0 more as parts of them), 1 movements by block algebra

// RUN: sed -e 's/%1 = tp.permute %0 \(.*\) : tensor<\(.\)x2xf32> -> tensor<\(.\)x2xf32>/%before = nn.transpose %0 [1, 0] : tensor<\2x2xf32> -> tensor<2x\2xf32>\n%moved = tp.permute %before \1 : tensor<2x\2xf32> -> tensor<2x\3xf32>\n%1 = nn.transpose %moved [1, 0] : tensor<2x\3xf32> -> tensor<\3x2xf32>/' %t.blocks.mlir > %t.views.mlir
// REDEFINE: %{form} = views
// RUN: %{verify} --check-prefix=VIEWS
// VIEWS: remark: 'main' is proven for 4 ranks

// RUN: sed -e 's/%0 = nn.relu %arg0 : \(.*\)/%again = nn.relu %arg0 : \1\n%0 = nn.relu %again : \1/' %t.blocks.mlir > %t.executed.mlir
// REDEFINE: %{form} = executed
// RUN: %{verify} --check-prefix=EXECUTED
// EXECUTED: 'main' gives what the reference gives

// REDEFINE: %{file} = %t.wrong.mlir
// Rank 0 gets a block of the right shape, ...
// REDEFINE: %{sources} = 1, 2, 1, 3
// REDEFINE: %{form} = blocks
// RUN: %{refuse}
// REDEFINE: %{form} = views
// RUN: %{refuse}
// REDEFINE: %{form} = executed
// RUN: %{refuse}
// ... or rank 1 does, ...
// REDEFINE: %{sources} = 0, 3, 1, 3
// REDEFINE: %{form} = blocks
// RUN: %{refuse}
// REDEFINE: %{form} = views
// RUN: %{refuse}
// REDEFINE: %{form} = executed
// RUN: %{refuse}
// ... or rank 0 gets one of another shape.
// REDEFINE: %{sources} = 3, 2, 1, 3
// REDEFINE: %{form} = blocks
// RUN: %{refuse}
// REDEFINE: %{form} = views
// RUN: %{refuse}
// REDEFINE: %{form} = executed
// RUN: %{refuse}

// Ranks 1 and 2 run each other's program.
// RUN: sed -e 's/array<i64: 1>/array<i64: 9>/; s/array<i64: 2>/array<i64: 1>/; s/array<i64: 9>/array<i64: 2>/' %t.blocks.mlir > %t.wrong.mlir
// RUN: not %{verify} --check-prefix=WRONG

// One program has another source than the others.
// RUN: sed -e '/func.func @main_2/,$ s/from \[0, 2, 1, 3\]/from [0, 2, 1, 2]/' %t.blocks.mlir > %t.wrong.mlir
// RUN: not %{verify} --check-prefix=WRONG

tp.mesh @mesh(x = 2, y = 2)
func.func @main(%x: tensor<3x4xf32> {tp.sharding = #tp.sharding<@mesh, [{x}, {y}]>})
    -> (tensor<3x4xf32> {tp.sharding = #tp.sharding<@mesh, [{y}, {x}]>}) {
  %0 = nn.relu %x : tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
