// Faults that are planted in programs with context parallelism: none of them is proven. In a ring these are wrong
// neighbors and orders, keys and values that change places, wrong offsets of masks, and wrong steps of merging.
// RUN: split-file %s %t && cd %t
// RUN: tp-opt model.mlir --tp-parallelize=plan=ring.yaml -o ring.mlir
// RUN: %python %S/Inputs/mutants.py ring.mlir "reference=model.mlir" 'from \[3, 0, 1, 2\]' 'from [1, 2, 3, 0]' \
// RUN:   'from \[3, 0, 1, 2\]' 'from [0, 3, 1, 2]' '(nn.attention_block %\w+, )(%\w+), (%\w+)' '\1\3, \2' \
// RUN:   'dense<-?[0246]> : tensor<i64>' 'dense<1> : tensor<i64>' 'nn.compare lt' 'nn.compare ge' \
// RUN:   'nn.where (%\w+), (%\w+), (%\w+) : (\S+ (\S+), \5)' 'nn.where \1, \3, \2 : \4' \
// RUN:   'nn.add (%\w+), (%\w+)' 'nn.add \1, \1' 'nn.add (%\w+), (%\w+)' 'nn.add \2, \2' \
// RUN:   'nn.sub (%\w+), (%\w+)' 'nn.sub \2, \1' 'nn.mul (%\w+), (%\w+)' 'nn.div \1, \2' \
// RUN:   'shard_offset of 8' 'shard_offset of 16' | FileCheck %s --check-prefix=RING
// RING: 64 mutants aren't proven
// RUN: tp-opt model.mlir --tp-parallelize=plan=gather.yaml -o gather.mlir
// RUN: %python %S/Inputs/mutants.py gather.mlir "reference=model.mlir" '(nn.attention_block %\w+, )(%\w+), (%\w+)' '\1\3, \2' \
// RUN:   'shard_offset of 8' 'shard_offset of 16' 'scale 5.0' 'scale 6.0' | FileCheck %s --check-prefix=GATHER
// GATHER: 3 mutants aren't proven
// RUN: tp-opt model.mlir --tp-parallelize=plan=heads.yaml -o heads.mlir
// RUN: %python %S/Inputs/mutants.py heads.mlir "reference=model.mlir" 'nn.attention causal' 'nn.attention' \
// RUN:   '(nn.attention causal) (%\w+), (%\w+), (%\w+)' '\1 \3, \2, \4' \
// RUN:   '(nn.attention causal) (%\w+), (%\w+), (%\w+)' '\1 \2, \4, \3' 'scale 5.0' 'scale 6.0' | FileCheck %s --check-prefix=HEADS
// HEADS: 4 mutants aren't proven

//--- ring.yaml
mesh: {cp: 4}
context_parallel: {cp: ring}

//--- gather.yaml
mesh: {cp: 4}
context_parallel: {cp: all_gather}

//--- heads.yaml
mesh: {cp: 2}
context_parallel: {cp: all_to_all}

//--- model.mlir
func.func @main(%x: tensor<2x8x8xf32> {tp.name = "x"}) -> tensor<2x8x8xf32> {
  %wq = nn.parameter "wq" : tensor<8x8xf32>
  %wk = nn.parameter "wk" : tensor<8x8xf32>
  %wv = nn.parameter "wv" : tensor<8x8xf32>
  %q = nn.linear %x, %wq : (tensor<2x8x8xf32>, tensor<8x8xf32>) -> tensor<2x8x8xf32>
  %k = nn.linear %x, %wk : (tensor<2x8x8xf32>, tensor<8x8xf32>) -> tensor<2x8x8xf32>
  %v = nn.linear %x, %wv : (tensor<2x8x8xf32>, tensor<8x8xf32>) -> tensor<2x8x8xf32>
  %qh = nn.reshape %q : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
  %kh = nn.reshape %k : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
  %vh = nn.reshape %v : tensor<2x8x8xf32> -> tensor<2x8x2x4xf32>
  %qt = nn.transpose %qh [0, 2, 1, 3] : tensor<2x8x2x4xf32> -> tensor<2x2x8x4xf32>
  %kt = nn.transpose %kh [0, 2, 1, 3] : tensor<2x8x2x4xf32> -> tensor<2x2x8x4xf32>
  %vt = nn.transpose %vh [0, 2, 1, 3] : tensor<2x8x2x4xf32> -> tensor<2x2x8x4xf32>
  %a = nn.attention causal %qt, %kt, %vt scale 0.5 : (tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>) -> tensor<2x2x8x4xf32>
  %at = nn.transpose %a [0, 2, 1, 3] : tensor<2x2x8x4xf32> -> tensor<2x8x2x4xf32>
  %o = nn.reshape %at : tensor<2x8x2x4xf32> -> tensor<2x8x8xf32>
  return %o : tensor<2x8x8xf32>
}
