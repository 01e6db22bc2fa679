//===- Error.cpp - Texts that diagnostics share ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Error.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

using namespace tprt;

/// Levenshtein distance with one row of memory.
static size_t editDistance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      size_t substitute = diagonal + (from[i] != to[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string tprt::nearestName(std::string_view name,
                              const std::vector<std::string> &known) {
  constexpr size_t maxSize = 256; // the time grows with the square
  std::string best;
  if (name.size() > maxSize)
    return best;
  size_t bestDistance = (name.size() + 2) / 3 + 1;
  for (const std::string &candidate : known) {
    if (candidate.size() > maxSize)
      continue;
    size_t distance = editDistance(name, candidate);
    if (distance < bestDistance) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string tprt::didYouMean(std::string_view name,
                             const std::vector<std::string> &known) {
  std::string nearest = nearestName(name, known);
  return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

std::string tprt::quotedList(const std::vector<std::string> &names,
                             size_t limit) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < limit; ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  if (names.size() > limit)
    text += " … (" + std::to_string(names.size() - limit) + " more)";
  return text;
}

/// Appends `text` without control characters that a terminal would interpret.
static void appendPrintable(std::string_view text, std::string &result) {
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = text[i];
    // In UTF-8 the control characters above 0x80 begin with C2.
    bool isControl = byte < 0x20 || byte == 0x7f;
    bool isHigh = byte == 0xc2 && i + 1 < text.size() &&
                  static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (!isControl && !isHigh) {
      result += text[i];
      continue;
    }
    for (size_t last = i + isHigh; i <= last; ++i) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\x%02x",
                    static_cast<unsigned char>(text[i]));
      result += code;
    }
    --i;
  }
}

std::string tprt::makePrintable(std::string_view text, size_t maxLine,
                                size_t maxLines) {
  std::string result;
  for (size_t number = 0;; ++number) {
    if (number == maxLines)
      return result + "… (" + std::to_string(text.size()) + " more bytes)";
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.size() <= maxLine) {
      appendPrintable(line, result);
    } else {
      size_t kept = maxLine / 2;
      auto isInside = [&](size_t at) { return (line[at] & 0xc0) == 0x80; };
      size_t begin = kept, rest = line.size() - kept;
      while (begin > 0 && isInside(begin))
        --begin;
      while (rest < line.size() && isInside(rest))
        ++rest;
      appendPrintable(line.substr(0, begin), result);
      result += " … (" + std::to_string(rest - begin) + " bytes) … ";
      appendPrintable(line.substr(rest), result);
    }
    if (end == std::string_view::npos)
      return result;
    result += '\n';
    text.remove_prefix(end + 1);
  }
}
