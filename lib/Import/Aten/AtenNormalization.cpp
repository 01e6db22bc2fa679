//===- AtenNormalization.cpp - norms of channels --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AtenCall.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;
using nn::ReduceKind;

/// A per-channel vector (c) against (n, c, …).
static Value perChannel(ImportBuilder &b, Value vector, int64_t rank) {
  llvm::SmallVector<int64_t> shape(rank - 1, 1);
  shape[0] = typeOf(vector).getNumElements();
  return b.reshape(vector, shape);
}

/// v * weight + bias, where the model has them.
static Value scaleChannels(AtenCall &call, ImportBuilder &b, Value v) {
  auto channels = [&](StringRef name) {
    return perChannel(b, castTo(b, call.tensor(name), elementOf(v)), rankOf(v));
  };
  if (call.has("weight"))
    v = mul(b, v, channels("weight"));
  if (call.has("bias"))
    v = add(b, v, channels("bias"));
  return v;
}

/// The differences from the mean by the standard deviation, with weight and
/// bias.
static LogicalResult normalize(AtenCall &call, ImportBuilder &b, Value centered,
                               Value variance) {
  Value eps = b.scalar(elementOf(variance), call.scalar("eps"));
  Value v = mul(b, centered, unary<nn::RsqrtOp>(b, add(b, variance, eps)));
  return call.result(
      castTo(b, scaleChannels(call, b, v), call.resultElement()));
}

/// By the running statistics.
static LogicalResult normalizeAsBefore(AtenCall &call, ImportBuilder &b) {
  Value v = b.widen(call.tensor("input"));
  auto statistic = [&](StringRef name) {
    return perChannel(b, castTo(b, call.tensor(name), elementOf(v)), rankOf(v));
  };
  return normalize(call, b, sub(b, v, statistic("running_mean")),
                   statistic("running_var"));
}

/// The running statistics for the next call: old + momentum * (new - old). The
/// variance is that of the examples' population. A functional form of the op
/// returns them as its last results, any other form assigns the buffers.
static LogicalResult updateStatistics(AtenCall &call, ImportBuilder &b,
                                      Value mean, Value variance,
                                      int64_t count) {
  double unbiased = double(count) / double(std::max<int64_t>(count - 1, 1));
  bool isFunctional = call.numResults() == 5;
  auto update = [&](StringRef name, Value value, unsigned result) {
    Value old = call.tensor(name);
    value = b.reshape(b.stopGradient(value), shapeOf(old));
    Type wide = elementOf(value);
    Value change = sub(b, value, castTo(b, old, wide));
    change = mul(b, change, b.scalar(wide, call.scalar("momentum")));
    Value next =
        castTo(b, add(b, castTo(b, old, wide), change), elementOf(old));
    if (!isFunctional)
      return call.assign(name, next);
    call.setResult(result, next);
    return success();
  };
  if (failed(update("running_mean", mean, 3)))
    return failure();
  return update("running_var", mul(b, variance, unbiased), 4);
}

/// In training mode the statistics are those of the whole batch, also where it
/// is split over ranks, as in PyTorch's SyncBatchNorm.
static LogicalResult batchNorm(AtenCall &call, ImportBuilder &b) {
  bool isRunning = call.has("running_mean") && call.has("running_var");
  if (!call.flag("training") && isRunning) {
    if (call.numResults() == 5) {
      call.setResult(3, call.tensor("running_mean"));
      call.setResult(4, call.tensor("running_var"));
    }
    return normalizeAsBefore(call, b);
  }
  Value v = b.widen(call.tensor("input"));
  llvm::SmallVector<int64_t> dims{0};
  llvm::append_range(dims, llvm::seq<int64_t>(2, rankOf(v)));
  Value mean = b.reduce(ReduceKind::Mean, v, dims, /*keepdim=*/true);
  Value centered = sub(b, v, mean);
  Value variance = b.reduce(ReduceKind::Mean, mul(b, centered, centered), dims,
                            /*keepdim=*/true);
  int64_t channels = shapeOf(v)[1];
  int64_t count = channels ? typeOf(v).getNumElements() / channels : 0;
  if (isRunning && failed(updateStatistics(call, b, mean, variance, count)))
    return failure();
  return normalize(call, b, centered, variance);
}

/// A layer norm over each group of channels.
static LogicalResult normalizeGroups(AtenCall &call, ImportBuilder &b,
                                     int64_t groups) {
  Value input = call.tensor("input");
  auto shape = llvm::to_vector(shapeOf(input));
  int64_t count = typeOf(input).getNumElements();
  if (count == 0)
    return call.unsupported("of an empty tensor");
  Value v = b.reshape(input, {shape[0], groups, count / (shape[0] * groups)});
  v = nn::LayerNormOp::create(b, v, Value(), Value(), b.getI64IntegerAttr(1),
                              b.getF64FloatAttr(call.real("eps")));
  return call.result(scaleChannels(call, b, b.reshape(v, shape)));
}

static LogicalResult groupNorm(AtenCall &call, ImportBuilder &b) {
  return normalizeGroups(
      call, b, call.integer(call.has("group") ? "group" : "num_groups"));
}

/// Each channel of each example on its own, or by running statistics.
static LogicalResult instanceNorm(AtenCall &call, ImportBuilder &b) {
  if (!call.flag("use_input_stats"))
    return normalizeAsBefore(call, b);
  if (call.has("running_mean"))
    return call.unsupported("in training mode with running statistics: make "
                            "the module with track_running_stats=False");
  return normalizeGroups(call, b, shapeOf(call.tensor("input"))[1]);
}

void mlir::tp::addNormalizationOps(AtenTable &table) {
  table["batch_norm"] = {.run = batchNorm,
                         .reads = "input weight bias running_mean running_var "
                                  "training momentum eps",
                         .noEffect = "cudnn_enabled"};
  table["native_batch_norm"] = {
      batchNorm,
      "input weight bias running_mean running_var training momentum eps"};
  // The form with running statistics writes its arguments, and is refused.
  table["_native_batch_norm_legit"] = {
      .run = batchNorm,
      .reads = "input weight bias training eps running_mean running_var "
               "momentum"};
  table["_native_batch_norm_legit_functional"] = {
      batchNorm,
      "input weight bias running_mean running_var training momentum eps"};
  table["_native_batch_norm_legit_no_training"] = {
      .run = batchNorm,
      .reads = "input weight bias running_mean running_var eps",
      .noEffect = "momentum"};
  table["native_group_norm"] = {.run = groupNorm,
                                .reads = "input group weight bias eps",
                                .inType = "N C HxW"};
  table["group_norm"] = {.run = groupNorm,
                         .reads = "input num_groups weight bias eps",
                         .noEffect = "cudnn_enabled"};
  table["instance_norm"] = {
      .run = instanceNorm,
      .reads = "input weight bias running_mean running_var use_input_stats eps",
      .noEffect = "momentum cudnn_enabled"};
}
