//===- GeneratingPrograms.h - The programs that generate --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_GENERATE_GENERATINGPROGRAMS_H
#define TPRT_LIB_GENERATE_GENERATINGPROGRAMS_H

#include "tprt/Generator.h"

namespace tprt {

/// A program that takes `length` tokens of each sequence.
struct GeneratingProgram {
  const Program *program;
  int64_t length;
  size_t logits; ///< index of the output
  /// Logits are those of all tokens; or of one that an input says; or else of
  /// the last.
  bool hasEveryToken, takesIndex;
};

/// The programs of an artifact that generate.
struct GeneratingPrograms {
  std::vector<GeneratingProgram> programs; ///< by length, from 1 on
  int64_t batchSize, cacheSize, vocabularySize;
  /// What the cache's size follows from, for messages.
  std::string cacheSource;
  bool hasPositionIds;
  std::optional<Dtype> mask; ///< its type; nullopt if there is none
  /// Whether tokens may be read that don't belong to the text, and that are
  /// overwritten later: the state has a place for each.
  bool canPad;
};

/// Throws like the constructor of Generator.
GeneratingPrograms findGeneratingPrograms(const Manifest &manifest,
                                          const GeneratorOptions &options);

} // namespace tprt

#endif // TPRT_LIB_GENERATE_GENERATINGPROGRAMS_H
