//===- Random.h - Tensors that no file gives --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_RANDOM_H
#define TP_TOOLS_TP_RUN_RANDOM_H

#include "tprt/Session.h"

/// Adds to `tensors` those of `wanted` that it lacks and that have no initial
/// value: numbers that depend on the seed, the name and the index alone, so
/// that every machine draws the same. `isParameter`: matrices are uniform with
/// variance 1 / last size, so that products neither grow nor vanish, and
/// vectors between 0.5 and 1.5; otherwise all are between -1 and 1. Throws an
/// input error where one is of integers, whose range isn't known.
void drawTensors(const std::vector<tprt::TensorInfo> &wanted, uint64_t seed,
                 bool isParameter, tprt::TensorMap &tensors);

#endif // TP_TOOLS_TP_RUN_RANDOM_H
