//===- Sampling.h - The choice of a token from split logits -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each rank holds the logits of some tokens, and no rank sees all of them.
// Ranks exchange candidates: the tokens of each that may be chosen. Then all
// make the same choice.
//
// Random numbers belong to tokens, not to ranks: the choice is the token with
// the largest logit / temperature + g, where the numbers g are independent and
// of the Gumbel distribution. It has the probabilities of the softmax (Gumbel,
// 1954), of any subset of the tokens too. All sums are independent of the order
// of ranks. So the choice doesn't depend on how the vocabulary is split.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_GENERATE_SAMPLING_H
#define TPRT_LIB_GENERATE_SAMPLING_H

#include "tprt/Generator.h"

#include <array>

namespace tprt {

/// Some of a sequence's logits for the next token: those of the tokens from
/// `firstToken` on.
struct LogitsPart {
  int64_t sequence = 0, firstToken = 0;
  std::span<const float> logits;
};

/// Gives this rank's bytes to all ranks and returns those of all.
using Exchange =
    std::function<std::vector<std::string>(const std::string &mine)>;

/// The largest number of bytes that a rank gives to an Exchange for this many
/// sequences and tokens.
TPRT_API size_t getMaxExchangedBytes(int64_t numSequences,
                                     int64_t vocabularySize);

/// Chooses the token number `step` of each sequence. All ranks call it. Every
/// logit is in one part of one rank. Throws an execution error if logits are
/// NaN, infinite, or all -infinite for a sequence.
TPRT_API std::vector<int64_t> chooseTokens(const std::vector<LogitsPart> &parts,
                                           int64_t numSequences,
                                           int64_t vocabularySize, int64_t step,
                                           const SamplingOptions &options,
                                           const Exchange &exchange);

/// Throws an input error if an option makes no sense.
TPRT_API void checkSampling(const SamplingOptions &options);

/// A number of the standard Gumbel distribution for each token.
class TPRT_API GumbelNumbers {
public:
  GumbelNumbers(uint64_t seed, int64_t sequence, int64_t step)
      : seed(seed), sequence(sequence), step(step) {}

  double get(int64_t token);
  /// An upper bound of get(token), which costs less.
  double getBound(int64_t token);

private:
  uint32_t draw(int64_t token);

  const uint64_t seed;
  const int64_t sequence, step;
  int64_t block = -1; ///< the four tokens that `words` are for
  std::array<uint32_t, 4> words = {};
};

} // namespace tprt

#endif // TPRT_LIB_GENERATE_SAMPLING_H
