//===- Sampling.cpp - The choice of a token from split logits -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "generate/Sampling.h"

#include "generate/Philox.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numbers>

using namespace tprt;

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

uint32_t GumbelNumbers::draw(int64_t token) {
  if (block != token / 4) {
    block = token / 4;
    words = philox(
        {static_cast<uint32_t>(block), static_cast<uint32_t>(sequence),
         static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)},
        {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  }
  return words[token % 4];
}

double GumbelNumbers::get(int64_t token) {
  return -std::log(-std::log((draw(token) + 0.5) * 0x1p-32));
}

double GumbelNumbers::getBound(int64_t token) {
  // With u = 1 - v: -log(-log(u)) <= -log(v), and v has as many leading zeros.
  return (std::countl_zero(~draw(token)) + 1) * std::numbers::ln2;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

namespace {

/// A token that a rank offers, of one sequence. Of two, the one with the larger
/// score is better, or else the one with the lower id.
struct Candidate {
  int64_t sequence, token;
  double score; ///< the logit, or with the temperature and a Gumbel number

  bool isBetterThan(const Candidate &other) const {
    return score > other.score || (score == other.score && token < other.token);
  }
};

/// The sum of 2^x over a sequence's tokens, by the integer part of x. Sums of
/// integers don't depend on their order.
struct Masses {
  static constexpr int64_t numBins = 64;
  static constexpr double unit = 0x1p-32;
  int64_t sequence;
  double top; ///< the integer part of the largest x
  /// Of 2^(x - floor(x)), in units, for the integer parts top, top - 1, …
  uint64_t bins[numBins];

  /// The sum of 2^(x - top) over the tokens of a bin.
  double getMass(int64_t bin) const {
    return std::ldexp(bins[bin] * unit, static_cast<int>(-bin));
  }
  double getMass() const {
    double mass = 0;
    for (int64_t bin = 0; bin < numBins; ++bin)
      mass += getMass(bin);
    return mass;
  }
};

} // namespace

size_t tprt::getMaxExchangedBytes(int64_t numSequences,
                                  int64_t vocabularySize) {
  return numSequences * (sizeof(Masses) + vocabularySize * sizeof(Candidate));
}

template <typename T>
static std::string pack(const std::vector<T> &items) {
  return {reinterpret_cast<const char *>(items.data()),
          items.size() * sizeof(T)};
}

template <typename T>
static std::vector<T> unpack(const std::vector<std::string> &all,
                             int64_t numSequences) {
  std::vector<T> items;
  for (const std::string &text : all)
    for (size_t at = 0; at + sizeof(T) <= text.size(); at += sizeof(T))
      std::memcpy(&items.emplace_back(), text.data() + at, sizeof(T));
  for (const T &item : items)
    if (item.sequence < 0 || item.sequence >= numSequences)
      throw executionError("a rank sends candidates of another batch");
  return items;
}

//===----------------------------------------------------------------------===//
// What a rank offers
//===----------------------------------------------------------------------===//

namespace {

/// Chooses the tokens of one step.
class Chooser {
public:
  Chooser(const std::vector<LogitsPart> &parts, int64_t numSequences,
          int64_t vocabularySize, int64_t step, const SamplingOptions &options,
          const Exchange &exchange)
      : parts(parts), numSequences(numSequences),
        vocabularySize(vocabularySize), step(step), options(options),
        exchange(exchange) {}

  std::vector<int64_t> choose();

private:
  bool isGreedy() const { return options.temperature == 0; }
  /// The logit of a token as an exponent of 2.
  double getExponent(double logit) const {
    return logit / options.temperature * std::numbers::log2e;
  }
  void checkLogits() const;
  std::vector<Candidate> findBest();
  std::vector<Candidate> findTopK() const;
  std::vector<Masses> sumMasses() const;
  std::vector<Masses> joinMasses(const std::vector<Masses> &ofRanks) const;
  std::vector<Candidate> findNucleus(const std::vector<Masses> &masses) const;
  void keepTopK(std::vector<Candidate> &sorted) const;
  void keepNucleus(std::vector<Candidate> &sorted, const Masses *masses) const;
  int64_t draw(const std::vector<Candidate> &kept, int64_t sequence) const;

  const std::vector<LogitsPart> &parts;
  const int64_t numSequences, vocabularySize, step;
  const SamplingOptions &options;
  const Exchange &exchange;
};

} // namespace

void Chooser::checkLogits() const {
  for (const LogitsPart &part : parts) {
    // Neither NaN nor +inf is less than infinity. This loop vectorizes.
    bool isFine = true;
    for (float logit : part.logits)
      isFine &= logit < INFINITY;
    if (isFine)
      continue;
    auto wrong = std::find_if(part.logits.begin(), part.logits.end(),
                              [](float logit) { return !(logit < INFINITY); });
    throw executionError(
        "the logit of token " +
        std::to_string(part.firstToken + (wrong - part.logits.begin())) +
        " is " + (std::isnan(*wrong) ? "NaN" : "infinite") + ", for token " +
        std::to_string(step) + " of sequence " + std::to_string(part.sequence));
  }
}

/// This rank's best token of each sequence.
std::vector<Candidate> Chooser::findBest() {
  std::vector<Candidate> found;
  for (const LogitsPart &part : parts) {
    Candidate best{part.sequence, -1, -INFINITY};
    GumbelNumbers numbers(options.seed, part.sequence, step);
    int64_t token = part.firstToken;
    for (float logit : part.logits) {
      double score = logit;
      if (!isGreedy()) {
        score /= options.temperature;
        score = score + numbers.getBound(token) < best.score
                    ? -INFINITY
                    : score + numbers.get(token);
      }
      if (score > best.score)
        best = {part.sequence, token, score};
      ++token;
    }
    if (best.token >= 0)
      found.push_back(best);
  }
  return found;
}

/// This rank's tokens with a logit that is at least its topK-th largest one.
std::vector<Candidate> Chooser::findTopK() const {
  std::vector<Candidate> found;
  std::vector<float> largest;
  for (const LogitsPart &part : parts) {
    size_t k = std::min<size_t>(options.topK, part.logits.size());
    if (k == 0)
      continue;
    // A heap, the least one first: few of the others are larger.
    largest.assign(part.logits.begin(), part.logits.begin() + k);
    std::make_heap(largest.begin(), largest.end(), std::greater<>());
    for (float logit : part.logits.subspan(k))
      if (logit > largest.front()) {
        std::pop_heap(largest.begin(), largest.end(), std::greater<>());
        largest.back() = logit;
        std::push_heap(largest.begin(), largest.end(), std::greater<>());
      }
    for (size_t i = 0; i < part.logits.size(); ++i)
      if (float logit = part.logits[i];
          logit >= largest.front() && logit > -INFINITY)
        found.push_back(
            {part.sequence, part.firstToken + static_cast<int64_t>(i), logit});
  }
  return found;
}

std::vector<Masses> Chooser::sumMasses() const {
  std::vector<Masses> found;
  for (const LogitsPart &part : parts) {
    float largest = -INFINITY;
    for (float logit : part.logits)
      largest = std::max(largest, logit);
    if (largest == -INFINITY)
      continue;
    Masses masses{part.sequence, std::floor(getExponent(largest)), {}};
    for (float logit : part.logits) {
      double exponent = getExponent(logit), whole = std::floor(exponent);
      if (double bin = masses.top - whole; bin < Masses::numBins)
        masses.bins[static_cast<int64_t>(bin)] +=
            static_cast<uint64_t>(std::exp2(exponent - whole) / Masses::unit);
    }
    found.push_back(masses);
  }
  return found;
}

//===----------------------------------------------------------------------===//
// What all ranks make of it
//===----------------------------------------------------------------------===//

/// By sequence.
std::vector<Masses>
Chooser::joinMasses(const std::vector<Masses> &ofRanks) const {
  std::vector<Masses> all(numSequences);
  for (int64_t sequence = 0; sequence < numSequences; ++sequence) {
    all[sequence] = {sequence, -INFINITY, {}};
    for (const Masses &each : ofRanks)
      if (each.sequence == sequence)
        all[sequence].top = std::max(all[sequence].top, each.top);
  }
  for (const Masses &each : ofRanks) {
    Masses &sum = all[each.sequence];
    for (int64_t i = 0; i < Masses::numBins; ++i)
      if (double bin = sum.top - each.top + i; bin < Masses::numBins)
        sum.bins[static_cast<int64_t>(bin)] += each.bins[i];
  }
  return all;
}

/// This rank's tokens in the bins of which a part is in the nucleus.
std::vector<Candidate>
Chooser::findNucleus(const std::vector<Masses> &masses) const {
  std::vector<Candidate> found;
  for (const LogitsPart &part : parts) {
    const Masses &all = masses[part.sequence];
    double wanted = options.topP * all.getMass();
    int64_t bin = 0;
    for (double mass = all.getMass(0);
         mass < wanted && bin + 1 < Masses::numBins; mass += all.getMass(bin))
      ++bin;
    double lowest = all.top - bin;
    for (size_t i = 0; i < part.logits.size(); ++i)
      if (float logit = part.logits[i];
          getExponent(logit) >= lowest && logit > -INFINITY)
        found.push_back(
            {part.sequence, part.firstToken + static_cast<int64_t>(i), logit});
  }
  return found;
}

void Chooser::keepTopK(std::vector<Candidate> &sorted) const {
  if (options.topK == 0 || static_cast<int64_t>(sorted.size()) <= options.topK)
    return;
  double least = sorted[options.topK - 1].score;
  sorted.erase(std::find_if(sorted.begin(), sorted.end(),
                            [&](const Candidate &candidate) {
                              return candidate.score < least;
                            }),
               sorted.end());
}

/// Keeps the tokens before which less than topP of the mass is: of all tokens
/// if `masses` are given, else of those that are left.
void Chooser::keepNucleus(std::vector<Candidate> &sorted,
                          const Masses *masses) const {
  if (options.topP == 1)
    return;
  double top =
      masses ? masses->top : std::floor(getExponent(sorted.front().score));
  auto getOwnMass = [&](const Candidate &candidate) {
    return std::exp2(getExponent(candidate.score) - top);
  };
  double total = 0;
  if (masses)
    total = masses->getMass();
  else
    for (const Candidate &candidate : sorted)
      total += getOwnMass(candidate);
  double before = 0;
  size_t count = 0;
  while (count < sorted.size() && (count == 0 || before < options.topP * total))
    before += getOwnMass(sorted[count++]);
  sorted.resize(count);
}

int64_t Chooser::draw(const std::vector<Candidate> &kept,
                      int64_t sequence) const {
  GumbelNumbers numbers(options.seed, sequence, step);
  Candidate best = {sequence, -1, -INFINITY};
  for (const Candidate &candidate : kept) {
    Candidate drawn = candidate;
    drawn.score = drawn.score / options.temperature + numbers.get(drawn.token);
    if (best.token < 0 || drawn.isBetterThan(best))
      best = drawn;
  }
  return best.token;
}

std::vector<int64_t> Chooser::choose() {
  checkLogits();
  bool hasLimit = !isGreedy() && (options.topK > 0 || options.topP < 1);
  std::vector<Masses> masses;
  std::vector<Candidate> mine;
  if (!hasLimit) {
    mine = findBest();
  } else if (options.topK > 0) {
    mine = findTopK();
  } else {
    masses =
        joinMasses(unpack<Masses>(exchange(pack(sumMasses())), numSequences));
    mine = findNucleus(masses);
  }
  std::vector<std::vector<Candidate>> candidates(numSequences);
  for (const Candidate &candidate :
       unpack<Candidate>(exchange(pack(mine)), numSequences)) {
    if (candidate.token < 0 || candidate.token >= vocabularySize)
      throw executionError("a rank sends candidates of another vocabulary");
    candidates[candidate.sequence].push_back(candidate);
  }

  std::vector<int64_t> tokens;
  for (int64_t sequence = 0; sequence < numSequences; ++sequence) {
    std::vector<Candidate> &sorted = candidates[sequence];
    if (sorted.empty())
      throw executionError("all logits are -infinite, for token " +
                           std::to_string(step) + " of sequence " +
                           std::to_string(sequence));
    std::sort(sorted.begin(), sorted.end(),
              [](const Candidate &a, const Candidate &b) {
                return a.isBetterThan(b);
              });
    if (!hasLimit) {
      tokens.push_back(sorted.front().token);
      continue;
    }
    keepTopK(sorted);
    keepNucleus(sorted, masses.empty() ? nullptr : &masses[sequence]);
    tokens.push_back(draw(sorted, sequence));
  }
  return tokens;
}

std::vector<int64_t> tprt::chooseTokens(const std::vector<LogitsPart> &parts,
                                        int64_t numSequences,
                                        int64_t vocabularySize, int64_t step,
                                        const SamplingOptions &options,
                                        const Exchange &exchange) {
  return Chooser(parts, numSequences, vocabularySize, step, options, exchange)
      .choose();
}

static std::string format(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", number);
  return text;
}

void tprt::checkSampling(const SamplingOptions &options) {
  constexpr double least = 1e-6; // logits stay finite
  if (options.temperature != 0 &&
      !(options.temperature >= least && std::isfinite(options.temperature)))
    throw inputError("found a temperature of " + format(options.temperature) +
                     ", expected 0, for the most likely token, or at least " +
                     format(least));
  if (options.topK < 0)
    throw inputError("found a top-k of " + std::to_string(options.topK) +
                     ", expected 0, for all tokens, or more");
  if (!(options.topP > 0 && options.topP <= 1))
    throw inputError("found a top-p of " + format(options.topP) +
                     ", expected a number in (0, 1]");
  if (options.temperature == 0 && (options.topK > 0 || options.topP < 1))
    throw inputError("top-k and top-p are for sampling, which needs a "
                     "temperature above 0");
}
