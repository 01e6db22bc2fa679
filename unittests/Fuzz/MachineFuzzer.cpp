//===- MachineFuzzer.cpp - Any text as the description of a machine -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "tp/Sharding/Cost/MachineModel.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::tp;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  bool reported = false;
  ScopedDiagnosticHandler handler(&context,
                                  [&](Diagnostic &) { reported = true; });
  StringRef text(reinterpret_cast<const char *>(data), size);
  FailureOr<Machine> machine = parseMachine(text, "machine.yaml", &context);
  if (failed(machine))
    return reported ? 0 : (abort(), 0);
  // What was read prints as what is read again.
  std::string printed;
  llvm::raw_string_ostream(printed) << toJSON(*machine);
  if (failed(parseMachine(printed, "printed.json", &context)))
    abort();
  return 0;
}
