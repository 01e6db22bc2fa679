//===- tp-lsp-server.cpp - The language server for editors ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Help.h"
#include "../ResourceLimits.h"
#include "../Version.h"
#include "DataFileServer.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "tp/Pipelines/Pipelines.h"

int main(int argc, char **argv) {
  reportResourceLimits("tp-lsp-server");
  setVersion("tp-lsp-server");
  // MLIR's server reads its own options, so this one reads its few by itself.
  llvm::ArrayRef<char *> arguments(argv, argc);
  auto has = [&](llvm::StringRef option) {
    return llvm::is_contained(arguments.drop_front(), option);
  };
  if (has("--yaml")) {
    bool isTest = has("--lit-test");
    return serveDataFiles(isTest ? llvm::lsp::JSONStreamStyle::Delimited
                                 : llvm::lsp::JSONStreamStyle::Standard,
                          isTest);
  }
  static llvm::cl::OptionCategory category("tp-lsp-server options");
  static llvm::cl::opt<bool> yaml(
      "yaml",
      llvm::cl::desc("Serve plans, training files and machines (YAML "
                     "or JSON) instead of MLIR"),
      llvm::cl::cat(category));
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::tp::registerDialects(registry);
  // MLIR's server registers the others.
  hideOtherOptions(category);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
