//===- Random.h - Tensors that no file gives --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_RANDOM_H
#define TP_TOOLS_TP_RUN_RANDOM_H

#include "tprt/Session.h"

/// Adds to `tensors` those of `wanted` that it lacks and that have no initial
/// value. The numbers depend only on the seed, the name and the index, so every
/// machine draws the same. If `isParameter`, matrices are uniform with variance
/// 1 / last size, so that products neither grow nor vanish, and vectors are
/// between 0.5 and 1.5. Otherwise all numbers are between -1 and 1. Throws an
/// input error for integers, whose range isn't known.
void drawTensors(const std::vector<tprt::TensorInfo> &wanted, uint64_t seed,
                 bool isParameter, tprt::TensorMap &tensors);

#endif // TP_TOOLS_TP_RUN_RANDOM_H
