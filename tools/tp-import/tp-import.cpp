//===- tp-import.cpp - PyTorch models to MLIR -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ImportTool.h"

int main(int argc, char **argv) { return runImportTool(argc, argv); }
