//===- Reduce.h - Elementwise reduction of several operands -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_REDUCE_H
#define TPRT_LIB_CPU_REDUCE_H

#include "tprt/Manifest.h"

namespace tprt {

/// dst[i] = operands[0][i] ∘ operands[1][i] ∘ … for i < count and every dst,
/// from left to right. f16 and bf16 accumulate in f32 and round once; integers
/// wrap around; avg divides the sum by the number of operands (integers
/// truncate); max and min propagate NaN. A dst may be one of the operands.
void reduce(Reduction reduction, Dtype dtype,
            const std::vector<const std::byte *> &operands,
            const std::vector<std::byte *> &dsts, int64_t count);

} // namespace tprt

#endif // TPRT_LIB_CPU_REDUCE_H
