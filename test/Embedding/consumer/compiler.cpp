// compiler MODEL.mlir PLAN.yaml: prints one rank's program.
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Pipelines/Pipelines.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

int main(int argc, char **argv) {
  if (argc != 3) {
    llvm::errs() << "usage: compiler MODEL.mlir PLAN.yaml\n";
    return 2;
  }

  DialectRegistry registry;
  tp::registerDialects(registry);
  MLIRContext context(registry);

  unsigned numErrors = 0;
  context.printOpOnDiagnostic(false);
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      ++numErrors;
    llvm::errs() << diagnostic.getLocation() << ": " << diagnostic << '\n';
    for (Diagnostic &note : diagnostic.getNotes())
      llvm::errs() << "  " << note.getLocation() << ": " << note << '\n';
    return success();
  });

  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(argv[1], &context);
  if (!module)
    return 1;
  tp::ParallelizeOptions options;
  options.plan = argv[2];
  PassManager pm(&context);
  tp::buildParallelizePipeline(pm, options);
  if (failed(pm.run(*module))) {
    llvm::errs() << numErrors << " error(s), nothing compiled\n";
    return 1;
  }
  module->print(llvm::outs());
  return 0;
}
