//===- Attention.h - Fused attention ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_ATTENTION_H
#define TPRT_LIB_CPU_ATTENTION_H

#include "cpu/Gemm.h"
#include "tprt/abi.h"

namespace tprt {

/// See tprt_attention. All functions here throw an execution error if the
/// arguments are out of range.
void attention(const tprt_attention_args &args, const void *query,
               const void *key, const void *value, const void *mask,
               void *output, GemmState &state);

/// See tprt_attention_gradient.
void attentionGradient(const tprt_attention_gradient_args &args,
                       const void *query, const void *key, const void *value,
                       const void *mask, const void *gradient,
                       void *queryGradient, void *keyGradient,
                       void *valueGradient, GemmState &state);

/// See tprt_attention_block.
void attentionBlock(const tprt_attention_block_args &args, const void *query,
                    const void *key, const void *value, const void *mask,
                    const int64_t *offset, void *output, void *lse,
                    GemmState &state);

/// See tprt_attention_block_gradient.
void attentionBlockGradient(const tprt_attention_block_gradient_args &args,
                            const void *query, const void *key,
                            const void *value, const void *mask,
                            const int64_t *offset, const void *gradient,
                            const void *lse, const void *delta,
                            void *queryGradient, void *keyGradient,
                            void *valueGradient, GemmState &state);

} // namespace tprt

#endif // TPRT_LIB_CPU_ATTENTION_H
