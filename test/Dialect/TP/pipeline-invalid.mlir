// RUN: tp-opt %s --split-input-file --verify-diagnostics

tp.mesh @mesh(pp = 2)
// expected-error@+1 {{has no schedule '1f1b'; there are GPipe, 1F1B, Interleaved1F1B, InterleavedZeroBubble}}
tp.pipeline @mesh over "pp" schedule "1f1b" microbatches 4

// -----

tp.mesh @mesh(pp = 2)
// expected-error@+1 {{needs 1 to 1024 microbatches, found 0}}
tp.pipeline @mesh over "pp" schedule "GPipe" microbatches 0

// -----

tp.mesh @mesh(pp = 2)
// expected-error@+1 {{needs 1 to 1024 microbatches, found 1025}}
tp.pipeline @mesh over "pp" schedule "GPipe" microbatches 1025

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "InterleavedZeroBubble" microbatches 2 stages 2048

// -----

tp.mesh @mesh(pp = 2)
// expected-error@+1 {{has 4194304 stages on 2 ranks, more than 1024 per rank}}
tp.pipeline @mesh over "pp" schedule "InterleavedZeroBubble" microbatches 2 stages 4194304

// -----

tp.mesh @mesh(pp = 2)
// expected-error@+1 {{the mesh has no dimension 'tp'}}
tp.pipeline @mesh over "tp" schedule "GPipe" microbatches 1

// -----

// expected-error@+1 {{there is no mesh @mesh}}
tp.pipeline @mesh over "pp" schedule "GPipe" microbatches 1

// -----

tp.mesh @mesh(pp = 2, tp = 2)
func.func @axes(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0, 1>} {
  // expected-error@+1 {{is over one mesh dimension, the pipeline's}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp, tp} : tensor<4xf32> -> tensor<0xf32>
  return
}

// -----

tp.mesh @mesh(pp = 2)
func.func @scalar(%x: tensor<f32>) attributes {tp.ranks = array<i64: 0>} {
  // expected-error@+1 {{passes a block on as it is: operand and result have the same element type and number of dimensions, at least one, found 'tensor<f32>' and 'tensor<f32>'}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<f32> -> tensor<f32>
  return
}

// -----

tp.mesh @mesh(pp = 2)
func.func @both(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>} {
  // expected-error@+1 {{sends or receives: operand or result must be empty}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

tp.mesh @mesh(pp = 2)
func.func @same(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>} {
  // expected-error@+1 {{needs two different indices below 2, the size of 'pp', found 0 and 2}}
  %0 = tp.transfer %x from 0 to 2 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}

// -----

tp.mesh @mesh(pp = 2)
func.func @all(%x: tensor<4xf32>) {
  // expected-error@+1 {{belongs in the program of a stage, with 'tp.ranks'}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}

// -----

tp.mesh @mesh(pp = 3)
func.func @other(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 2>} {
  // expected-error@+1 {{is run by rank 2, at index 2 of 'pp', but is between indices 0 and 1}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}

// -----

tp.mesh @mesh(pp = 2)
func.func @receiver(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 1>} {
  // expected-error@+1 {{receives a value, so its operand must be empty on rank 1}}
  %0 = tp.transfer %x from 0 to 1 over @mesh {pp} : tensor<4xf32> -> tensor<0xf32>
  return
}

// -----

// expected-error@+1 {{attribute 'tp.stage': the number of a stage, an i64 of at least 0, is expected, found -1 : i64}}
func.func @stage() attributes {tp.stage = -1 : i64} {
  return
}

// -----

// expected-error@+1 {{attribute 'tp.stage_of': the symbol of a function, on a function with 'tp.ranks', is expected}}
func.func @stage_of() attributes {tp.stage_of = @other} {
  return
}

// -----

tp.mesh @mesh(pp = 2)
// expected-note@+1 {{the first is here}}
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 4
// expected-error@+1 {{a program has one pipeline, this is the second}}
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 4

// -----

tp.mesh @mesh(pp = 2)
// expected-error@+1 {{has 3 stages, which aren't a multiple of the 2 ranks along 'pp'}}
tp.pipeline @mesh over "pp" schedule "Interleaved1F1B" microbatches 4 stages 3

// -----

tp.mesh @mesh(pp = 2)
// expected-error@+1 {{has 4 stages on 2 ranks, but schedule '1F1B' needs one stage per rank}}
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 4 stages 4

// -----

tp.mesh @mesh(pp = 2)
// expected-error@+1 {{has 2 stages on 2 ranks, but schedule 'Interleaved1F1B' needs several stages per rank}}
tp.pipeline @mesh over "pp" schedule "Interleaved1F1B" microbatches 4

// -----

tp.mesh @mesh(pp = 4)
// expected-error@+1 {{has 9 microbatches, which can't run in 2 rounds of equal size on 4 ranks; use a multiple of 4}}
tp.pipeline @mesh over "pp" schedule "Interleaved1F1B" microbatches 9 stages 8
