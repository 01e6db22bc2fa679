//===- TrainingPage.cpp - The curves of a training as a page --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/TrainingPage.h"

#include "support/Json.h"
#include "tprt/File.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

using namespace tprt;
using json = nlohmann::ordered_json;

/// The page, with a mark where the data go.
static constexpr std::string_view page =
#include "training.html.inc"
    ;

TrainingPage::TrainingPage(std::string path, std::string name, int64_t steps,
                           std::optional<int64_t> tokensPerExample)
    : path(std::move(path)), name(std::move(name)), steps(steps),
      tokensPerExample(tokensPerExample) {}

void TrainingPage::checkPath(const std::string &path) {
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(path, error);
  if (findOpenFile(path) || (std::filesystem::exists(status) &&
                             !std::filesystem::is_regular_file(status)))
    throw inputError("'" + path +
                     "' isn't a regular file, so it can't be replaced while "
                     "the training runs, as its page is; give another path");
}

static std::optional<double> add(std::optional<double> a,
                                 std::optional<double> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

void TrainingPage::Point::add(const Point &next) {
  step = next.step;
  numSteps += next.numSteps;
  numExamples += next.numExamples;
  loss += next.loss;
  seconds += next.seconds;
  learningRate = ::add(learningRate, next.learningRate);
  gradNorm = ::add(gradNorm, next.gradNorm);
}

void TrainingPage::add(const StepReport &report) {
  Point point{.step = report.step,
              .numSteps = 1,
              .loss = report.loss,
              .seconds = report.seconds,
              .numExamples = double(report.numExamples),
              .learningRate = report.learningRate,
              .gradNorm = report.gradNorm};
  if (!points.empty() && points.back().numSteps < stepsPerPoint) {
    points.back().add(point);
    return;
  }
  if (points.size() == maxPoints) {
    for (size_t i = 0; i < maxPoints / 2; ++i) {
      points[i] = points[2 * i];
      points[i].add(points[2 * i + 1]);
    }
    points.resize(maxPoints / 2);
    stepsPerPoint *= 2;
  }
  points.push_back(point);
}

static const char *getName(TrainingState state) {
  switch (state) {
  case TrainingState::Running:
    return "running";
  case TrainingState::Done:
    return "done";
  case TrainingState::Interrupted:
    return "interrupted";
  case TrainingState::Failed:
    return "failed";
  }
  return "";
}

/// JSON for a script element, which ends at the first "</script". In JSON, "<"
/// is only in strings, where an escape stands for it. Paths and messages may
/// have bytes that aren't UTF-8.
static std::string printInScript(const json &value) {
  std::string text;
  for (char c : value.dump(-1, ' ', /*ensure_ascii=*/false,
                           json::error_handler_t::replace))
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  return text;
}

std::string TrainingPage::getText(TrainingState state,
                                  const std::string &problem) const {
  // The members of `points` are lists of the same length: a number for each
  // point, or null where there is no finite one. lr and grad_norm are present if
  // a step has them.
  json columns = {{"step", json::array()}};
  for (const Point &point : points)
    columns["step"].push_back(point.step);
  auto addColumn = [&](const char *key, auto get) {
    json &column = columns[key] = json::array();
    for (const Point &point : points)
      column.push_back(toJsonNumber(get(point)));
  };
  auto addMeans = [&](const char *key, std::optional<double> Point::*sum) {
    if (std::ranges::any_of(points, [&](const Point &point) {
          return (point.*sum).has_value();
        }))
      addColumn(key, [&](const Point &point) {
        return (point.*sum).value_or(NAN) / point.numSteps;
      });
  };
  addColumn("loss",
            [](const Point &point) { return point.loss / point.numSteps; });
  addMeans("lr", &Point::learningRate);
  addMeans("grad_norm", &Point::gradNorm);
  addColumn("rate", [&](const Point &point) {
    return point.numExamples * tokensPerExample.value_or(1) / point.seconds;
  });
  using namespace std::chrono;
  json data = {
      {"name", name},
      {"state", getName(state)},
      {"step", points.empty() ? 0 : points.back().step},
      {"steps", steps},
      {"unit", tokensPerExample ? "tokens" : "examples"},
      {"written",
       duration_cast<seconds>(system_clock::now().time_since_epoch()).count()},
      {"steps_per_point", stepsPerPoint},
      {"points", std::move(columns)}};
  if (!problem.empty())
    data["problem"] = problem;

  constexpr std::string_view mark = "@TRAINING@";
  constexpr size_t place = page.find(mark);
  static_assert(place != page.npos);
  std::string text(page.substr(0, place));
  text += printInScript(data);
  text += page.substr(place + mark.size());
  return text;
}

void TrainingPage::write(TrainingState state, const std::string &problem) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point before = Clock::now();
  OutputFile file(path);
  file.write(getText(state, problem));
  file.commit();
  Clock::time_point now = Clock::now();
  nextWrite = now + std::max<Clock::duration>(std::chrono::seconds(1),
                                              50 * (now - before));
}

void TrainingPage::update() {
  if (!nextWrite || std::chrono::steady_clock::now() >= *nextWrite)
    write(TrainingState::Running);
}
