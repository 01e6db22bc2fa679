// A column-parallel and a row-parallel layer with four hidden features on three ranks:
// two, two and none. Five output features are scattered in chunks of two, two and one,
// gathered, and exchanged for a split of the eight rows. The ranks run two programs, the
// artifact holds both, and every rank's own block is what NumPy cuts.

// REQUIRES: tp-compile, tp-run
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %python %S/Inputs/programs.py make
// RUN: tp-compile %s -o mlp.tpx
// RUN: tp-run mlp.tpx --weights w.safetensors --input x=x.npy --expect y=y.npy --expect gathered=y.npy \
// RUN:     --expect rows=y.npy --rtol 1e-5 --atol 1e-6 --blocks blocks --json run.json
// RUN: %python %S/Inputs/programs.py check
// RUN: tp-compile %s --emit=manifest -o - | FileCheck %s
// RUN: tp-run mlp.tpx --describe | FileCheck %s --check-prefix=DESCRIBE

// CHECK: "bytes_by_rank":[128,128,64],{{.*}}"kind":"reduce_scatter"
// CHECK-SAME: "bytes_by_rank":[96,96,128],{{.*}}"kind":"all_gather"
// CHECK-SAME: "bytes_by_rank":[216,216,208],{{.*}}"kind":"all_reduce"
// CHECK-SAME: "bytes_by_rank":[36,36,32],{{.*}}"kind":"exchange"
// CHECK-SAME: "bytes_by_rank":[40,40,24],{{.*}}"kind":"all_to_all"

// DESCRIBE: 0  reduce_scatter  8x5xf32 -> 8x2xf32 | 8x1xf32  64 to 128 bytes per rank
// DESCRIBE: 3  exchange  8x2xf32 | 8x1xf32 -> 3x5xf32 | 2x5xf32  32 to 36 bytes per rank
tp.mesh @mesh(tp = 3)
func.func @long(%x: tensor<8x3xf32> {tp.name = "x"})
    -> (tensor<8x2xf32> {tp.name = "y", tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<8x5xf32>},
        tensor<8x5xf32> {tp.name = "gathered"},
        tensor<3x5xf32> {tp.name = "rows", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<8x5xf32>},
        tensor<1xi64> {tp.name = "offset", tp.sharding = #tp.sharding<@mesh, [{tp}]>, tp.global_type = tensor<3xi64>})
    attributes {tp.ranks = array<i64: 0, 1>} {
  %w1 = nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<4x3xf32>} : tensor<2x3xf32>
  %w2 = nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<5x4xf32>} : tensor<5x2xf32>
  %0 = nn.linear %x, %w1 : (tensor<8x3xf32>, tensor<2x3xf32>) -> tensor<8x2xf32>
  %1 = nn.relu %0 : tensor<8x2xf32>
  %2 = nn.linear %1, %w2 : (tensor<8x2xf32>, tensor<5x2xf32>) -> tensor<8x5xf32>
  %3 = tp.reduce_scatter sum %2 dim 1 over @mesh {tp} : tensor<8x5xf32> -> tensor<8x2xf32>
  %4 = tp.all_gather %3 dim 1 over @mesh {tp} : tensor<8x2xf32> -> tensor<8x5xf32>
  %5 = tp.all_reduce sum %2 over @mesh {tp} : tensor<8x5xf32>
  %6 = tp.local_slice %5 dim 1 over @mesh {tp} : tensor<8x5xf32> -> tensor<8x2xf32>
  %7 = tp.exchange %6 of [8, 5] from <@mesh, [{}, {tp}]> to <@mesh, [{tp}, {}]> over @mesh {tp} : tensor<8x2xf32> -> tensor<3x5xf32>
  %8 = tp.all_to_all %7 split 1 concat 0 over @mesh {tp} : tensor<3x5xf32> -> tensor<8x2xf32>
  %9 = tp.shard_offset of 8 over @mesh {tp} : tensor<i64>
  %10 = nn.reshape %9 : tensor<i64> -> tensor<1xi64>
  return %8, %4, %7, %10 : tensor<8x2xf32>, tensor<8x5xf32>, tensor<3x5xf32>, tensor<1xi64>
}
func.func @short(%x: tensor<8x3xf32> {tp.name = "x"})
    -> (tensor<8x1xf32> {tp.name = "y", tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<8x5xf32>},
        tensor<8x5xf32> {tp.name = "gathered"},
        tensor<2x5xf32> {tp.name = "rows", tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<8x5xf32>},
        tensor<1xi64> {tp.name = "offset", tp.sharding = #tp.sharding<@mesh, [{tp}]>, tp.global_type = tensor<3xi64>})
    attributes {tp.ranks = array<i64: 2>} {
  %w1 = nn.parameter "net1.weight" {tp.sharding = #tp.sharding<@mesh, [{tp}, {}]>, tp.global_type = tensor<4x3xf32>} : tensor<0x3xf32>
  %w2 = nn.parameter "net2.weight" {tp.sharding = #tp.sharding<@mesh, [{}, {tp}]>, tp.global_type = tensor<5x4xf32>} : tensor<5x0xf32>
  %0 = nn.linear %x, %w1 : (tensor<8x3xf32>, tensor<0x3xf32>) -> tensor<8x0xf32>
  %1 = nn.relu %0 : tensor<8x0xf32>
  %2 = nn.linear %1, %w2 : (tensor<8x0xf32>, tensor<5x0xf32>) -> tensor<8x5xf32>
  %3 = tp.reduce_scatter sum %2 dim 1 over @mesh {tp} : tensor<8x5xf32> -> tensor<8x1xf32>
  %4 = tp.all_gather %3 dim 1 over @mesh {tp} : tensor<8x1xf32> -> tensor<8x5xf32>
  %5 = tp.all_reduce sum %2 over @mesh {tp} : tensor<8x5xf32>
  %6 = tp.local_slice %5 dim 1 over @mesh {tp} : tensor<8x5xf32> -> tensor<8x1xf32>
  %7 = tp.exchange %6 of [8, 5] from <@mesh, [{}, {tp}]> to <@mesh, [{tp}, {}]> over @mesh {tp} : tensor<8x1xf32> -> tensor<2x5xf32>
  %8 = tp.all_to_all %7 split 1 concat 0 over @mesh {tp} : tensor<2x5xf32> -> tensor<8x1xf32>
  %9 = tp.shard_offset of 8 over @mesh {tp} : tensor<i64>
  %10 = nn.reshape %9 : tensor<i64> -> tensor<1xi64>
  return %8, %4, %7, %10 : tensor<8x1xf32>, tensor<8x5xf32>, tensor<2x5xf32>, tensor<1xi64>
}
