//===- TPPlugin.cpp - The project as a plugin of mlir-opt -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "tp/Pipelines/Pipelines.h"
#include "tp/Planning/Passes.h"
#include "llvm/Support/Compiler.h"

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "TPMLIR", TP_MLIR_VERSION,
          [](mlir::DialectRegistry *registry) {
            mlir::tp::registerDialects(*registry);
          }};
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "TPMLIR", TP_MLIR_VERSION, [] {
            mlir::tp::registerPassesAndPipelines();
            mlir::tp::registerTPPlanningPasses();
          }};
}
