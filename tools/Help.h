//===- Help.h - The text of --help ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_TOOLS_HELP_H
#define TP_TOOLS_HELP_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"

/// Leaves only --help, --version and the options of `own` in --help. Those of
/// LLVM and MLIR that are registered by now are in --help-hidden, where
/// cl::HideUnrelatedOptions would drop them, too.
inline void hideOtherOptions(const llvm::cl::OptionCategory &own) {
  for (auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (option->getOptionHiddenFlag() == llvm::cl::NotHidden &&
        llvm::none_of(option->Categories,
                      [&](const llvm::cl::OptionCategory *category) {
                        return category == &own ||
                               category->getName() == "Generic Options";
                      }))
      option->setHiddenFlag(llvm::cl::Hidden);
}

#endif // TP_TOOLS_HELP_H
