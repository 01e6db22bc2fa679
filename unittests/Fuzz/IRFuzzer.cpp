//===- IRFuzzer.cpp - Any text as a mesh and shardings --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text stands where a program has its meshes, shardings and the ops that
// use them. What parses verifies or is refused, and prints as something that
// parses again.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/TP.h"

using namespace mlir;
using namespace mlir::tp;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<func::FuncDialect, nn::NNDialect, TPDialect>();
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &) {});
  // The parser reads up to a null character behind the text.
  std::string text(reinterpret_cast<const char *>(data), size);
  OwningOpRef<ModuleOp> program = parseSourceString<ModuleOp>(text, &context);
  if (!program)
    return 0;
  std::string printed;
  llvm::raw_string_ostream(printed) << *program;
  if (!parseSourceString<ModuleOp>(printed, &context))
    abort();
  return 0;
}
