//===- ByteAlphabet.cpp - Bytes as visible characters ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/ByteAlphabet.h"

#include <array>

using namespace tprt;
using namespace tprt::text;

namespace {

constexpr size_t numBytes = 256, numInvisible = 68;

struct Alphabet {
  std::array<char16_t, numBytes> characters{};
  /// By character: the byte, or -1.
  std::array<int16_t, numBytes + numInvisible> bytes{};

  constexpr Alphabet() {
    bytes.fill(-1);
    char16_t invisible = numBytes;
    for (size_t byte = 0; byte < numBytes; ++byte) {
      bool isVisible =
          (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      characters[byte] = isVisible ? byte : invisible++;
      bytes[characters[byte]] = byte;
    }
  }
};

constexpr Alphabet alphabet;

} // namespace

void text::encodeBytes(Text &text) {
  mapCodePoints(text, [](char32_t codePoint, std::u16string &units) {
    std::u16string single;
    append(single, codePoint);
    for (unsigned char byte : toUtf8(single))
      units += alphabet.characters[byte];
  });
}

std::optional<std::string> text::decodeBytes(std::string_view token) {
  std::string bytes;
  for (size_t i = 0; i < token.size();) {
    UChar32 codePoint = 0;
    U8_NEXT(token.data(), i, token.size(), codePoint);
    if (codePoint < 0 ||
        static_cast<size_t>(codePoint) >= alphabet.bytes.size() ||
        alphabet.bytes[codePoint] < 0)
      return std::nullopt;
    bytes += static_cast<char>(alphabet.bytes[codePoint]);
  }
  return bytes;
}
