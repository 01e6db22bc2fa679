//===- ArtifactWriter.h - Artifacts of per-rank IR --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry point for embedders: what tp-compile does, as a function.
//
//===----------------------------------------------------------------------===//

#ifndef TP_TARGET_ARTIFACT_ARTIFACTWRITER_H
#define TP_TARGET_ARTIFACT_ARTIFACTWRITER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

namespace mlir::tp {

/// What compileToArtifact writes.
enum class Emit {
  Artifact, ///< the container of docs/Artifact.md
  MLIR,     ///< the LLVM dialect, as text
  LLVM,     ///< optimized LLVM IR, as text
  Object,   ///< an ELF relocatable object
  Manifest, ///< the artifact's manifest alone
  PTX,      ///< the kernels for one CUDA architecture, as text
};

struct CompileOptions {
  /// CPU names that LLVM knows, or "native", separated by commas. The artifact
  /// has code for each; a machine runs the last one that it supports.
  std::string targetCPU = "native";
  /// The device that holds data and runs kernels: empty for the CPU itself, or
  /// "cuda:" and architectures, as in "cuda:sm_80,sm_90". With a device the
  /// artifact has code for one CPU; if `targetCPU` is "native", that is the
  /// baseline of the host's architecture. "cuda:emulated" is a device that the
  /// runtime's tests emulate.
  std::string target;
  /// 0 to 3, as for clang.
  unsigned optLevel = 3;
  Emit emit = Emit::Artifact;
  /// Called on the pass manager before it runs.
  std::function<LogicalResult(PassManager &)> configure;
  /// Called with a warning if an optional tool is missing.
  std::function<void(const llvm::Twine &)> warn = [](const llvm::Twine &) {};
};

/// A program of an artifact: nn and tp ops over one rank's shapes.
struct ArtifactProgram {
  std::string name; ///< that users choose it by
  ModuleOp module;
};

/// Compiles `programs`, at least one, and appends the result to `output`. What
/// isn't an artifact or a manifest is of one program. The programs have one
/// mesh, distinct names and inputs, and the same blocks and initial values of the
/// parameters that they share. The modules belong to one context, which needs
/// registerCodeGeneration, and are lowered in place. Diagnostics go to the
/// context's handler; the error only says which step failed, or how two programs
/// don't fit together.
llvm::Error compileToArtifact(ArrayRef<ArtifactProgram> programs,
                              const CompileOptions &options,
                              llvm::raw_ostream &output);

} // namespace mlir::tp

#endif // TP_TARGET_ARTIFACT_ARTIFACTWRITER_H
