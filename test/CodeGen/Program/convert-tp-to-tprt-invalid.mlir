// RUN: tp-opt %s --convert-tp-to-tprt --split-input-file --verify-diagnostics

tp.mesh @mesh(tp = 2)
func.func @a(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) attributes {tp.ranks = array<i64: 0>} {
  // expected-note @+1 {{the other one is here}}
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<2xf32>
  return
}
func.func @b(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) attributes {tp.ranks = array<i64: 1>} {
  // expected-error @+1 {{collective 0 of '@b' is 'tp.all_gather', that of '@a' is 'tp.all_reduce': the ranks would wait for each other forever}}
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<4xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @a(%rank: index {tprt.role = "rank"}, %x: tensor<2x2xf32>) attributes {tp.ranks = array<i64: 0>} {
  %0 = tp.all_reduce sum %x over @mesh {tp} {fqn = "a"} : tensor<2x2xf32>
  // expected-note @+1 {{the other one is here}}
  %1 = tp.all_gather %0 dim 0 over @mesh {tp} : tensor<2x2xf32> -> tensor<4x2xf32>
  return
}
func.func @b(%rank: index {tprt.role = "rank"}, %x: tensor<2x2xf32>) attributes {tp.ranks = array<i64: 1>} {
  // The origin may differ.
  %0 = tp.all_reduce sum %x over @mesh {tp} {fqn = "b"} : tensor<2x2xf32>
  // expected-error @+1 {{collective 1, 'tp.all_gather', has dim 1 : i64 in '@b' and 0 : i64 in '@a': the ranks would wait}}
  %1 = tp.all_gather %0 dim 1 over @mesh {tp} : tensor<2x2xf32> -> tensor<2x4xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @a(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) attributes {tp.ranks = array<i64: 0>} {
  // expected-note @+1 {{the first that only one of them has}}
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<2xf32>
  return
}
// expected-error @+1 {{'@b' has 0 collectives, '@a' has 1: the ranks would wait}}
func.func @b(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) attributes {tp.ranks = array<i64: 1>} {
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @a(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) attributes {tp.ranks = array<i64: 0>} {
  // expected-error @+1 {{'tp.all_gather' has a result of shape [4] on rank 0, expected [3] among ranks [0, 1]}}
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<2xf32> -> tensor<4xf32>
  return
}
func.func @b(%rank: index {tprt.role = "rank"}, %x: tensor<1xf32>) attributes {tp.ranks = array<i64: 1>} {
  %0 = tp.all_gather %x dim 0 over @mesh {tp} : tensor<1xf32> -> tensor<2xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @a(%rank: index {tprt.role = "rank"}, %x: tensor<3xf32>) attributes {tp.ranks = array<i64: 0>} {
  // expected-error @+1 {{'tp.reduce_scatter' cuts 3 indices of dimension 0 into blocks of 4 in all, among ranks [0, 1]}}
  %0 = tp.reduce_scatter sum %x dim 0 over @mesh {tp} : tensor<3xf32> -> tensor<2xf32>
  return
}
func.func @b(%rank: index {tprt.role = "rank"}, %x: tensor<3xf32>) attributes {tp.ranks = array<i64: 1>} {
  %0 = tp.reduce_scatter sum %x dim 0 over @mesh {tp} : tensor<3xf32> -> tensor<2xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @a(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) attributes {tp.ranks = array<i64: 0>} {
  %0 = tp.permute %x from [1, 0] over @mesh {tp} : tensor<2xf32> -> tensor<2xf32>
  return
}
func.func @b(%rank: index {tprt.role = "rank"}, %x: tensor<1xf32>) attributes {tp.ranks = array<i64: 1>} {
  // expected-error @-4 {{'tp.permute' has a result of shape [2] on rank 0, expected [1] among ranks [0, 1]}}
  %0 = tp.permute %x from [1, 0] over @mesh {tp} : tensor<1xf32> -> tensor<1xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
func.func @a(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) attributes {tp.ranks = array<i64: 0>} {
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<2xf32>
  return
}
// expected-error @+1 {{'@b' has 2 collectives, '@a' has 1: the ranks would wait}}
func.func @b(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) attributes {tp.ranks = array<i64: 1>} {
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<2xf32>
  // expected-note @+1 {{the first that only one of them has}}
  %1 = tp.all_reduce sum %x over @mesh {tp} : tensor<2xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
// expected-error @+1 {{'@a' runs on rank -1, but the mesh has 2 ranks}}
func.func @a(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) attributes {tp.ranks = array<i64: -1>} {
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<2xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
// expected-error @+1 {{rank 1 runs none of the programs: each rank needs one, and has it in 'tp.ranks'}}
func.func @a(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) attributes {tp.ranks = array<i64: 0>} {
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<2xf32>
  return
}

// -----

tp.mesh @mesh(tp = 2)
// expected-error @+1 {{'tp.ranks' must be a list of ranks, found array<i64>}}
func.func @a(%rank: index {tprt.role = "rank"}, %x: tensor<2xf32>) attributes {tp.ranks = array<i64>} {
  %0 = tp.all_reduce sum %x over @mesh {tp} : tensor<2xf32>
  return
}
