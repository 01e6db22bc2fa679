//===- Progress.cpp - One line about a training, on a terminal ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Progress.h"

#include <cstdio>
#include <iostream>
#include <unistd.h>

using namespace tprt;

std::string formatDuration(double seconds) {
  auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600)
    return std::to_string(whole / 3600) + " h " +
           std::to_string(whole % 3600 / 60) + " min";
  if (whole >= 60)
    return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) +
           " s";
  char text[32];
  std::snprintf(text, sizeof(text), seconds < 9.95 ? "%.1f s" : "%.0f s",
                seconds);
  return text;
}

Progress::Progress(int64_t steps, std::optional<int64_t> tokensPerExample,
                   int64_t logEvery, std::ostream &logStream)
    : steps(steps), unitsPerExample(tokensPerExample.value_or(1)),
      unit(tokensPerExample ? "tokens" : "examples"), logEvery(logEvery),
      logStream(logStream), isTerminal(::isatty(STDERR_FILENO)),
      logsByTime(logEvery == 0 && !isTerminal && !::isatty(STDOUT_FILENO)) {}

Progress::~Progress() {
  if (isShown)
    std::fputc('\n', stderr);
}

std::string Progress::describe(const StepReport &report) const {
  double rate = report.numExamples * unitsPerExample / secondsPerStep;
  char text[128];
  std::snprintf(text, sizeof(text), "step %lld/%lld  loss %.4g  %.4g %s/s  %s",
                static_cast<long long>(report.step),
                static_cast<long long>(steps), report.loss, rate, unit,
                formatDuration((steps - report.step) * secondsPerStep).c_str());
  return std::string(text) + " left";
}

void Progress::log(const StepReport &report) {
  Clock::time_point now = Clock::now();
  if (logEvery > 0 ? report.step % logEvery != 0
                   : !logsByTime || now - lastLog < std::chrono::seconds(10))
    return;
  lastLog = now;
  logStream << describe(report) << std::endl;
}

void Progress::show(const StepReport &report) {
  secondsPerStep = secondsPerStep == 0
                       ? report.seconds
                       : 0.9 * secondsPerStep + 0.1 * report.seconds;
  log(report);
  if (!isTerminal)
    return;
  Clock::time_point now = Clock::now();
  if (isShown && now - last < std::chrono::milliseconds(100) &&
      report.step < steps)
    return;
  last = now;
  isShown = true;
  std::fprintf(stderr, "\r%s\x1b[K", describe(report).c_str());
  std::fflush(stderr);
}
