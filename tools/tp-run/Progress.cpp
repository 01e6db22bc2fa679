//===- Progress.cpp - One line about a training, on a terminal -----------===//

#include "Progress.h"

#include <cstdio>
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

Progress::Progress(int64_t steps, std::optional<int64_t> tokensPerExample)
    : steps(steps), unitsPerExample(tokensPerExample.value_or(1)),
      unit(tokensPerExample ? "tokens" : "examples"),
      isTerminal(::isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (isShown)
    std::fputc('\n', stderr);
}

void Progress::show(const StepReport &report) {
  if (!isTerminal)
    return;
  secondsPerStep = secondsPerStep == 0
                       ? report.seconds
                       : 0.9 * secondsPerStep + 0.1 * report.seconds;
  Clock::time_point now = Clock::now();
  if (isShown && now - last < std::chrono::milliseconds(100) &&
      report.step < steps)
    return;
  last = now;
  isShown = true;
  double rate = report.numExamples * unitsPerExample / secondsPerStep;
  std::fprintf(stderr, "\rstep %lld/%lld  loss %.4g  %.4g %s/s  %s left\x1b[K",
               static_cast<long long>(report.step),
               static_cast<long long>(steps), report.loss, rate, unit,
               formatDuration((steps - report.step) * secondsPerStep).c_str());
  std::fflush(stderr);
}
