//===- TrainingPage.h - The curves of a training as a page ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_TRAININGPAGE_H
#define TPRT_TRAININGPAGE_H

#include "tprt/Training.h"

#include <chrono>

namespace tprt {

/// How a training stands.
enum class TrainingState { Running, Done, Interrupted, Failed };

/// An HTML file with the curves of a training: loss, learning rate, gradient
/// norm, and tokens or examples per second, by step. It loads nothing, and is
/// replaced as a whole while the training runs, so that a reader never gets a
/// part of it. However many steps there are, it has at most maxPoints points:
/// then each is the mean of several steps.
class TPRT_API TrainingPage {
public:
  /// The page of the training `name`, which ends with step `steps`. With
  /// `tokensPerExample`, speeds are in tokens per second.
  TrainingPage(std::string path, std::string name, int64_t steps,
               std::optional<int64_t> tokensPerExample = {});

  /// Throws an input error if what `path` names can't be replaced: the standard
  /// output or another open file, a FIFO, a device.
  static void checkPath(const std::string &path);

  /// Adds a step. Steps are added in ascending order.
  void add(const StepReport &report);
  /// Writes the file if the last time was at least a second ago, and so long
  /// ago that writing takes at most about 2 % of the time. Throws an input
  /// error if it can't be written; the file then stays as it was.
  void update();
  /// Writes the file. `problem` says why the training has failed. Throws as
  /// update() does.
  void write(TrainingState state, const std::string &problem = "");

  /// The page as text.
  std::string getText(TrainingState state,
                      const std::string &problem = "") const;

  static constexpr size_t maxPoints = 512;

private:
  /// Sums over successive steps.
  struct Point {
    int64_t step = 0, numSteps = 0; ///< `step`: the last one
    double loss = 0, seconds = 0, numExamples = 0;
    std::optional<double> learningRate, gradNorm;

    void add(const Point &next);
  };

  std::string path, name;
  int64_t steps;
  std::optional<int64_t> tokensPerExample;
  int64_t stepsPerPoint = 1;
  std::vector<Point> points; ///< all but the last are of stepsPerPoint steps
  std::optional<std::chrono::steady_clock::time_point> nextWrite;
};

} // namespace tprt

#endif // TPRT_TRAININGPAGE_H
