//===- PrecompiledMap.h - SentencePiece's table of replacements -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The member `precompiled_charsmap` of SentencePiece's NormalizerSpec
// (https://github.com/google/sentencepiece), in base64: the size of a trie in
// bytes, the trie, and the replacements, each of which ends with a byte 0. The
// trie is a double array of Darts-clone (https://github.com/s-yata/darts-clone)
// that leads from the bytes of a string to the offset of its replacement. All
// numbers are of 32 bits, little-endian.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_TEXT_PRECOMPILEDMAP_H
#define TPRT_LIB_TEXT_PRECOMPILEDMAP_H

#include "text/Component.h"
#include "text/Text.h"

#include <optional>

namespace tprt::text {

class PrecompiledMap {
public:
  /// Reads a component with the member `precompiled_charsmap`. Throws an input
  /// error if it is malformed.
  explicit PrecompiledMap(const Component &component);

  /// Replaces what the table has of a text. As in `tokenizers`, a grapheme of
  /// less than 6 bytes is looked up as a whole first, then each code point; and
  /// the shortest string of the table that it begins with replaces all of it.
  void normalize(Text &text) const;

private:
  std::optional<std::u16string> find(std::u16string_view units) const;
  std::optional<size_t> findOffset(std::string_view key) const;

  std::vector<uint32_t> trie;
  std::string replacements;
};

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_PRECOMPILEDMAP_H
