//===- MetricsFuzzer.cpp - Any text as the metrics of a training ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FuzzFile.h"

#include "tprt/Metrics.h"
#include "tprt/TrainingPage.h"

using namespace tprt;
using namespace tprt::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // Not a file in memory: an open file isn't continued.
  static const std::string path = makeDirectory() + "/metrics.jsonl";
  writeFile(path, asText(data, size));
  readOrRefuse([&] {
    MetricsFile metrics(path, /*step=*/5);
    LossHistory losses;
    TrainingPage page("page.html", "name", /*steps=*/5);
    for (const StepReport &report : metrics.getHistory()) {
      losses.emplace_back(report.step, report.loss);
      page.add(report);
    }
    touch(drawLossCurve(losses, "title").data(), 1);
    touch(page.getText(TrainingState::Running).data(), 1);
  });
  return 0;
}
