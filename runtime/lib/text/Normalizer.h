//===- Normalizer.h - What is done to text before it is split ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_TEXT_NORMALIZER_H
#define TPRT_LIB_TEXT_NORMALIZER_H

#include "text/Component.h"
#include "text/Text.h"

namespace tprt::text {

/// Changes a text in place.
using Normalizer = std::function<void(Text &)>;

/// Reads a component of `normalizer`. Throws an input error for a type that
/// isn't supported.
Normalizer readNormalizer(const Component &component);

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_NORMALIZER_H
