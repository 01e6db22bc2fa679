//===- GenerationReport.cpp - Reports of generated text -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/GenerationReport.h"

#include "support/Json.h"
#include "tprt/Report.h"

#include <cstdio>
#include <numeric>

using namespace tprt;
using nlohmann::json;

using Prompts = std::vector<std::vector<int64_t>>;

/// Tokens of all sequences, per second after the first ones.
static double getTokensPerSecond(const Generation &generation) {
  const std::vector<double> &seconds = generation.tokenSeconds;
  double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  size_t count = 0;
  for (const std::vector<int64_t> &tokens : generation.tokens)
    count += tokens.size() - 1;
  return total > 0 ? count / total : 0;
}

static size_t countTokens(const Prompts &sequences) {
  size_t count = 0;
  for (const std::vector<int64_t> &sequence : sequences)
    count += sequence.size();
  return count;
}

std::string tprt::describe(const Generation &generation,
                           const Prompts &prompts) {
  char text[200];
  int size = std::snprintf(
      text, sizeof(text), "%zu prompt token%s and the first new one in %.4g ms",
      countTokens(prompts), countTokens(prompts) == 1 ? "" : "s",
      generation.prefillSeconds * 1e3);
  if (const std::vector<double> &seconds = generation.tokenSeconds;
      !seconds.empty())
    std::snprintf(text + size, sizeof(text) - size,
                  "; then %zu × %.4g ms (median), %.4g tokens/s",
                  seconds.size(), summarize(seconds).median * 1e3,
                  getTokensPerSecond(generation));
  return text;
}

std::string tprt::makeGenerationReport(const std::string &artifactPath,
                                       const Session &session,
                                       const Generator &generator,
                                       const Generation &generation,
                                       const Prompts &prompts,
                                       const std::vector<std::string> &texts) {
  const Manifest &manifest = session.getManifest();
  const std::vector<double> &seconds = generation.tokenSeconds;
  json ofTokens = {{"steps", seconds}};
  if (!seconds.empty()) {
    Timing timing = summarize(seconds);
    ofTokens["median"] = timing.median;
    ofTokens["min"] = timing.min;
    ofTokens["p90"] = timing.p90;
    ofTokens["p99"] = timing.p99;
    ofTokens["max"] = timing.max;
  }
  json report = {{"schema", 1},
                 {"tool", "tp-run " + std::string(getVersion())},
                 {"artifact", artifactPath},
                 {"backend", session.getBackend()},
                 {"device", manifest.isForCuda ? "cuda" : "cpu"},
                 {"world_size", manifest.worldSize},
                 {"cache_size", generator.getCacheSize()},
                 {"prompts", prompts},
                 {"tokens", generation.tokens},
                 {"prefill_seconds", generation.prefillSeconds},
                 {"token_seconds", std::move(ofTokens)},
                 {"tokens_per_second", getTokensPerSecond(generation)}};
  if (!texts.empty())
    report["texts"] = texts;
  return report.dump(2) + "\n";
}
