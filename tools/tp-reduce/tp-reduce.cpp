//===- tp-reduce.cpp - Shrinks a module that shows a fault ----------------===//

#include "../Version.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "tp/Pipelines/Pipelines.h"

int main(int argc, char **argv) {
  setVersion("tp-reduce");
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  mlir::tp::registerDialects(registry);
  mlir::tp::registerPassesAndPipelines();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
