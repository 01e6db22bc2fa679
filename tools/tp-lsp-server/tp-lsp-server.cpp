//===- tp-lsp-server.cpp - The language server for editors ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Help.h"
#include "../ResourceLimits.h"
#include "../Version.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "tp/Pipelines/Pipelines.h"

int main(int argc, char **argv) {
  reportResourceLimits("tp-lsp-server");
  setVersion("tp-lsp-server");
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::tp::registerDialects(registry);
  // The server's own options are registered later.
  hideOtherOptions(llvm::cl::OptionCategory("tp-lsp-server options"));
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
