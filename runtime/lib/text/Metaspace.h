//===- Metaspace.h - SentencePiece's marker of spaces -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_TEXT_METASPACE_H
#define TPRT_LIB_TEXT_METASPACE_H

#include "text/Component.h"
#include "text/Text.h"

namespace tprt::text {

/// What the pre-tokenizer and the decoder "Metaspace" share.
struct Metaspace {
  /// Which pieces get a marker in front.
  enum class Prepend { First, Never, Always };

  std::u16string marker; ///< one code point, usually U+2581
  Prepend prepend;
};

Metaspace readMetaspaceOptions(const Component &component);

/// A string that must have exactly one code point.
std::u16string readCodePoint(const Component &component);

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_METASPACE_H
