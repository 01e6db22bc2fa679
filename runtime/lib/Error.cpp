//===- Error.cpp - Texts that diagnostics share --------------------------===//

#include "tprt/Error.h"

#include <algorithm>
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
  std::string best;
  size_t bestDistance = (name.size() + 2) / 3 + 1;
  for (const std::string &candidate : known) {
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
