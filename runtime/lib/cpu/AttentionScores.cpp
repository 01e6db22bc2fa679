//===- AttentionScores.cpp - The arguments of fused attention -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/AttentionScores.h"

using namespace tprt;

void attention_scores::check(const tprt_attention_args &args, const void *mask,
                             const std::string &function) {
  auto require = [&](bool holds, const char *what) {
    if (!holds)
      throw executionError(function + ": " + what);
  };
  require(args.dtype >= TPRT_F32 && args.dtype <= TPRT_BF16,
          "dtype is not f32, f64, f16 or bf16");
  require(args.mask >= TPRT_NO_MASK && args.mask <= TPRT_BOOLEAN_MASK,
          "the kind of mask is unknown");
  require((args.mask == TPRT_NO_MASK) == !mask,
          "the mask's address and kind don't agree");
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  for (int64_t size : {args.rows, args.columns, args.depth, args.width})
    require(size >= 0 && size <= limit, "a size is out of range");
  for (int64_t size : args.batch)
    require(size >= 0 && size <= limit, "a batch size is out of range");
}

bool attention_scores::hasNoBatch(const tprt_attention_args &args) {
  return std::find(std::begin(args.batch), std::end(args.batch), 0) !=
         std::end(args.batch);
}

int64_t attention_scores::getOffset(const tprt_attention_args &args,
                                    const int64_t *offset,
                                    const std::string &function) {
  if ((args.causal != 0) != (offset != nullptr))
    throw executionError(function +
                         ": the offset's address and causal don't agree");
  // Further ones hide or show as much.
  return offset ? std::clamp(*offset, -args.rows, args.columns) : 0;
}
