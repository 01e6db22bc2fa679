//===- PreTokenizer.h - Splitting text into the model's inputs --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_TEXT_PRETOKENIZER_H
#define TPRT_LIB_TEXT_PRETOKENIZER_H

#include "text/Component.h"
#include "text/Text.h"

namespace tprt::text {

/// Splits each of the pieces; none of the results is empty.
using PreTokenizer = std::function<void(std::vector<Text> &)>;

/// Reads a component of `pre_tokenizer`. Throws an input error for a type that
/// isn't supported.
PreTokenizer readPreTokenizer(const Component &component);

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_PRETOKENIZER_H
