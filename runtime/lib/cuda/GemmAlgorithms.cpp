//===- GemmAlgorithms.cpp - Choice of cuBLASLt's algorithms ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/GemmAlgorithms.h"

#include "cpu/GemmChoiceFile.h"
#include "cuda/Blas.h"

#include <cmath>

using namespace tprt;
using namespace tprt::cuda;
using nlohmann::json;

/// An algorithm must gain at least this over the first one. A smaller gain may
/// be noise.
static constexpr double leastGain = 0.02;

/// The part of the time that one product may take.
static constexpr double partOfProduct = 1.0 / 6;

GemmAlgorithms::GemmAlgorithms(const GemmOptions &options, bool mayMeasure,
                               const Context &context)
    : options(options), mayMeasure(mayMeasure),
      device(context.getModel() + ", sm_" +
             std::to_string(context.getArchitecture())) {}

GemmAlgorithms::~GemmAlgorithms() = default;

void GemmAlgorithms::load() {
  auto parse = [&](const json &object) {
    GemmUse use;
    use.form = object.at("form");
    use.algorithm = getInteger(object.at("algorithm"));
    use.numAlgorithms = getInteger(object.at("algorithms"));
    if (use.algorithm < 0 || use.algorithm >= use.numAlgorithms)
      throw inputError("'algorithm' is " + std::to_string(use.algorithm) +
                       ", of " + std::to_string(use.numAlgorithms));
    use.seconds = object.value("seconds", 0.0);
    use.firstSeconds = object.value("first_seconds", 0.0);
    known[use.form] = use;
  };
  json conditions = {{"device", device},
                     {"libraries", {{"cublaslt", Blas::get().getVersion()}}}};
  file = std::make_unique<GemmChoiceFile>(options.file, std::move(conditions),
                                          parse);
  note = file->getNote();
  if (!file->isUsable())
    known.clear();
}

void GemmAlgorithms::addNote(const std::string &text) {
  std::string all = text + "; products without a stored choice use cuBLASLt's "
                           "first algorithm";
  if (note.find(all) == std::string::npos)
    note += (note.empty() ? "" : "; ") + all;
}

void GemmAlgorithms::choose(GemmUse &use, const Measure &measure) {
  // Held while another stream measures: its time would be disturbed, and the
  // product may be the same.
  std::lock_guard<std::mutex> lock(mutex);
  if (options.file.empty() || use.numAlgorithms < 2)
    return;
  if (!file)
    load();
  auto found = known.find(use.form);
  if (found == known.end() ||
      found->second.numAlgorithms != use.numAlgorithms) {
    if (!measure)
      return;
    if (std::string why = file->findObstacle(mayMeasure); !why.empty())
      return addNote(why);
    if (options.maxSeconds <= 0)
      return addNote("no time is given for measuring");
    GemmUse choice = use;
    if (spentSeconds < options.maxSeconds) {
      auto [seconds, spent] =
          measure(std::min(partOfProduct * options.maxSeconds,
                           options.maxSeconds - spentSeconds));
      spentSeconds += spent;
      auto best = std::min_element(seconds.begin(), seconds.end());
      if (best == seconds.end() || std::isinf(*best))
        return addNote("a product couldn't be measured");
      if (*best < (1 - leastGain) * seconds.front())
        choice.algorithm = best - seconds.begin();
      choice.seconds = seconds[choice.algorithm];
      choice.firstSeconds = std::isinf(seconds.front()) ? 0 : seconds.front();
    }
    found = known.insert_or_assign(use.form, choice).first;
    hasNew = true;
  }
  use.algorithm = found->second.algorithm;
  use.seconds = found->second.seconds;
  use.firstSeconds = found->second.firstSeconds;
}

void GemmAlgorithms::keep() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!hasNew)
    return;
  hasNew = false;
  json choices = json::array();
  for (const auto &[form, use] : known) {
    json choice = {{"form", form},
                   {"algorithm", use.algorithm},
                   {"algorithms", use.numAlgorithms}};
    if (use.seconds > 0)
      choice["seconds"] = use.seconds;
    if (use.firstSeconds > 0)
      choice["first_seconds"] = use.firstSeconds;
    choices.push_back(std::move(choice));
  }
  try {
    file->write(std::move(choices));
  } catch (const Error &error) {
    addNote(error.what());
  }
}

std::string GemmAlgorithms::getNote() {
  std::lock_guard<std::mutex> lock(mutex);
  return note;
}
