//===- ArtifactManifest.h - The manifest of an artifact ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_TARGET_ARTIFACT_ARTIFACTMANIFEST_H
#define TP_LIB_TARGET_ARTIFACT_ARTIFACTMANIFEST_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace mlir::tp {

/// What an artifact has code for.
struct Targets {
  /// The device's; empty without a device.
  llvm::SmallVector<int32_t> architectures = {};
  /// The CPUs.
  llvm::SmallVector<std::unique_ptr<llvm::TargetMachine>> machines = {};
};

/// A program's name and its `tprt.manifest`.
struct ProgramManifest {
  std::string name;
  DictionaryAttr manifest;
};

/// The name of the function that the code of a program for a CPU exports.
std::string getEntryName(size_t program, size_t cpu, const Targets &targets);

/// The name of the constant with a program's code for the device.
std::string getDeviceCodeName(size_t program);

/// The manifest of docs/Artifact.md. The error says how two programs differ
/// where they must agree.
llvm::Expected<std::string> writeManifest(ArrayRef<ProgramManifest> programs,
                                          const Targets &targets);

} // namespace mlir::tp

#endif // TP_LIB_TARGET_ARTIFACT_ARTIFACTMANIFEST_H
