//===- Programs.cpp - The compiler in another program's process -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Embedding/Programs.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "tp/Advice/Page/ReportPage.h"
#include "tp/Advice/Passes.h"
#include "tp/CodeGen/Pipeline/CodeGenPipeline.h"
#include "tp/Pipelines/Pipelines.h"
#include "tp/Planning/Passes.h"
#include "tp/Support/OutputFile.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

void tp::registerForEmbedding(DialectRegistry &registry) {
  static const bool registered = [] {
    registerTransformsPasses();
    registerPassesAndPipelines();
    registerTPPlanningPasses();
    return true;
  }();
  (void)registered;
  registerDialects(registry);
  registerCodeGeneration(registry);
}

OwningOpRef<ModuleOp>
tp::parseProgram(std::unique_ptr<llvm::MemoryBuffer> source,
                 MLIRContext &context) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(source), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, &context);
}

/// Reports an error that has no location in a module.
static LogicalResult fail(MLIRContext *context, const Twine &message) {
  return emitError(UnknownLoc::get(context)) << message;
}

LogicalResult tp::runPipeline(ModuleOp module, StringRef pipeline) {
  PassManager pm(module.getContext());
  std::string message;
  llvm::raw_string_ostream os(message);
  FailureOr<OpPassManager> passes = parsePassPipeline(pipeline, os);
  if (failed(passes))
    return fail(module.getContext(), "in the pipeline '" + pipeline +
                                         "': " + StringRef(message).trim());
  if (passes->getOpAnchorName() != ModuleOp::getOperationName())
    return fail(module.getContext(),
                "the pipeline '" + pipeline + "' is one of '" +
                    passes->getOpAnchorName() + "', not of 'builtin.module'");
  static_cast<OpPassManager &>(pm) = std::move(*passes);
  return pm.run(module);
}

FailureOr<std::string> tp::getReport(ModuleOp module) {
  std::string report;
  PassManager pm(module.getContext());
  pm.addPass(createReport(report));
  if (failed(pm.run(module)))
    return failure();
  return report;
}

llvm::Expected<std::string>
tp::getReportPage(StringRef report, const llvm::StringMap<std::string> &texts) {
  llvm::Expected<llvm::json::Value> data = llvm::json::parse(report);
  if (!data)
    return data.takeError();
  PageDetails details;
  for (const PageDetail &detail : kPageDetails) {
    std::string text = texts.lookup(detail.name);
    if (text.empty())
      continue;
    auto parsed = detail.parse(text, *data);
    if (!parsed)
      return parsed.takeError();
    details.*detail.member = std::move(*parsed);
  }
  std::string page;
  llvm::raw_string_ostream os(page);
  printReportPage(*data, details, os);
  return page;
}

/// A copy of the module in `context`.
static OwningOpRef<ModuleOp> copyTo(MLIRContext *context, ModuleOp module) {
  if (module.getContext() == context)
    return module.clone();
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  if (failed(writeBytecodeToFile(module, os)))
    return nullptr;
  return tp::parseProgram(llvm::MemoryBuffer::getMemBufferCopy(bytes),
                          *context);
}

LogicalResult tp::compileToFile(ArrayRef<ArtifactProgram> programs,
                                CompileOptions options, StringRef path) {
  ModuleOp first = programs.front().module;
  MLIRContext *context = first.getContext();
  if (options.optLevel > 3)
    return fail(context, "the optimization level is 0 to 3, not " +
                             Twine(options.optLevel));
  options.warn = [&](const Twine &message) {
    emitWarning(UnknownLoc::get(context)) << message;
  };
  std::vector<OwningOpRef<ModuleOp>> copies;
  std::vector<ArtifactProgram> copied;
  for (const ArtifactProgram &program : programs) {
    copies.push_back(copyTo(context, program.module));
    if (!copies.back())
      return failure();
    copied.push_back({program.name, *copies.back()});
  }
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  llvm::Error error = compileToArtifact(copied, options, os);
  if (!error)
    error = writeFile(path, bytes);
  if (error)
    return fail(context, llvm::toString(std::move(error)));
  return success();
}

std::string tp::toString(Location location) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto file = location->findInstanceOf<FileLineColLoc>())
    os << file.getFilename().getValue() << ':' << file.getLine() << ':'
       << file.getColumn();
  else
    os << location;
  return text;
}
