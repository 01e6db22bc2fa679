//===- SymbolicSize.cpp - Sizes in the symbols of a model -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/SymbolicSize.h"

#include <cctype>
#include <charconv>

using namespace tprt;

/// Takes a number of digits from the front of `text`.
static std::optional<int64_t> takeNumber(std::string_view &text) {
  int64_t number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0)
    return std::nullopt;
  text.remove_prefix(end - text.data());
  return number;
}

/// Takes a name of letters, digits and underscores that doesn't begin with a
/// digit; empty if there is none.
static std::string takeName(std::string_view &text) {
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])))
    return "";
  size_t end = 0;
  while (
      end < text.size() &&
      (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
    ++end;
  std::string name(text.substr(0, end));
  text.remove_prefix(end);
  return name;
}

static bool takeChar(std::string_view &text, char c) {
  if (!text.starts_with(c))
    return false;
  text.remove_prefix(1);
  return true;
}

SymbolicSize SymbolicSize::parse(std::string text) {
  SymbolicSize other, size;
  other.text = size.text = std::move(text);
  size.isLinear = true;
  std::string_view rest = size.text;
  if (std::optional<int64_t> number = takeNumber(rest)) {
    if (rest.empty()) {
      size.offset = *number;
      return size;
    }
    size.factor = *number;
    if (!takeChar(rest, '*'))
      return other;
  } else {
    size.factor = 1;
  }
  size.symbol = takeName(rest);
  if (size.symbol.empty() || size.factor == 0)
    return other;
  if (rest.empty())
    return size;
  bool isNegative = takeChar(rest, '-');
  if (!isNegative && !takeChar(rest, '+'))
    return other;
  std::optional<int64_t> offset = takeNumber(rest);
  if (!offset || !rest.empty())
    return other;
  size.offset = isNegative ? -*offset : *offset;
  return size;
}

std::optional<int64_t> SymbolicSize::evaluate(int64_t symbolValue) const {
  int64_t result = 0;
  if (!isLinear || __builtin_mul_overflow(factor, symbolValue, &result) ||
      __builtin_add_overflow(result, offset, &result) || result < 0)
    return std::nullopt;
  return result;
}

std::optional<int64_t> SymbolicSize::solve(int64_t size) const {
  int64_t multiple = 0;
  if (!isLinear || symbol.empty() ||
      __builtin_sub_overflow(size, offset, &multiple) || multiple < 0 ||
      multiple % factor != 0)
    return std::nullopt;
  return multiple / factor;
}
