//===- Attention.h - Fused attention -----------------------------*- C++
//-*-===//

#ifndef TPRT_LIB_ATTENTION_H
#define TPRT_LIB_ATTENTION_H

#include "Gemm.h"
#include "tprt/abi.h"

namespace tprt {

/// See tprt_attention. Throws an execution error when the arguments are out of
/// range.
void attention(const tprt_attention_args &args, const void *query,
               const void *key, const void *value, const void *mask,
               void *output, GemmState &state);

} // namespace tprt

#endif // TPRT_LIB_ATTENTION_H
