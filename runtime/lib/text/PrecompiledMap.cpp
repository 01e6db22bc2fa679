//===- PrecompiledMap.cpp - SentencePiece's table of replacements ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/PrecompiledMap.h"

#include <algorithm>
#include <nettle/base64.h>

using namespace tprt;
using namespace tprt::text;

static std::string decodeBase64(const std::string &text) {
  std::string bytes(BASE64_DECODE_LENGTH(text.size()), 0);
  size_t size = bytes.size();
  base64_decode_ctx context;
  base64_decode_init(&context);
  if (!base64_decode_update(&context, &size,
                            reinterpret_cast<uint8_t *>(bytes.data()),
                            text.size(), text.data()) ||
      !base64_decode_final(&context))
    throw inputError("it isn't base64");
  bytes.resize(size);
  return bytes;
}

static uint32_t getNumber(std::string_view bytes) {
  uint32_t number = 0;
  for (size_t i = sizeof number; i-- > 0;)
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

PrecompiledMap::PrecompiledMap(const Component &component) {
  Component map = component["precompiled_charsmap"];
  try {
    std::string bytes = decodeBase64(map.getString());
    std::string_view rest = bytes;
    if (rest.size() < sizeof(uint32_t))
      throw inputError("it has " + std::to_string(rest.size()) +
                       " bytes, expected the size of a trie");
    size_t size = getNumber(rest);
    rest.remove_prefix(sizeof(uint32_t));
    if (size == 0 || size % sizeof(uint32_t) != 0 || size > rest.size())
      throw inputError("the trie has " + std::to_string(size) + " of " +
                       std::to_string(rest.size()) + " bytes");
    for (size_t i = 0; i < size; i += sizeof(uint32_t))
      trie.push_back(getNumber(rest.substr(i)));
    replacements = rest.substr(size);
    toUtf16(replacements); // throws if they aren't UTF-8
  } catch (const Error &error) {
    map.fail(error.what());
  }
}

/// The offset of the replacement of the shortest string that `key` begins with.
std::optional<size_t> PrecompiledMap::findOffset(std::string_view key) const {
  // A node's children are at the exclusive or of their bytes and of its base,
  // and its value is at its base.
  constexpr uint32_t isValue = uint32_t(1) << 31, hasValue = 1 << 8,
                     isFarOffset = 1 << 9;
  auto getBase = [&](size_t node) {
    uint32_t unit = trie[node];
    size_t offset = unit >> 10;
    return node ^ (unit & isFarOffset ? offset << 8 : offset);
  };
  size_t base = getBase(0);
  for (unsigned char byte : key) {
    size_t node = base ^ byte;
    if (byte == 0 || node >= trie.size() ||
        (trie[node] & (isValue | 0xFF)) != byte)
      return std::nullopt;
    base = getBase(node);
    if (trie[node] & hasValue)
      return base < trie.size() ? std::optional(trie[base] & ~isValue)
                                : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::u16string>
PrecompiledMap::find(std::u16string_view units) const {
  std::optional<size_t> offset = findOffset(toUtf8(units));
  // Offsets between the bytes of a code point are malformed.
  if (!offset || *offset > replacements.size() ||
      (*offset < replacements.size() && U8_IS_TRAIL(replacements[*offset])))
    return std::nullopt;
  size_t end = std::min(replacements.find('\0', *offset), replacements.size());
  return toUtf16({replacements.data() + *offset, end - *offset});
}

void PrecompiledMap::normalize(Text &text) const {
  constexpr size_t maxGraphemeBytes = 5;
  Text result;
  auto add = [&](std::u16string_view units, size_t begin, size_t end) {
    checkTextSize(result.units.size() + units.size());
    result.units += units;
    if (begin >= text.numInitial)
      return;
    result.numInitial += end <= text.numInitial
                             ? units.size()
                             : std::min(text.numInitial - begin, units.size());
  };
  forEachGrapheme(text.units, [&](size_t begin, size_t end) {
    std::u16string_view grapheme(text.units.data() + begin, end - begin);
    std::optional<std::u16string> replacement;
    if (toUtf8(grapheme).size() <= maxGraphemeBytes)
      replacement = find(grapheme);
    if (replacement)
      return add(*replacement, begin, end);
    forEachCodePoint(grapheme, [&](char32_t, size_t first, size_t last) {
      std::u16string_view part = grapheme.substr(first, last - first);
      add(find(part).value_or(std::u16string(part)), begin + first,
          begin + last);
    });
  });
  // What follows a text's deleted beginning counts as the beginning.
  if (text.numInitial > 0 && result.numInitial == 0 && !result.units.empty())
    result.numInitial = U16_IS_LEAD(result.units[0]) ? 2 : 1;
  text = std::move(result);
}
