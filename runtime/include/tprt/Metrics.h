//===- Metrics.h - Metrics of a training, line by line ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_METRICS_H
#define TPRT_METRICS_H

#include "tprt/Training.h"

namespace tprt {

/// Losses by step, ascending; not all finite.
using LossHistory = std::vector<std::pair<int64_t, double>>;

/// A file of JSON lines, one for each step. After each step the file is
/// complete:
///
///   {"step": 1, "loss": 2.5, "lr": 0.001, "grad_norm": 1.25,
///    "seconds": 0.5, "examples_per_second": 16.0}
///
/// lr and grad_norm are present if the program has these outputs, and
/// tokens_per_second if examples are windows of tokens. A number that isn't
/// finite is null.
class TPRT_API MetricsFile {
public:
  /// Starts a new file if `step` is 0. Otherwise continues the file after
  /// `step`, and removes the lines of later steps and an incomplete line that a
  /// killed process left. Throws an input error if the file can't be written,
  /// or if the file to be continued has another format.
  MetricsFile(std::string path, int64_t step);
  ~MetricsFile();
  MetricsFile(const MetricsFile &) = delete;
  MetricsFile &operator=(const MetricsFile &) = delete;

  void write(const StepReport &report,
             std::optional<int64_t> tokensPerExample = {});

  /// The steps of the lines that were kept.
  const std::vector<StepReport> &getHistory() const { return history; }

private:
  std::string path;
  int descriptor = -1;
  std::vector<StepReport> history;
};

/// A plot of the losses as self-contained SVG, with numbered axes, labels and a
/// title. If there are many steps, it shows means over ranges of steps. Losses
/// that aren't finite leave gaps.
TPRT_API std::string drawLossCurve(const LossHistory &losses,
                                   const std::string &title);

} // namespace tprt

#endif // TPRT_METRICS_H
