//===- Version.h - Text of --version ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_VERSION_H
#define TP_TOOLS_VERSION_H

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

/// Makes --version of the tool `name` print the versions of tp-mlir and of the
/// LLVM that it is built with.
inline void setVersion(std::string name) {
  llvm::cl::SetVersionPrinter([name = std::move(name)](llvm::raw_ostream &os) {
    os << name << " (tp-mlir " TP_MLIR_VERSION ", LLVM " LLVM_VERSION_STRING
       << ")\n";
  });
}

#endif // TP_TOOLS_VERSION_H
