//===- Generator.h - Text from a causal language model ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   tprt::Session session(tprt::Artifact::load("model.tpx"), weights);
//   tprt::Generator generator(session);
//   tprt::Generation result = generator.generate({{1, 15043, 29892}});
//
// A program generates if it takes `length` tokens of each of `batch` sequences
// and keeps what it has computed of earlier ones in parameters that it updates,
// the cache. An artifact has such a program of length 1, and may have longer
// ones, which read prompts. Their tensors are those of tp_generation.py and of
// transformers' TorchExportableModuleWithStaticCache:
//
//   input_ids       i64, batch x length
//   cache_position  i64, length: where in the cache the tokens are
//   position_ids    i64, batch x length; optional: their positions in the
//                   sequence
//   attention_mask  a bool, an integer or a float, batch x size of the cache;
//                   optional: 1 for the tokens that may be seen, else 0
//   logits_to_keep  i64, 1; optional: the token whose logits the program gives,
//                   counted from the first that it takes
//   the output      f32, f16 or bf16, batch x length x vocabulary, or batch x
//                   vocabulary: of the last token alone; with logits_to_keep
//                   batch x 1 x vocabulary
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_GENERATOR_H
#define TPRT_GENERATOR_H

#include "tprt/Session.h"

#include <functional>
#include <span>

namespace tprt {

/// How programs call their tensors, and what can't be told from them.
struct GeneratorOptions {
  std::string ids = "input_ids";
  std::string cachePositions = "cache_position";
  std::string positionIds = "position_ids";
  std::string mask = "attention_mask";
  std::string index = "logits_to_keep";
  std::string logits = "logits"; ///< matters with several outputs
  /// How the last parts of the names begin of updated parameters that have a
  /// place for each token, in dimension 2 of four, which cache positions name;
  /// and of those that a program sets before it reads them. Only if there are
  /// no others may tokens be read that don't belong to the text.
  std::vector<std::string> caches = {"key_cache_", "value_cache_"};
  std::vector<std::string> counters = {"cumulative_length_"};
  /// The number of tokens of each sequence that the cache holds, at most as
  /// many as `caches` have places. If 0, it is the mask's; or else the largest
  /// dimension 2 of `caches`; or else that of the updated parameters of four
  /// dimensions, as those of transformers' caches (batch, heads, tokens, size).
  int64_t cacheSize = 0;
  /// Token ids are less than this. If 0, it is the size of the logits.
  int64_t vocabularySize = 0;
};

/// How the next token is chosen. As in transformers, the temperature applies
/// first, then topK, then topP.
struct SamplingOptions {
  /// What logits are divided by. 0: the most likely token is chosen, of several
  /// the one with the lowest id.
  double temperature = 0;
  /// Only tokens that are as likely as the topK-th most likely one; 0: all.
  int64_t topK = 0;
  /// Only the most likely tokens, until their probabilities add up to this; at
  /// least one; 1: all.
  double topP = 1;
  /// The same seed gives the same tokens, on any number of ranks, as far as the
  /// logits are the same.
  uint64_t seed = 0;
};

struct GenerationOptions {
  int64_t maxNewTokens = 64; ///< of each sequence
  SamplingOptions sampling;
  /// Tokens that end a sequence.
  std::vector<int64_t> endTokens;
  /// Called with each new token of all sequences; those that have ended repeat
  /// their last token. If it returns false, generation ends: in a job of
  /// several processes with the next token.
  std::function<bool(std::span<const int64_t> tokens)> onTokens;
};

struct Generation {
  /// [sequence]: the new tokens, including the one that ends it.
  std::vector<std::vector<int64_t>> tokens;
  /// From the call until the first token of each sequence is chosen.
  double prefillSeconds = 0;
  /// For each token after the first.
  std::vector<double> tokenSeconds;
  bool wasStopped = false; ///< by onTokens
};

/// Generates with the programs of a session, which must outlive it. Nothing
/// else runs in the session meanwhile. If other processes host ranks, all of
/// them make the same calls, and get the same tokens.
class TPRT_API Generator {
public:
  /// Finds the programs that generate. Throws an input error that says for each
  /// program why it doesn't, or what is missing: a program of length 1, or the
  /// size of the cache.
  explicit Generator(Session &session, const GeneratorOptions &options = {});
  ~Generator();
  Generator(const Generator &) = delete;
  Generator &operator=(const Generator &) = delete;

  int64_t getBatchSize() const;
  int64_t getCacheSize() const;
  int64_t getVocabularySize() const;

  /// Resets the session's state, reads a prompt for each sequence of the batch,
  /// and continues them.
  ///
  /// A prompt is read by the smallest program that it fits into, padded at its
  /// end, which is right because the padding is overwritten before anything
  /// sees it. A longer prompt is read in parts. What would be padded is read
  /// token by token where that doesn't hold: if the state is more than a cache
  /// with a place for each token, or at the end of the cache. Prompts of
  /// different lengths are padded at the beginning; this needs the mask and the
  /// position ids.
  ///
  /// Throws an input error if the prompts don't fit the batch, the cache or the
  /// vocabulary, or an option makes no sense; an execution error when a rank
  /// fails, or if logits are NaN, infinite or all -infinite.
  Generation generate(const std::vector<std::vector<int64_t>> &prompts,
                      const GenerationOptions &options = {});

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// The number of tokens that the programs of an artifact know. Throws like the
/// constructor of Generator.
TPRT_API int64_t getVocabularySize(const Manifest &manifest,
                                   const GeneratorOptions &options = {});

/// Throws what a Generator of these programs would throw because of its
/// arguments, before weights are read.
TPRT_API void checkGeneration(const Manifest &manifest,
                              const GeneratorOptions &names,
                              const std::vector<std::vector<int64_t>> &prompts,
                              const GenerationOptions &options);

} // namespace tprt

#endif // TPRT_GENERATOR_H
