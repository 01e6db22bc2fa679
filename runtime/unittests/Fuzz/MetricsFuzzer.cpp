//===- MetricsFuzzer.cpp - any text as the metrics of a training ----------===//

#include "FuzzFile.h"

#include "tprt/Metrics.h"

using namespace tprt;
using namespace tprt::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MemoryFile file(asText(data, size));
  readOrRefuse([&] {
    MetricsFile metrics(file.getPath(), /*step=*/5);
    touch(drawLossCurve(metrics.getHistory(), "title").data(), 1);
  });
  return 0;
}
