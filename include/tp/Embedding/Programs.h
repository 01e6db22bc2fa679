//===- Programs.h - The compiler in another program's process ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the C library and the Python package have in common: modules from
// memory, pipelines by name, reports and artifacts. All errors are diagnostics
// of the module's context. No function ends the process.
//
//===----------------------------------------------------------------------===//

#ifndef TP_EMBEDDING_PROGRAMS_H
#define TP_EMBEDDING_PROGRAMS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tp/Target/Artifact/ArtifactWriter.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::tp {

/// Registers the project's passes and MLIR's own general ones, once per
/// process, and adds the dialects that the project's passes and code generation
/// need.
void registerForEmbedding(DialectRegistry &registry);

/// Parses and verifies MLIR text or bytecode, whose name in diagnostics is the
/// buffer's. Null on failure.
OwningOpRef<ModuleOp> parseProgram(std::unique_ptr<llvm::MemoryBuffer> source,
                                   MLIRContext &context);

/// Runs passes, as in "builtin.module(tp-propagate,tp-partition)". If one
/// fails, the module is in an unspecified state.
LogicalResult runPipeline(ModuleOp module, StringRef pipeline);

/// The report of a per-rank program as JSON (docs/Report.md).
FailureOr<std::string> getReport(ModuleOp module);

/// The page that shows a report in JSON, and what else is in JSON: `details`, by
/// the names of kPageDetails (tp/Advice/Page/ReportPage.h). Empty texts are left
/// out.
llvm::Expected<std::string>
getReportPage(StringRef report, const llvm::StringMap<std::string> &details);

/// Compiles copies of `programs`, at least one, in the first one's context, and
/// writes the artifact to the file `path`, either all of it or nothing. Warnings
/// are diagnostics, too.
LogicalResult compileToFile(ArrayRef<ArtifactProgram> programs,
                            CompileOptions options, StringRef path);

/// "file:line:column", or the location as MLIR prints it if it is in no file.
std::string toString(Location location);

} // namespace mlir::tp

#endif // TP_EMBEDDING_PROGRAMS_H
