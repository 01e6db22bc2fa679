//===- Metrics.cpp - Metrics of a training, line by line ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Metrics.h"

#include "support/Json.h"
#include "tprt/File.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

using namespace tprt;
using json = nlohmann::ordered_json;

/// The step of a line; nullopt if the line has another format. Only its number
/// and its loss must be there.
static std::optional<StepReport> parseLine(std::string_view text) {
  try {
    auto line = parseJson<json>(text);
    auto getNumber = [](const json &value) {
      return value.is_number() ? value.get<double>() : NAN;
    };
    auto find = [&](const char *key) -> std::optional<double> {
      auto found = line.find(key);
      return found == line.end() ? std::nullopt
                                 : std::optional(getNumber(*found));
    };
    StepReport report{.step = getInteger(line.at("step")),
                      .loss = getNumber(line.at("loss")),
                      .learningRate = find("lr"),
                      .gradNorm = find("grad_norm"),
                      .seconds = find("seconds").value_or(NAN)};
    double numExamples =
        find("examples_per_second").value_or(NAN) * report.seconds;
    if (std::abs(numExamples) < 1e15)
      report.numExamples = std::llround(numExamples);
    if (report.step > 0)
      return report;
  } catch (const Error &) {
  } catch (const json::exception &) {
  }
  return std::nullopt;
}

/// The number of bytes before the first line of a step after `step`, and the
/// steps of these lines. Text after the last newline is ignored: its writer
/// was killed. Throws an input error if the file has lines of another format.
static off_t findEnd(const std::string &path, int64_t step,
                     std::vector<StepReport> &history) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  std::string_view text(reinterpret_cast<const char *>(file->getBytes().data()),
                        file->getBytes().size());
  auto refuse = [&](int64_t number) {
    throw inputError("'" + path + "':" + std::to_string(number) +
                     ": this line isn't one of a training's metrics, so the "
                     "file isn't continued: give another one");
  };
  size_t begin = 0, kept = 0;
  bool isKept = true;
  int64_t number = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string_view::npos;) {
    ++number;
    std::optional<StepReport> report =
        parseLine(text.substr(begin, end - begin));
    if (!report)
      refuse(number);
    begin = end + 1;
    isKept = isKept && report->step <= step;
    if (!isKept)
      continue;
    history.push_back(*report);
    kept = begin;
  }
  if (begin < text.size() && !text.substr(begin).starts_with("{"))
    refuse(number + 1);
  return kept;
}

MetricsFile::MetricsFile(std::string path, int64_t step)
    : path(std::move(path)) {
  // Others may also write to an open file. Through a copy of its descriptor,
  // lines are written after theirs.
  if (std::optional<int> open = findOpenFile(this->path)) {
    descriptor = ::fcntl(*open, F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0)
      throw writeError(this->path, errno);
    return;
  }
  off_t size = 0;
  if (step > 0 && std::filesystem::is_regular_file(this->path))
    size = findEnd(this->path, step, history);
  descriptor = openToWrite(this->path, O_CREAT | O_APPEND, this->path);
  if (std::filesystem::is_regular_file(this->path) &&
      ::ftruncate(descriptor, size) != 0) {
    int error = errno;
    ::close(descriptor);
    errno = error;
    throw writeError(this->path, errno);
  }
}

MetricsFile::~MetricsFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

void MetricsFile::write(const StepReport &report,
                        std::optional<int64_t> tokensPerExample) {
  json line = {{"step", report.step}, {"loss", toJsonNumber(report.loss)}};
  if (report.learningRate)
    line["lr"] = toJsonNumber(*report.learningRate);
  if (report.gradNorm)
    line["grad_norm"] = toJsonNumber(*report.gradNorm);
  double rate = report.numExamples / report.seconds;
  line["seconds"] = report.seconds;
  line["examples_per_second"] = toJsonNumber(rate);
  if (tokensPerExample)
    line["tokens_per_second"] = toJsonNumber(rate * *tokensPerExample);
  std::string text = line.dump() + "\n";
  // Usually one call, so that a line is written either completely or not at
  // all.
  for (std::string_view rest = text; !rest.empty();) {
    ssize_t written = ::write(descriptor, rest.data(), rest.size());
    if (written < 0 && errno != EINTR)
      throw writeError(path, errno);
    rest.remove_prefix(std::max<ssize_t>(written, 0));
  }
}
