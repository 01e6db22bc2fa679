//===- ByteAlphabet.h - Bytes as visible characters -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The vocabulary of a byte-level BPE has a visible character for each byte
// (https://github.com/openai/gpt-2, encoder.py): printable bytes of Latin-1
// stand for themselves, the others are U+0100, U+0101, … in their order.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_TEXT_BYTEALPHABET_H
#define TPRT_LIB_TEXT_BYTEALPHABET_H

#include "text/Text.h"

#include <optional>

namespace tprt::text {

/// Replaces each code point by the characters of its bytes in UTF-8.
void encodeBytes(Text &text);

/// The bytes that the characters of `token` stand for; nullopt if one of them
/// stands for none.
std::optional<std::string> decodeBytes(std::string_view token);

} // namespace tprt::text

#endif // TPRT_LIB_TEXT_BYTEALPHABET_H
