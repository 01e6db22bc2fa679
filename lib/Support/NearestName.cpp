//===- NearestName.cpp - The name that was probably meant -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Support/NearestName.h"

using namespace mlir;
using namespace mlir::tp;

StringRef tp::findNearest(StringRef name, ArrayRef<StringRef> candidates) {
  StringRef nearest;
  // At most two letters, or a third of them, may differ; a worse guess is
  // noise.
  unsigned limit = name.size() < 3 ? 1 : std::max<unsigned>(2, name.size() / 3);
  unsigned best = limit + 1;
  for (StringRef candidate : candidates) {
    unsigned distance = candidate.equals_insensitive(name)
                            ? 0
                            : name.edit_distance(candidate, true, best);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string tp::suggestNearest(StringRef name, ArrayRef<StringRef> candidates) {
  StringRef nearest = findNearest(name, candidates);
  return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
}
