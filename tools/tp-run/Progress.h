//===- Progress.h - One line about a training, on a terminal ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_TP_RUN_PROGRESS_H
#define TP_TOOLS_TP_RUN_PROGRESS_H

#include "tprt/Training.h"

/// "step 120/1000 loss 2.3142 512 examples/s 1 min 40 s left", rewritten in
/// place on stderr if that is a terminal; and log lines, each of them flushed.
class Progress {
public:
  /// If `tokensPerExample` is given, the speed is in tokens instead of
  /// examples. A line is logged every `logEvery` steps. If that is 0, a line is
  /// logged every ten seconds, but only if neither stream is a terminal.
  Progress(int64_t steps, std::optional<int64_t> tokensPerExample,
           int64_t logEvery, std::ostream &logStream);
  /// Ends the line.
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void show(const tprt::StepReport &report);

private:
  std::string describe(const tprt::StepReport &report) const;
  void log(const tprt::StepReport &report);

  using Clock = std::chrono::steady_clock;

  const int64_t steps;
  const int64_t unitsPerExample;
  const char *const unit;
  const int64_t logEvery;
  std::ostream &logStream;
  const bool isTerminal;
  const bool logsByTime;
  double secondsPerStep = 0; ///< running mean
  Clock::time_point last;    ///< when the line was written; long ago at first
  Clock::time_point lastLog = Clock::now();
  bool isShown = false;
};

/// "1 h 5 min", "1 min 40 s", "12 s".
std::string formatDuration(double seconds);

#endif // TP_TOOLS_TP_RUN_PROGRESS_H
