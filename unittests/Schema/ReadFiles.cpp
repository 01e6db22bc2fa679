//===- ReadFiles.cpp - What the readers of files say ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads lines "KIND PATH" from the standard input, and the files by the readers
// of their kinds. Prints one line for each: a JSON list of the errors. A plan is
// read without a model, up to the arguments of its styles.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "tp/Plan/PlanFile.h"
#include "tp/Plan/Style.h"
#include "tp/Sharding/Cost/MachineModel.h"
#include "tp/Training/TrainingFile.h"
#include "llvm/Support/FormatVariadic.h"
#include <iostream>

using namespace mlir;
using namespace mlir::tp;

static void readPlan(StringRef path, MLIRContext *context) {
  plan::PlanFile file;
  (void)plan::readPlan(path, context, file);
  (void)plan::checkStyles(file, context);
}

int main() {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<nn::NNDialect, TPDialect>();
  std::string kind, path;
  while (std::cin >> kind && std::getline(std::cin >> std::ws, path)) {
    llvm::json::Array errors;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        errors.push_back(diagnostic.str());
    });
    if (kind == "plan")
      readPlan(path, &context);
    else if (kind == "training")
      (void)readTrainingFile(path, &context);
    else if (kind == "machine")
      (void)readMachine(path, &context);
    else
      return 2;
    llvm::outs() << llvm::formatv("{0}", llvm::json::Value(std::move(errors)))
                 << "\n";
  }
  return 0;
}
