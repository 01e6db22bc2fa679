//===- ObjectFile.h - LLVM IR to machine code -------------------*- C++ -*-===//

#ifndef TP_LIB_CONVERSION_ARTIFACT_OBJECTFILE_H
#define TP_LIB_CONVERSION_ARTIFACT_OBJECTFILE_H

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace mlir::tp {

/// The machine to compile for; `cpu` is a name that LLVM knows, or "native".
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(llvm::StringRef cpu, unsigned optLevel);

/// The features that code for `machine` may use, as "+name".
llvm::SmallVector<std::string>
getNeededFeatures(const llvm::TargetMachine &machine);

/// Sets the module up for `machine` and runs LLVM's optimiser over it.
void optimize(llvm::Module &module, llvm::TargetMachine &machine,
              unsigned optLevel);

/// An ELF relocatable object.
llvm::Expected<llvm::SmallString<0>> emitObject(llvm::Module &module,
                                                llvm::TargetMachine &machine);

/// An ELF shared object: runs lld over `objects`.
llvm::Expected<std::string>
linkSharedObject(llvm::ArrayRef<llvm::SmallString<0>> objects);

} // namespace mlir::tp

#endif // TP_LIB_CONVERSION_ARTIFACT_OBJECTFILE_H
