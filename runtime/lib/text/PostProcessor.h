//===- PostProcessor.h - Special tokens around the input --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_TEXT_POSTPROCESSOR_H
#define TPRT_LIB_TEXT_POSTPROCESSOR_H

#include "text/Component.h"

namespace tprt::text {

/// The ids of the special tokens before and after a single sequence.
struct PostProcessor {
  std::vector<int64_t> before, after;
};

/// Reads a component of `post_processor`. Templates of pairs aren't read.
/// Throws an input error for a type that isn't supported.
PostProcessor readPostProcessor(const Component &component);

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_POSTPROCESSOR_H
