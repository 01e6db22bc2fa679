//===- Spin.cpp - Waiting on a core ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/Spin.h"

#include "support/Cores.h"

uint32_t tprt::chooseSpins(int64_t numThreads) {
  return numThreads <= static_cast<int64_t>(getUsableCores().size()) ? 8192
                                                                     : 32;
}
