//===- Models.h - Placed models to parallelize ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_UNITTESTS_PROOF_MODELS_H
#define TP_UNITTESTS_PROOF_MODELS_H

namespace mlir::tp::test {

struct Model {
  const char *name;
  const char *text;
};

/// Models with placements, over one and two mesh dimensions, even and uneven.
inline constexpr Model kModels[] = {
    {"column_row", R"(
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %w1 = nn.parameter "w1" {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>} : tensor<8x6xf32>
  %b1 = nn.parameter "b1" {tp.sharding = #tp.sharding<@mesh, [{tp} ]>} : tensor<8xf32>
  %w2 = nn.parameter "w2" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<6x8xf32>
  %b2 = nn.parameter "b2" : tensor<6xf32>
  %0 = nn.linear %x, %w1 : (tensor<4x6xf32>, tensor<8x6xf32>) -> tensor<4x8xf32>
  %1 = nn.add %0, %b1 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = nn.silu %1 : tensor<4x8xf32>
  %3 = nn.linear %2, %w2 : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %4 = nn.add %3, %b2 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %5 = nn.add %4, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %5 : tensor<4x6xf32>
})"},
    {"sequence_parallel", R"(
tp.mesh @mesh(tp = 4)
func.func @main(%x: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>})
    -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>}) {
  %n = nn.parameter "norm" : tensor<8xf32>
  %w1 = nn.parameter "w1" {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>} : tensor<16x8xf32>
  %w2 = nn.parameter "w2" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<8x16xf32>
  %0 = nn.rms_norm %x weight %n over 1 eps 1.0e-5 : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %1 = tp.redistribute %0 to <@mesh, [{}, {} ]> : tensor<8x8xf32>
  %2 = nn.linear %1, %w1 : (tensor<8x8xf32>, tensor<16x8xf32>) -> tensor<8x16xf32>
  %3 = nn.silu %2 : tensor<8x16xf32>
  %4 = nn.linear %3, %w2 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
  %5 = tp.redistribute %4 to <@mesh, [{tp}, {} ]> : tensor<8x8xf32>
  %6 = nn.add %5, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %6 : tensor<8x8xf32>
})"},
    {"exchanged", R"(
tp.mesh @mesh(x = 2, y = 2)
func.func @main(%a: tensor<6x5xf32> {tp.sharding = #tp.sharding<@mesh, [{x}, {y} ]>},
                %b: tensor<7x3xf32> {tp.sharding = #tp.sharding<@mesh, [{x, y}, {} ]>})
    -> (tensor<6x5xf32> {tp.sharding = #tp.sharding<@mesh, [{y}, {x} ]>}, tensor<7x3xf32> {tp.sharding = #tp.sharding<@mesh, [{y, x}, {} ]>}) {
  %0 = nn.relu %a : tensor<6x5xf32>
  %1 = tp.redistribute %0 to <@mesh, [{y}, {x} ]> : tensor<6x5xf32>
  %2 = nn.relu %b : tensor<7x3xf32>
  %3 = tp.redistribute %2 to <@mesh, [{y, x}, {} ]> : tensor<7x3xf32>
  return %1, %3 : tensor<6x5xf32>, tensor<7x3xf32>
})"},
    {"windows", R"(
tp.mesh @mesh(x = 2, y = 2)
func.func @main(%a: tensor<1x2x7x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {x}, {y} ]>},
                %b: tensor<1x9xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {x, y} ]>})
    -> (tensor<1x2x4x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {x}, {y} ]>}, tensor<1x9xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {x, y} ]>}) {
  %w = nn.parameter "w" : tensor<2x2x3x3xf32>
  %0 = nn.convolution %a, %w stride [2, 1] padding [1, 1] dilation [1, 1] : (tensor<1x2x7x4xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x4x4xf32>
  %1 = nn.pool max %b size [4] stride [1] padding [3] dilation [1] : tensor<1x9xf32> -> tensor<1x9xf32>
  return %0, %1 : tensor<1x2x4x4xf32>, tensor<1x9xf32>
})"},
    {"folded", R"(
tp.mesh @mesh(x = 3)
func.func @main(%a: tensor<1x3x4xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {}, {x} ]>})
    -> (tensor<1x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {x} ]>}) {
  %0 = nn.fold %a stride [2] padding [1] dilation [1] : tensor<1x3x4xf32> -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
})"},
    {"attention", R"(
tp.mesh @mesh(dp = 2, tp = 2)
func.func @main(%x: tensor<4x3x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}, {} ]>})
    -> (tensor<4x3x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {}, {} ]>}) {
  %wq = nn.parameter "wq" {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>} : tensor<8x8xf32>
  %wk = nn.parameter "wk" {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>} : tensor<8x8xf32>
  %wv = nn.parameter "wv" {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>} : tensor<8x8xf32>
  %wo = nn.parameter "wo" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<8x8xf32>
  %q = nn.linear %x, %wq : (tensor<4x3x8xf32>, tensor<8x8xf32>) -> tensor<4x3x8xf32>
  %k = nn.linear %x, %wk : (tensor<4x3x8xf32>, tensor<8x8xf32>) -> tensor<4x3x8xf32>
  %v = nn.linear %x, %wv : (tensor<4x3x8xf32>, tensor<8x8xf32>) -> tensor<4x3x8xf32>
  %qr = nn.reshape %q : tensor<4x3x8xf32> -> tensor<4x3x4x2xf32>
  %kr = nn.reshape %k : tensor<4x3x8xf32> -> tensor<4x3x4x2xf32>
  %vr = nn.reshape %v : tensor<4x3x8xf32> -> tensor<4x3x4x2xf32>
  %qt = nn.transpose %qr [0, 2, 1, 3] : tensor<4x3x4x2xf32> -> tensor<4x4x3x2xf32>
  %kt = nn.transpose %kr [0, 2, 1, 3] : tensor<4x3x4x2xf32> -> tensor<4x4x3x2xf32>
  %vt = nn.transpose %vr [0, 2, 1, 3] : tensor<4x3x4x2xf32> -> tensor<4x4x3x2xf32>
  %kk = nn.transpose %kt [0, 1, 3, 2] : tensor<4x4x3x2xf32> -> tensor<4x4x2x3xf32>
  %s = nn.matmul %qt, %kk : (tensor<4x4x3x2xf32>, tensor<4x4x2x3xf32>) -> tensor<4x4x3x3xf32>
  %p = nn.softmax %s dim 3 : tensor<4x4x3x3xf32>
  %o = nn.matmul %p, %vt : (tensor<4x4x3x3xf32>, tensor<4x4x3x2xf32>) -> tensor<4x4x3x2xf32>
  %ot = nn.transpose %o [0, 2, 1, 3] : tensor<4x4x3x2xf32> -> tensor<4x3x4x2xf32>
  %or = nn.reshape %ot : tensor<4x3x4x2xf32> -> tensor<4x3x8xf32>
  %y = nn.linear %or, %wo : (tensor<4x3x8xf32>, tensor<8x8xf32>) -> tensor<4x3x8xf32>
  return %y : tensor<4x3x8xf32>
})"},
    {"vocabulary", R"(
tp.mesh @mesh(tp = 3)
func.func @main(%ids: tensor<5xi64>, %target: tensor<5xi64>) -> tensor<f32> {
  %e = nn.parameter "embedding" {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>} : tensor<12x4xf32>
  %h = nn.parameter "head" {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>} : tensor<12x4xf32>
  %0 = nn.embedding %ids, %e : (tensor<5xi64>, tensor<12x4xf32>) -> tensor<5x4xf32>
  %1 = nn.linear %0, %h : (tensor<5x4xf32>, tensor<12x4xf32>) -> tensor<5x12xf32>
  %2 = nn.cross_entropy mean %1, %target ignore -100 smoothing 0.0 loss_parallel : (tensor<5x12xf32>, tensor<5xi64>) -> tensor<f32>
  return %2 : tensor<f32>
})"},
    {"uneven", R"(
tp.mesh @mesh(tp = 4)
func.func @main(%x: tensor<3x7xf32>, %ids: tensor<6xi64>) -> (tensor<3x7xf32>, tensor<6x2xf32>) {
  %w1 = nn.parameter "w1" {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>} : tensor<10x7xf32>
  %w2 = nn.parameter "w2" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<7x10xf32>
  %b2 = nn.parameter "b2" : tensor<7xf32>
  %t = nn.parameter "table" {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>} : tensor<5x2xf32>
  %0 = nn.linear %x, %w1 : (tensor<3x7xf32>, tensor<10x7xf32>) -> tensor<3x10xf32>
  %1 = nn.relu %0 : tensor<3x10xf32>
  %2 = nn.linear %1, %w2 : (tensor<3x10xf32>, tensor<7x10xf32>) -> tensor<3x7xf32>
  %3 = nn.add %2, %b2 : (tensor<3x7xf32>, tensor<7xf32>) -> tensor<3x7xf32>
  %4 = nn.embedding %ids, %t : (tensor<6xi64>, tensor<5x2xf32>) -> tensor<6x2xf32>
  return %3, %4 : tensor<3x7xf32>, tensor<6x2xf32>
})"},
    {"movements", R"(
tp.mesh @mesh(x = 2, y = 2)
func.func @main(%a: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{x}, {y} ]>},
                %b: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{x, y}, {} ]>})
    -> (tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {x} ]>}, tensor<8x8xf32>,
        tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{y, x}, {} ]>}, tensor<8xf32>) {
  %0 = tp.redistribute %a to <@mesh, [{y}, {x} ]> : tensor<8x8xf32>
  %1 = nn.exp %0 : tensor<8x8xf32>
  %2 = tp.redistribute %1 to <@mesh, [{}, {x} ]> : tensor<8x8xf32>
  %3 = tp.redistribute %b to <@mesh, [{}, {} ]> : tensor<8x8xf32>
  %4 = nn.add %3, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = tp.redistribute %b to <@mesh, [{y, x}, {} ]> : tensor<8x8xf32>
  %6 = nn.sin %5 : tensor<8x8xf32>
  %7 = nn.reduce mean %a dims [1] : tensor<8x8xf32> -> tensor<8xf32>
  %8 = nn.reduce max %a dims [0] : tensor<8x8xf32> -> tensor<8xf32>
  %9 = nn.sub %7, %8 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2, %4, %6, %9 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xf32>
})"},
    {"fused", R"(
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = nn.parameter "qkv" {tp.sharding = #tp.sharding<@mesh, [{tp | 4, 4}, {} ]>} : tensor<8x4xf32>
  %o = nn.parameter "out" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<4x4xf32>
  %0 = nn.linear %x, %w : (tensor<3x4xf32>, tensor<8x4xf32>) -> tensor<3x8xf32>
  %1 = nn.slice %0 dim 1 start 0 step 1 : tensor<3x8xf32> -> tensor<3x4xf32>
  %2 = nn.slice %0 dim 1 start 4 step 1 : tensor<3x8xf32> -> tensor<3x4xf32>
  %3 = nn.silu %1 : tensor<3x4xf32>
  %4 = nn.mul %3, %2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %5 = nn.linear %4, %o : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  return %5 : tensor<3x4xf32>
})"},
    {"small", R"(
tp.mesh @mesh(tp = 2)
func.func @main(%a: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>},
                %b: tensor<4x3xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>},
                %c: tensor<5x64xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>},
                %d: tensor<64x2xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>})
    -> (tensor<4x6xf32>, tensor<4x3xf32>, tensor<5x2xf32>, tensor<5xf32>) {
  %0 = tp.redistribute %a to <@mesh, [{}, {} ]> : tensor<4x6xf32>
  %1 = tp.redistribute %b to <@mesh, [{}, {} ]> : tensor<4x3xf32>
  %2 = nn.exp %0 : tensor<4x6xf32>
  %3 = nn.exp %1 : tensor<4x3xf32>
  %4 = nn.matmul %c, %d : (tensor<5x64xf32>, tensor<64x2xf32>) -> tensor<5x2xf32>
  %5 = nn.reduce sum %c dims [1] : tensor<5x64xf32> -> tensor<5xf32>
  return %2, %3, %4, %5 : tensor<4x6xf32>, tensor<4x3xf32>, tensor<5x2xf32>, tensor<5xf32>
})"},
    {"statistics", R"(
tp.mesh @mesh(dp = 2, tp = 2)
func.func @main(%x: tensor<4x3xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp, dp} ]>},
                %y: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>})
    -> (tensor<4x3xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp, dp} ]>},
        tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>},
        tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>}) {
  %w = nn.parameter "w1" {tp.sharding = #tp.sharding<@mesh, [{tp, dp} ]>} : tensor<3xf32>
  %0 = nn.rms_norm %x weight %w over 1 eps 0.1 : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %1 = nn.softmax %y dim 1 : tensor<4x6xf32>
  %b = nn.parameter "b1" {tp.sharding = #tp.sharding<@mesh, [{tp} ]>} : tensor<6xf32>
  %2 = nn.layer_norm %y weight %b bias %b over 1 eps 0.5 : (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %0, %1, %2 : tensor<4x3xf32>, tensor<4x6xf32>, tensor<4x6xf32>
})"},
    {"lookups", R"(
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>}, %i: tensor<4x1xi64>)
    -> (tensor<4x1xf32>, tensor<4xi64> {tp.sharding = #tp.sharding<@mesh, [{tp | 2, 2} ]>}) {
  %0 = nn.gather %x, %i dim 1 : (tensor<4x6xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  %1 = nn.iota dim 0 start 1.0 step 2.0 {tp.sharding = #tp.sharding<@mesh, [{tp | 2, 2} ]>} : tensor<4xi64>
  %2 = nn.exp %0 : tensor<4x1xf32>
  return %2, %1 : tensor<4x1xf32>, tensor<4xi64>
})"},
    {"branch", R"(
tp.mesh @mesh(tp = 2)
func.func @main(%p: tensor<1xi64>, %x: tensor<3x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>},
                %w: tensor<8x2xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>}) -> tensor<3x2xf32> {
  %zero = arith.constant 0 : index
  %bound = arith.constant 2 : i64
  %first = tensor.extract %p[%zero] : tensor<1xi64>
  %condition = arith.cmpi sgt, %first, %bound : i64
  %r = scf.if %condition -> (tensor<3x2xf32>) {
    %0 = nn.matmul %x, %w {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>} : (tensor<3x8xf32>, tensor<8x2xf32>) -> tensor<3x2xf32>
    %1 = nn.exp %0 : tensor<3x2xf32>
    scf.yield %1 : tensor<3x2xf32>
  } else {
    %0 = nn.exp %x : tensor<3x8xf32>
    %1 = nn.matmul %0, %w {tp.sharding = #tp.sharding<@mesh, [{}, {}], partial = {tp: sum}>} : (tensor<3x8xf32>, tensor<8x2xf32>) -> tensor<3x2xf32>
    scf.yield %1 : tensor<3x2xf32>
  }
  return %r : tensor<3x2xf32>
})"},
    {"loop", R"(
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w1 = nn.parameter "w1" {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>} : tensor<4x4xf32>
  %w2 = nn.parameter "w2" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<4x4xf32>
  %lower = arith.constant 0 : index
  %upper = arith.constant 3 : index
  %step = arith.constant 1 : index
  %r = scf.for %i = %lower to %upper step %step iter_args(%h = %x) -> (tensor<3x4xf32>) {
    %0 = nn.linear %h, %w1 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %1 = nn.silu %0 : tensor<3x4xf32>
    %2 = nn.linear %1, %w2 : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %3 = nn.add %2, %h : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    scf.yield %3 : tensor<3x4xf32>
  }
  return %r : tensor<3x4xf32>
})"},
    {"parallel_residual", R"(
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %w1 = nn.parameter "w1" {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>} : tensor<8x6xf32>
  %w2 = nn.parameter "w2" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<6x8xf32>
  %w3 = nn.parameter "w3" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<6x8xf32>
  %b2 = nn.parameter "b2" : tensor<6xf32>
  %b3 = nn.parameter "b3" : tensor<6xf32>
  %half = nn.constant dense<0.5> : tensor<f32>
  %0 = nn.linear %x, %w1 : (tensor<4x6xf32>, tensor<8x6xf32>) -> tensor<4x8xf32>
  %1 = nn.linear %0, %w2 : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %2 = nn.add %1, %b2 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %3 = nn.linear %0, %w3 : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x6xf32>
  %4 = nn.add %3, %b3 : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %5 = nn.mul %4, %half : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %6 = nn.sub %x, %2 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %7 = nn.add %6, %5 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %7 : tensor<4x6xf32>
})"},
    {"uneven_loop", R"(
tp.mesh @mesh(tp = 2)
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w1 = nn.parameter "w1" {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>} : tensor<5x4xf32>
  %w2 = nn.parameter "w2" {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>} : tensor<4x5xf32>
  %lower = arith.constant 0 : index
  %upper = arith.constant 2 : index
  %step = arith.constant 1 : index
  %r = scf.for %i = %lower to %upper step %step iter_args(%h = %x) -> (tensor<3x4xf32>) {
    %0 = nn.linear %h, %w1 : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<3x5xf32>
    %1 = nn.silu %0 : tensor<3x5xf32>
    %2 = nn.linear %1, %w2 : (tensor<3x5xf32>, tensor<4x5xf32>) -> tensor<3x4xf32>
    %3 = nn.add %2, %h : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    scf.yield %3 : tensor<3x4xf32>
  }
  return %r : tensor<3x4xf32>
})"},
    {"crossed", R"(
tp.mesh @mesh(x = 4, y = 2)
func.func @main(%a: tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{x}, {y} ]>})
    -> (tensor<8x4xf32> {tp.sharding = #tp.sharding<@mesh, [{y}, {x} ]>}) {
  %0 = nn.relu %a : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
})"},
    {"upstream", R"(
#rows = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
tp.mesh @mesh(dp = 2, tp = 2)
func.func @main(%x: tensor<4x8xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {} ]>},
                %w1: tensor<8x8xf32> {tp.sharding = #tp.sharding<@mesh, [{}, {tp} ]>},
                %b1: tensor<8xf32> {tp.sharding = #tp.sharding<@mesh, [{tp} ]>},
                %w2: tensor<8x6xf32> {tp.sharding = #tp.sharding<@mesh, [{tp}, {} ]>})
    -> (tensor<4x6xf32> {tp.sharding = #tp.sharding<@mesh, [{dp}, {} ]>}) {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<4x8xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = linalg.matmul ins(%x, %w1 : tensor<4x8xf32>, tensor<8x8xf32>) outs(%i1 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%0, %b1 : tensor<4x8xf32>, tensor<8xf32>) outs(%e1 : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    %m = arith.maximumf %s, %zero : f32
    linalg.yield %m : f32
  } -> tensor<4x8xf32>
  %e2 = tensor.empty() : tensor<4x6xf32>
  %i2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = linalg.matmul ins(%1, %w2 : tensor<4x8xf32>, tensor<8x6xf32>) outs(%i2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
})"},
};

} // namespace mlir::tp::test

#endif // TP_UNITTESTS_PROOF_MODELS_H
