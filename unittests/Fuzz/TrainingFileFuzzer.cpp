//===- TrainingFileFuzzer.cpp - Any text as a training file ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "tp/Training/TrainingFile.h"
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::tp;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int file = ::memfd_create("train.yaml", MFD_CLOEXEC);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size))
    abort();
  MLIRContext context(MLIRContext::Threading::DISABLED);
  bool reported = false;
  ScopedDiagnosticHandler handler(&context,
                                  [&](Diagnostic &) { reported = true; });
  bool isRead = succeeded(
      readTrainingFile("/proc/self/fd/" + std::to_string(file), &context));
  ::close(file);
  // An error is always reported.
  if (!isRead && !reported)
    abort();
  return 0;
}
