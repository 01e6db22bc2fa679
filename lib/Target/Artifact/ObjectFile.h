//===- ObjectFile.h - Machine code of LLVM IR -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TARGET_ARTIFACT_OBJECTFILE_H
#define TP_LIB_TARGET_ARTIFACT_OBJECTFILE_H

#include "llvm/ADT/SmallString.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace mlir::tp {

/// The machine to compile for; `cpu` is a name that LLVM knows, or "native".
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(llvm::StringRef cpu, unsigned optLevel);

/// The machine of another triple.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const llvm::Triple &triple, llvm::StringRef cpu,
                    llvm::StringRef features, unsigned optLevel);

/// The features that code for `machine` may use, as "+name".
llvm::SmallVector<std::string>
getNeededFeatures(const llvm::TargetMachine &machine);

/// Sets the module up for `machine` and runs LLVM's optimiser over it.
void optimize(llvm::Module &module, llvm::TargetMachine &machine,
              unsigned optLevel);

/// Machine code, or assembly.
llvm::Expected<llvm::SmallString<0>> emitFile(llvm::Module &module,
                                              llvm::TargetMachine &machine,
                                              llvm::CodeGenFileType type);

/// An ELF relocatable object.
llvm::Expected<llvm::SmallString<0>> emitObject(llvm::Module &module,
                                                llvm::TargetMachine &machine);

/// An ELF shared object: runs lld over `objects`.
llvm::Expected<std::string>
linkSharedObject(llvm::ArrayRef<llvm::SmallString<0>> objects);

llvm::Error writeTemporary(llvm::StringRef path, llvm::StringRef bytes);
llvm::Expected<std::string> readFile(llvm::StringRef path);

} // namespace mlir::tp

#endif // TP_LIB_TARGET_ARTIFACT_OBJECTFILE_H
