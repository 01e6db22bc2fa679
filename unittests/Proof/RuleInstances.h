//===- RuleInstances.h - Instances of every op with a rule ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_UNITTESTS_PROOF_RULEINSTANCES_H
#define TP_UNITTESTS_PROOF_RULEINSTANCES_H

#include "llvm/ADT/StringRef.h"

namespace mlir::tp::test {

/// A function of one op.
struct Instance {
  const char *signature;
  const char *op;
  unsigned numResults = 1;
};

inline constexpr Instance kInstances[] = {
    // Sources.
    {"() -> tensor<4x4xf32>", "nn.constant dense<2.0> : tensor<4x4xf32>"},
    {"() -> tensor<4xi64>", "nn.constant dense<[1, 2, 3, 4]> : tensor<4xi64>"},
    {"() -> tensor<4x2xi64>",
     "nn.iota dim 0 start 0.0 step 1.0 : tensor<4x2xi64>"},
    // One operand, element by element.
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>", "nn.neg %a : tensor<4x2xf32>"},
    {"(%a: tensor<4xi64>) -> tensor<4xi64>", "nn.neg %a : tensor<4xi64>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>", "nn.abs %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>", "nn.exp %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>", "nn.log %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.sqrt %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.rsqrt %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.reciprocal %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>", "nn.sin %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>", "nn.cos %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.tanh %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>", "nn.erf %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.sigmoid %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.silu %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.relu %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.stop_gradient %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.floor %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.ceil %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.round %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.expm1 %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.log1p %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.atan %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xi1>) -> tensor<4x2xi1>",
     "nn.logical_not %a : tensor<4x2xi1>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.gelu %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.gelu tanh %a : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf64>",
     "nn.cast %a : tensor<4x2xf32> -> tensor<4x2xf64>"},
    {"(%a: tensor<4x2xi64>) -> tensor<4x2xf32>",
     "nn.cast %a : tensor<4x2xi64> -> tensor<4x2xf32>"},
    // Two operands, with and without broadcasting.
    {"(%a: tensor<4x2xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32>",
     "nn.add %a, %b : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>"},
    {"(%a: tensor<4x1xf32>, %b: tensor<1x4xf32>) -> tensor<4x4xf32>",
     "nn.add %a, %b : (tensor<4x1xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.sub %a, %b : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>"},
    {"(%a: tensor<2xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.sub %a, %b : (tensor<2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32>",
     "nn.mul %a, %b : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<4x1xf32>) -> tensor<4x2xf32>",
     "nn.div %a, %b : (tensor<4x2xf32>, tensor<4x1xf32>) -> tensor<4x2xf32>"},
    {"(%a: tensor<16x8xi64>, %b: tensor<16x8xi64>) -> tensor<16x8xi64>",
     "nn.div %a, %b : (tensor<16x8xi64>, tensor<16x8xi64>) -> "
     "tensor<16x8xi64>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32>",
     "nn.floor_div %a, %b : (tensor<4x2xf32>, tensor<2xf32>) -> "
     "tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32>",
     "nn.remainder %a, %b : (tensor<4x2xf32>, tensor<2xf32>) -> "
     "tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32>",
     "nn.pow %a, %b : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32>",
     "nn.maximum %a, %b : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32>",
     "nn.minimum %a, %b : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>"},
    {"(%a: tensor<4x2xi1>, %b: tensor<2xi1>) -> tensor<4x2xi1>",
     "nn.logical_and %a, %b : (tensor<4x2xi1>, tensor<2xi1>) -> "
     "tensor<4x2xi1>"},
    {"(%a: tensor<4x2xi1>, %b: tensor<2xi1>) -> tensor<4x2xi1>",
     "nn.logical_or %a, %b : (tensor<4x2xi1>, tensor<2xi1>) -> tensor<4x2xi1>"},
    {"(%a: tensor<4x2xi1>, %b: tensor<2xi1>) -> tensor<4x2xi1>",
     "nn.logical_xor %a, %b : (tensor<4x2xi1>, tensor<2xi1>) -> "
     "tensor<4x2xi1>"},
    {"(%a: tensor<16x8xf32>, %b: tensor<8xf32>) -> tensor<16x8xi1>",
     "nn.compare le %a, %b : (tensor<16x8xf32>, tensor<8xf32>) -> "
     "tensor<16x8xi1>"},
    {"(%a: tensor<4x2xi1>, %b: tensor<4x2xf32>, %c: tensor<2xf32>) -> "
     "tensor<4x2xf32>",
     "nn.where %a, %b, %c : (tensor<4x2xi1>, tensor<4x2xf32>, tensor<2xf32>) "
     "-> tensor<4x2xf32>"},
    // Contractions.
    {"(%a: tensor<2x4xf32>, %b: tensor<6x4xf32>) -> tensor<2x6xf32>",
     "nn.linear %a, %b : (tensor<2x4xf32>, tensor<6x4xf32>) -> "
     "tensor<2x6xf32>"},
    {"(%a: tensor<2x4x2xf32>, %b: tensor<2x2xf32>) -> tensor<2x4x2xf32>",
     "nn.linear %a, %b : (tensor<2x4x2xf32>, tensor<2x2xf32>) -> "
     "tensor<2x4x2xf32>"},
    {"(%a: tensor<2x4x6xf32>, %b: tensor<2x6x2xf32>) -> tensor<2x4x2xf32>",
     "nn.matmul %a, %b : (tensor<2x4x6xf32>, tensor<2x6x2xf32>) -> "
     "tensor<2x4x2xf32>"},
    {"(%a: tensor<2x4xf32>, %b: tensor<3x4x2xf32>) -> tensor<3x2x2xf32>",
     "nn.matmul %a, %b : (tensor<2x4xf32>, tensor<3x4x2xf32>) -> "
     "tensor<3x2x2xf32>"},
    {"(%a: tensor<2x4x2x2xf32>, %b: tensor<2x2x4x2xf32>, %c: "
     "tensor<2x2x4x2xf32>) -> tensor<2x4x2x2xf32>",
     "nn.attention %a, %b, %c scale 0.5 : (tensor<2x4x2x2xf32>, "
     "tensor<2x2x4x2xf32>, tensor<2x2x4x2xf32>)"
     " -> tensor<2x4x2x2xf32>"},
    {"(%a: tensor<2x2x2xf32>, %b: tensor<2x4x2xf32>, %c: tensor<2x4x2xf32>, "
     "%d: tensor<2x4xf32>) -> tensor<2x2x2xf32>",
     "nn.attention %a, %b, %c mask %d scale 0.5 : (tensor<2x2x2xf32>, "
     "tensor<2x4x2xf32>, tensor<2x4x2xf32>,"
     " tensor<2x4xf32>) -> tensor<2x2x2xf32>"},
    {"(%a: tensor<2x4x2xf32>, %b: tensor<2x4x2xf32>, %c: tensor<2x4x2xf32>) -> "
     "tensor<2x4x2xf32>",
     "nn.attention causal %a, %b, %c scale 0.5 : (tensor<2x4x2xf32>, "
     "tensor<2x4x2xf32>, tensor<2x4x2xf32>)"
     " -> tensor<2x4x2xf32>"},
    {"(%a: tensor<2x4xi64>, %b: tensor<6x2xf32>) -> tensor<2x4x2xf32>",
     "nn.embedding %a, %b : (tensor<2x4xi64>, tensor<6x2xf32>) -> "
     "tensor<2x4x2xf32>"},
    // Normalization and reduction.
    {"(%a: tensor<2x4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> "
     "tensor<2x4xf32>",
     "nn.layer_norm %a weight %b bias %c over 1 eps 1.0e-5 : (tensor<2x4xf32>, "
     "tensor<4xf32>, tensor<4xf32>)"
     " -> tensor<2x4xf32>"},
    {"(%a: tensor<4x2x2xf32>) -> tensor<4x2x2xf32>",
     "nn.layer_norm %a over 2 eps 1.0e-5 : (tensor<4x2x2xf32>) -> "
     "tensor<4x2x2xf32>"},
    {"(%a: tensor<2x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32>",
     "nn.rms_norm %a weight %b over 1 eps 1.0e-5 : (tensor<2x4xf32>, "
     "tensor<4xf32>) -> tensor<2x4xf32>"},
    {"(%a: tensor<2x4xf32>) -> tensor<2x4xf32>",
     "nn.softmax %a dim 1 : tensor<2x4xf32>"},
    {"(%a: tensor<2x4xf32>) -> tensor<2x4xf32>",
     "nn.log_softmax %a dim 0 : tensor<2x4xf32>"},
    {"(%a: tensor<2x4xf32>) -> tensor<2xf32>",
     "nn.reduce sum %a dims [1] : tensor<2x4xf32> -> tensor<2xf32>"},
    {"(%a: tensor<2x4xf32>) -> tensor<2x1xf32>",
     "nn.reduce mean %a dims [1] keepdim : tensor<2x4xf32> -> tensor<2x1xf32>"},
    {"(%a: tensor<2x4xf32>) -> tensor<f32>",
     "nn.reduce mean %a dims [0, 1] : tensor<2x4xf32> -> tensor<f32>"},
    {"(%a: tensor<2x4xi64>) -> tensor<2xi64>",
     "nn.reduce mean %a dims [1] : tensor<2x4xi64> -> tensor<2xi64>"},
    {"(%a: tensor<2x4xf32>) -> tensor<4xf32>",
     "nn.reduce max %a dims [0] : tensor<2x4xf32> -> tensor<4xf32>"},
    {"(%a: tensor<2x4xf32>) -> tensor<4xf32>",
     "nn.reduce min %a dims [0] : tensor<2x4xf32> -> tensor<4xf32>"},
    {"(%a: tensor<2x4xf32>) -> tensor<2xf32>",
     "nn.reduce product %a dims [1] : tensor<2x4xf32> -> tensor<2xf32>"},
    {"(%a: tensor<2x4xf32>) -> tensor<2xi64>",
     "nn.argmax %a dim 1 : tensor<2x4xf32> -> tensor<2xi64>"},
    // Shapes.
    {"(%a: tensor<4x6xf32>) -> tensor<24xf32>",
     "nn.reshape %a : tensor<4x6xf32> -> tensor<24xf32>"},
    {"(%a: tensor<2x8xf32>) -> tensor<2x4x2xf32>",
     "nn.reshape %a : tensor<2x8xf32> -> tensor<2x4x2xf32>"},
    {"(%a: tensor<2x4x3xf32>) -> tensor<4x2x3xf32>",
     "nn.transpose %a [1, 0, 2] : tensor<2x4x3xf32> -> tensor<4x2x3xf32>"},
    {"(%a: tensor<4x1xf32>) -> tensor<2x4x2xf32>",
     "nn.broadcast %a : tensor<4x1xf32> -> tensor<2x4x2xf32>"},
    {"(%a: tensor<2x4xf32>) -> tensor<2x2xf32>",
     "nn.slice %a dim 1 start 1 step 1 : tensor<2x4xf32> -> tensor<2x2xf32>"},
    {"(%a: tensor<2x8xf32>) -> tensor<2x4xf32>",
     "nn.slice %a dim 1 start 0 step 2 : tensor<2x8xf32> -> tensor<2x4xf32>"},
    {"(%a: tensor<2x4xf32>, %b: tensor<2x2xf32>) -> tensor<2x4xf32>",
     "nn.slice_scatter %a, %b dim 1 start 1 step 1 : (tensor<2x4xf32>, "
     "tensor<2x2xf32>) -> tensor<2x4xf32>"},
    {"(%a: tensor<2x8xf32>, %b: tensor<2x4xf32>) -> tensor<2x8xf32>",
     "nn.slice_scatter %a, %b dim 1 start 0 step 2 : (tensor<2x8xf32>, "
     "tensor<2x4xf32>) -> tensor<2x8xf32>"},
    {"(%a: tensor<2x4xf32>, %b: tensor<2x2xf32>) -> tensor<2x6xf32>",
     "nn.concat %a, %b dim 1 : (tensor<2x4xf32>, tensor<2x2xf32>) -> "
     "tensor<2x6xf32>"},
    {"(%a: tensor<2x4xf32>, %b: tensor<2x2xi64>) -> tensor<2x2xf32>",
     "nn.gather %a, %b dim 1 : (tensor<2x4xf32>, tensor<2x2xi64>) -> "
     "tensor<2x2xf32>"},
    {"(%a: tensor<8x6xf32>, %b: tensor<4x8xi64>) -> tensor<4x8xf32>",
     "nn.gather %a, %b dim 1 : (tensor<8x6xf32>, tensor<4x8xi64>) -> "
     "tensor<4x8xf32>"},
    {"(%a: tensor<2x6x2xf32>, %b: tensor<4xi64>) -> tensor<2x4x2xf32>",
     "nn.index_select %a, %b dim 1 : (tensor<2x6x2xf32>, tensor<4xi64>) -> "
     "tensor<2x4x2xf32>"},
    // Sorting, scans, writes at indices.
    {"(%a: tensor<2x4xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)",
     "nn.sort descending %a dim 1 count 3 : tensor<2x4xf32> -> "
     "(tensor<2x3xf32>, tensor<2x3xi64>)",
     2},
    {"(%a: tensor<4x2xi64>) -> (tensor<4x2xi64>, tensor<4x2xi64>)",
     "nn.sort %a dim 0 count 4 : tensor<4x2xi64> -> (tensor<4x2xi64>, "
     "tensor<4x2xi64>)",
     2},
    {"(%a: tensor<2x4xf32>) -> tensor<2x4xf32>",
     "nn.cumsum %a dim 1 : tensor<2x4xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "nn.cumsum reverse %a dim 0 : tensor<4x2xf32>"},
    {"(%a: tensor<2x6xf32>, %b: tensor<2x4xi64>, %c: tensor<2x4xf32>) -> "
     "tensor<2x6xf32>",
     "nn.scatter copy %a, %b, %c dim 1 : (tensor<2x6xf32>, tensor<2x4xi64>, "
     "tensor<2x4xf32>)"},
    {"(%a: tensor<6x4xf32>, %b: tensor<4x2xi64>, %c: tensor<4x2xf32>) -> "
     "tensor<6x4xf32>",
     "nn.scatter add %a, %b, %c dim 0 : (tensor<6x4xf32>, tensor<4x2xi64>, "
     "tensor<4x2xf32>)"},
    {"(%a: tensor<2x6x2xf32>, %b: tensor<4xi64>, %c: tensor<2x4x2xf32>) -> "
     "tensor<2x6x2xf32>",
     "nn.scatter add %a, %b, %c dim 1 : (tensor<2x6x2xf32>, tensor<4xi64>, "
     "tensor<2x4x2xf32>)"},
    {"(%a: tensor<6x2xf32>, %b: tensor<4xi64>, %c: tensor<4x2xf32>) -> "
     "tensor<6x2xf32>",
     "nn.scatter copy %a, %b, %c dim 0 : (tensor<6x2xf32>, tensor<4xi64>, "
     "tensor<4x2xf32>)"},
    {"(%a: tensor<6x2xf32>, %b: tensor<4xi64>, %c: tensor<4x2xf32>) -> "
     "tensor<6x2xf32>",
     "nn.scatter max %a, %b, %c dim 0 : (tensor<6x2xf32>, tensor<4xi64>, "
     "tensor<4x2xf32>)"},
    // Products of groups.
    {"(%a: tensor<4x2xf32>, %b: tensor<3x2x6xf32>, %c: tensor<4xi64>) -> "
     "tensor<4x6xf32>",
     "nn.grouped_matmul %a, %b bounds %c : (tensor<4x2xf32>, "
     "tensor<3x2x6xf32>, "
     "tensor<4xi64>) -> tensor<4x6xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<4x6xf32>, %c: tensor<4xi64>) -> "
     "tensor<3x2x6xf32>",
     "nn.grouped_outer_sum %a, %b bounds %c : (tensor<4x2xf32>, "
     "tensor<4x6xf32>, tensor<4xi64>) -> tensor<3x2x6xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<4x6xf32>, %c: tensor<5xi64>) -> "
     "tensor<4x2x6xf32>",
     "nn.grouped_outer_sum %a, %b bounds %c : (tensor<4x2xf32>, "
     "tensor<4x6xf32>, tensor<5xi64>) -> tensor<4x2x6xf32>"},
    // Losses.
    {"(%a: tensor<4x6xf32>, %b: tensor<4xi64>) -> tensor<f32>",
     "nn.cross_entropy mean %a, %b ignore -100 smoothing 0.0 loss_parallel : "
     "(tensor<4x6xf32>, tensor<4xi64>)"
     " -> tensor<f32>"},
    {"(%a: tensor<4x6xf32>, %b: tensor<4xi64>, %c: tensor<6xf32>) -> "
     "tensor<f32>",
     "nn.cross_entropy sum %a, %b weight %c ignore 1 smoothing 0.0 "
     "loss_parallel : (tensor<4x6xf32>, tensor<4xi64>,"
     " tensor<6xf32>) -> tensor<f32>"},
    {"(%a: tensor<4x6xf32>, %b: tensor<4xi64>) -> tensor<4xf32>",
     "nn.cross_entropy none %a, %b ignore -100 smoothing 0.5 : "
     "(tensor<4x6xf32>, tensor<4xi64>) -> tensor<4xf32>"},
    {"(%a: tensor<4x6xf32>, %b: tensor<4xi64>) -> tensor<f32>",
     "nn.nll_loss mean %a, %b ignore -100 : (tensor<4x6xf32>, tensor<4xi64>) "
     "-> tensor<f32>"},
    {"(%a: tensor<4x6xf32>, %b: tensor<4xi64>) -> tensor<4xf32>",
     "nn.nll_loss none %a, %b ignore -100 : (tensor<4x6xf32>, tensor<4xi64>) "
     "-> tensor<4xf32>"},
    // Windows: convolutions, without groups and with two, and pooling.
    {"(%a: tensor<2x4x3x3xf32>, %b: tensor<2x4x2x2xf32>) -> "
     "tensor<2x2x2x3xf32>",
     "nn.convolution %a, %b stride [1, 2] padding [0, 2] dilation [1, 1] : "
     "(tensor<2x4x3x3xf32>, tensor<2x4x2x2xf32>) -> tensor<2x2x2x3xf32>"},
    {"(%a: tensor<2x2x2x3xf32>, %b: tensor<2x2x2x2xf32>) -> "
     "tensor<2x2x2x2xf32>",
     "nn.convolution %a, %b stride [1] padding [0] dilation [1] : "
     "(tensor<2x2x2x3xf32>, tensor<2x2x2x2xf32>) -> tensor<2x2x2x2xf32>"},
    {"(%a: tensor<2x4x3xf32>) -> tensor<2x4x2x4xf32>",
     "nn.windows %a stride [1] padding [1] dilation [1] outside 0.0 : "
     "tensor<2x4x3xf32> -> tensor<2x4x2x4xf32>"},
    {"(%a: tensor<2x4x3xf32>) -> tensor<2x4x2x4xf32>",
     "nn.windows %a stride [1] padding [1] dilation [1] outside 1.0 : "
     "tensor<2x4x3xf32> -> tensor<2x4x2x4xf32>"},
    {"(%a: tensor<2x4x2x4xf32>) -> tensor<2x4x3xf32>",
     "nn.fold %a stride [1] padding [1] dilation [1] : tensor<2x4x2x4xf32> -> "
     "tensor<2x4x3xf32>"},
    {"(%a: tensor<2x4x4xf32>) -> tensor<2x4x2xf32>",
     "nn.pool max %a size [3] stride [2] padding [1] dilation [1] : "
     "tensor<2x4x4xf32> -> tensor<2x4x2xf32>"},
    {"(%a: tensor<2x4x4xf32>) -> tensor<2x4x2xf32>",
     "nn.pool sum %a size [3] stride [2] padding [1] dilation [1] : "
     "tensor<2x4x4xf32> -> tensor<2x4x2xf32>"},
    // Windows that reach beyond several blocks, dilated ones, ones with nothing
    // outside, side by side, and further apart than they are wide.
    {"(%a: tensor<1x7x2xf32>) -> tensor<1x6x2xf32>",
     "nn.pool max %a size [6, 1] stride [1, 1] padding [3, 0] dilation [1, 1] "
     ": tensor<1x7x2xf32> -> tensor<1x6x2xf32>"},
    {"(%a: tensor<1x6xf32>) -> tensor<1x6xf32>",
     "nn.pool sum %a size [3] stride [1] padding [4] dilation [2] : "
     "tensor<1x6xf32> -> tensor<1x6xf32>"},
    {"(%a: tensor<1x7xf32>) -> tensor<1x5xf32>",
     "nn.pool sum %a size [3] stride [1] padding [0] dilation [1] : "
     "tensor<1x7xf32> -> tensor<1x5xf32>"},
    {"(%a: tensor<1x8xf32>) -> tensor<1x4xf32>",
     "nn.pool sum %a size [2] stride [2] padding [0] dilation [1] : "
     "tensor<1x8xf32> -> tensor<1x4xf32>"},
    {"(%a: tensor<1x8xf32>) -> tensor<1x2x3xf32>",
     "nn.windows %a stride [3] padding [0] dilation [1] outside 0.0 : "
     "tensor<1x8xf32> -> tensor<1x2x3xf32>"},
    {"(%a: tensor<1x3x2x4x2xf32>) -> tensor<1x8x3xf32>",
     "nn.fold %a stride [2, 1] padding [1, 0] dilation [1, 1] : "
     "tensor<1x3x2x4x2xf32> -> tensor<1x8x3xf32>"},
    {"(%a: tensor<1x2x3xf32>) -> tensor<1x9xf32>",
     "nn.fold %a stride [3] padding [1] dilation [1] : tensor<1x2x3xf32> -> "
     "tensor<1x9xf32>"},
    {"(%a: tensor<1x3x4xf32>) -> tensor<1x7xf32>",
     "nn.fold %a stride [2] padding [1] dilation [1] : tensor<1x3x4xf32> -> "
     "tensor<1x7xf32>"},
    {"(%a: tensor<1x2x6xf32>) -> tensor<1x8xf32>",
     "nn.fold %a stride [1] padding [0] dilation [2] : tensor<1x2x6xf32> -> "
     "tensor<1x8xf32>"},
    // Training.
    {"(%a: tensor<2x4x2xf32>, %b: tensor<2x4x6xf32>) -> tensor<2x6xf32>",
     "nn.outer_sum %a, %b : (tensor<2x4x2xf32>, tensor<2x4x6xf32>) -> "
     "tensor<2x6xf32>"},
    {"(%a: tensor<2x4xi64>, %b: tensor<2x4x2xf32>) -> tensor<6x2xf32>",
     "nn.scatter_add_rows %a, %b : (tensor<2x4xi64>, tensor<2x4x2xf32>) -> "
     "tensor<6x2xf32>"},
    {"(%a: tensor<2x4x2x2xf32>, %b: tensor<2x2x4x2xf32>, %c: "
     "tensor<2x2x4x2xf32>, %d: tensor<2x4x2x2xf32>) -> (tensor<2x4x2x2xf32>, "
     "tensor<2x4x4x2xf32>, tensor<2x4x4x2xf32>)",
     "nn.attention_gradient %a, %b, %c gradient %d scale 0.5 : "
     "(tensor<2x4x2x2xf32>, tensor<2x2x4x2xf32>, tensor<2x2x4x2xf32>, "
     "tensor<2x4x2x2xf32>) -> (tensor<2x4x2x2xf32>, tensor<2x4x4x2xf32>, "
     "tensor<2x4x4x2xf32>)",
     3},
    {"(%a: tensor<2x2x2xf32>, %b: tensor<2x4x2xf32>, %c: tensor<2x4x2xf32>, "
     "%d: tensor<2x2x2xf32>, %e: tensor<2x4xf32>) -> (tensor<2x2x2xf32>, "
     "tensor<2x4x2xf32>, tensor<2x4x2xf32>)",
     "nn.attention_gradient %a, %b, %c gradient %d mask %e scale 0.5 : "
     "(tensor<2x2x2xf32>, tensor<2x4x2xf32>, tensor<2x4x2xf32>, "
     "tensor<2x2x2xf32>, tensor<2x4xf32>) -> (tensor<2x2x2xf32>, "
     "tensor<2x4x2xf32>, tensor<2x4x2xf32>)",
     3},
    {"(%a: tensor<2x2x2xf32>, %b: tensor<2x4x2xf32>, %c: tensor<2x4x2xf32>, "
     "%o: tensor<i64>) -> (tensor<2x2x2xf32>, tensor<2x2x1xf32>)",
     "nn.attention_block %a, %b, %c offset %o scale 0.5 : (tensor<2x2x2xf32>, "
     "tensor<2x4x2xf32>, tensor<2x4x2xf32>, tensor<i64>) -> "
     "(tensor<2x2x2xf32>, tensor<2x2x1xf32>)",
     2},
    {"(%a: tensor<2x2x2xf32>, %b: tensor<2x4x2xf32>, %c: tensor<2x4x2xf32>, "
     "%d: tensor<2x2x2xf32>, %e: tensor<2x2x1xf32>, %f: tensor<2x2x1xf32>) -> "
     "(tensor<2x2x2xf32>, tensor<2x4x2xf32>, tensor<2x4x2xf32>)",
     "nn.attention_block_gradient %a, %b, %c gradient %d lse %e delta %f scale "
     "0.5 : (tensor<2x2x2xf32>, tensor<2x4x2xf32>, tensor<2x4x2xf32>, "
     "tensor<2x2x2xf32>, tensor<2x2x1xf32>, tensor<2x2x1xf32>) -> "
     "(tensor<2x2x2xf32>, tensor<2x4x2xf32>, tensor<2x4x2xf32>)",
     3},
    // Upstream ops.
    {"(%a: tensor<4x6xf32>, %b: tensor<6x2xf32>, %c: tensor<4x2xf32>) -> "
     "tensor<4x2xf32>",
     "linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x2xf32>) outs(%c : "
     "tensor<4x2xf32>) -> tensor<4x2xf32>"},
    {"(%a: tensor<2x4x2xf32>, %b: tensor<2x2x4xf32>, %c: tensor<2x4x4xf32>) -> "
     "tensor<2x4x4xf32>",
     "linalg.batch_matmul ins(%a, %b : tensor<2x4x2xf32>, tensor<2x2x4xf32>) "
     "outs(%c : tensor<2x4x4xf32>)"
     " -> tensor<2x4x4xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<2x4xf32>) -> tensor<2x4xf32>",
     "linalg.transpose ins(%a : tensor<4x2xf32>) outs(%b : tensor<2x4xf32>) "
     "permutation = [1, 0]"},
    {"(%a: tensor<4x6xf32>, %b: tensor<4xf32>) -> tensor<4xf32>",
     "linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, "
     "affine_map<(i, j) -> (i)>],"
     " iterator_types = [\"parallel\", \"reduction\"]} ins(%a : "
     "tensor<4x6xf32>) outs(%b : tensor<4xf32>) {\n"
     "^bb0(%x: f32, %acc: f32):\n %m = arith.maximumf %x, %acc : f32\n "
     "linalg.yield %m : f32\n} -> tensor<4xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "arith.addf %a, %b : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "arith.subf %a, %b : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xi32>, %b: tensor<4x2xi32>) -> tensor<4x2xi32>",
     "arith.addi %a, %b : tensor<4x2xi32>"},
    {"(%a: tensor<4x2xi32>, %b: tensor<4x2xi32>) -> tensor<4x2xi32>",
     "arith.subi %a, %b : tensor<4x2xi32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "arith.mulf %a, %b : tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>) -> tensor<4x2xf32>",
     "math.exp %a : tensor<4x2xf32>"},
    {"(%a: tensor<8x2xf32>) -> tensor<4x2x2xf32>",
     "tensor.expand_shape %a [[0, 1], [2]] output_shape [4, 2, 2] : "
     "tensor<8x2xf32> into tensor<4x2x2xf32>"},
    {"(%a: tensor<4x2x2xf32>) -> tensor<8x2xf32>",
     "tensor.collapse_shape %a [[0, 1], [2]] : tensor<4x2x2xf32> into "
     "tensor<8x2xf32>"},
    {"(%a: tensor<4x6xf32>) -> tensor<4x2xf32>",
     "tensor.extract_slice %a[0, 1] [4, 2] [1, 1] : tensor<4x6xf32> to "
     "tensor<4x2xf32>"},
    {"(%a: tensor<4x2xf32>, %b: tensor<4x4xf32>) -> tensor<4x6xf32>",
     "tensor.concat dim(1) %a, %b : (tensor<4x2xf32>, tensor<4x4xf32>) -> "
     "tensor<4x6xf32>"},
};

/// Ops without an instance: what a parameter is isn't in the program, and the
/// ops of training have several results, compute on the bits of
/// integers, or aren't executed as they stand.
inline constexpr StringRef kWithoutInstance[] = {
    "nn.parameter",      "nn.adam",    "nn.amsgrad",   "nn.sgd",
    "nn.random_uniform", "nn.dropout", "nn.recompute", "nn.class_sums",
    "nn.dispatch",       "nn.combine"};

} // namespace mlir::tp::test

#endif // TP_UNITTESTS_PROOF_RULEINSTANCES_H
