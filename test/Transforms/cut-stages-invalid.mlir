// RUN: tp-opt %s --tp-cut-stages --split-input-file --verify-diagnostics

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @stage(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{belongs to stage 2, but the pipeline has 2 stages}}
  %0 = nn.exp %x {tp.stage = 2 : i64} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @pass(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{belongs to pass -1, and passes are numbered from 0 to 1048575}}
  %0 = nn.exp %x {tp.pass = -1 : i64} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @no_result(%x: tensor<4xf32>, %c: i1) {
  // expected-error@+1 {{'scf.if' has no results, so no stage of the pipeline needs it}}
  scf.if %c {
    %0 = nn.exp %x : tensor<4xf32>
  }
  return
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
// expected-error@+1 {{no rank that runs this program is at index 1 of 'pp'; a pipeline's mesh dimension can't split values}}
func.func @split(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>} {
  return
}
func.func @split_0(%x: tensor<3xf32>) attributes {tp.ranks = array<i64: 1>, tp.copy_of = @split} {
  return
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
// expected-error@+1 {{is the program of a stage already}}
func.func @twice(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 0>, tp.stage = 0 : i64} {
  return
}
func.func @twice_stage1(%x: tensor<4xf32>) attributes {tp.ranks = array<i64: 1>, tp.stage = 1 : i64, tp.stage_of = @twice} {
  return
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
// expected-error@+1 {{argument 0 is split over 'pp', but the ranks along it run the stages of the pipeline}}
func.func @argument(%x: tensor<4xf32> {tp.global_type = tensor<8xf32>, tp.sharding = #tp.sharding<@mesh, [{pp}]>}) {
  return
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "1F1B" microbatches 1
func.func @slice(%x: tensor<4xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{'tp.local_slice' is over 'pp', but the ranks along it run the stages of the pipeline}}
  %0 = tp.local_slice %x dim 0 over @mesh {pp} : tensor<4xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

tp.mesh @mesh(pp = 2)
tp.pipeline @mesh over "pp" schedule "Interleaved1F1B" microbatches 1 stages 2048
// expected-error@+1 {{has 8194 passes over 2048 stages; at most 8388608 passes of stages are supported}}
func.func @stages(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.exp %x {tp.pass = 8193 : i64} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
