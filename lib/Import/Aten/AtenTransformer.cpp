//===- AtenTransformer.cpp - PyTorch's fused transformer ops --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops that nn.MultiheadAttention and nn.TransformerEncoderLayer call in
// eval mode without gradients. They are in the graph if the modules are traced
// in this mode.
//
//===----------------------------------------------------------------------===//

#include "AtenCall.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

static Value linearWithBias(ImportBuilder &b, Value v, Value weight,
                            Value bias) {
  return add(b, nn::LinearOp::create(b, v, weight), bias);
}

/// Projections by the thirds of one weight, attention, and the output
/// projection. The arguments have the names that both fused ops share.
static Value selfAttention(AtenCall &call, ImportBuilder &b, Value query,
                           Value key, Value value, int64_t heads) {
  Value weight = call.tensor("qkv_weight"), bias = call.tensor("qkv_bias");
  int64_t size = shapeOf(query).back();
  auto project = [&](Value v, int64_t third) {
    v = linearWithBias(b, v, b.slice(weight, 0, third * size, size),
                       b.slice(bias, 0, third * size, size));
    v = b.reshape(v, {shapeOf(v)[0], shapeOf(v)[1], heads, size / heads});
    return b.swap(v, 1, 2);
  };
  Value q = project(query, 0), k = project(key, 1), v = project(value, 2);
  Value result = nn::AttentionOp::create(
      b, q, k, v, Value(),
      b.getF64FloatAttr(1 / std::sqrt(double(size / heads))),
      /*causal=*/false, /*context_method=*/{});
  result = b.reshape(b.swap(result, 1, 2), shapeOf(query));
  return linearWithBias(b, result, call.tensor("proj_weight"),
                        call.tensor("proj_bias"));
}

static LogicalResult multiHeadAttention(AtenCall &call, ImportBuilder &b) {
  if (call.has("mask"))
    return call.unsupported(
        "with a mask; call torch.backends.mha.set_fastpath_enabled(False) "
        "before you trace the module, or use torch.export");
  if (call.flag("need_weights"))
    return call.unsupported("with need_weights=True; call "
                            "torch.backends.mha.set_fastpath_enabled(False) "
                            "before you trace the module, or use torch.export");
  Value result =
      selfAttention(call, b, call.tensor("query"), call.tensor("key"),
                    call.tensor("value"), call.integer("num_head"));
  for (unsigned i = 1; i < call.numResults(); ++i)
    call.setResult(i, b.splat(call.resultShape(i), call.resultElement(i),
                              Scalar::of(int64_t(0))));
  return call.result(result);
}

static LogicalResult encoderLayer(AtenCall &call, ImportBuilder &b) {
  if (call.has("mask"))
    return call.unsupported(
        "with a mask; call torch.backends.mha.set_fastpath_enabled(False) "
        "before you trace the module, or use torch.export");
  auto normalize = [&](Value v, StringRef weight, StringRef bias) -> Value {
    return nn::LayerNormOp::create(b, v, call.tensor(weight), call.tensor(bias),
                                   b.getI64IntegerAttr(1),
                                   b.getF64FloatAttr(call.real("eps")));
  };
  auto attend = [&](Value v) {
    return selfAttention(call, b, v, v, v, call.integer("num_heads"));
  };
  auto feedForward = [&](Value v) -> Value {
    v = linearWithBias(b, v, call.tensor("ffn_weight_1"),
                       call.tensor("ffn_bias_1"));
    if (call.flag("use_gelu"))
      v = nn::GeluOp::create(b, v);
    else
      v = unary<nn::ReluOp>(b, v);
    return linearWithBias(b, v, call.tensor("ffn_weight_2"),
                          call.tensor("ffn_bias_2"));
  };
  auto normalize1 = [&](Value v) {
    return normalize(v, "norm_weight_1", "norm_bias_1");
  };
  auto normalize2 = [&](Value v) {
    return normalize(v, "norm_weight_2", "norm_bias_2");
  };
  Value v = call.tensor("src");
  if (call.flag("norm_first")) {
    v = add(b, v, attend(normalize1(v)));
    return call.result(add(b, v, feedForward(normalize2(v))));
  }
  v = normalize1(add(b, v, attend(v)));
  return call.result(normalize2(add(b, v, feedForward(v))));
}

void mlir::tp::addTransformerOps(AtenTable &table) {
  table["_native_multi_head_attention"] = {
      .run = multiHeadAttention,
      .reads = "query key value num_head qkv_weight qkv_bias proj_weight "
               "proj_bias mask need_weights",
      .noEffect = "embed_dim average_attn_weights mask_type"};
  table["_transformer_encoder_layer_fwd"] = {
      .run = encoderLayer,
      .reads =
          "src num_heads qkv_weight qkv_bias proj_weight proj_bias use_gelu "
          "norm_first eps norm_weight_1 norm_bias_1 norm_weight_2 norm_bias_2 "
          "ffn_weight_1 ffn_bias_1 ffn_weight_2 ffn_bias_2 mask",
      .noEffect = "embed_dim mask_type"};
}
