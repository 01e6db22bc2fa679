//===- TPMLIR.cpp - The compiler for programs in C ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp-c/TPMLIR.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "tp/Advice/Passes.h"
#include "tp/CodeGen/Pipeline/CodeGenPipeline.h"
#include "tp/Pipelines/Pipelines.h"
#include "tp/Support/InputFile.h"
#include "tp/Support/OutputFile.h"
#include "tp/Target/Artifact/ArtifactWriter.h"
#include "tp/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

static DialectRegistry makeRegistry() {
  // Passes are registered once per process.
  static const bool registered = [] {
    registerAllPasses();
    tp::registerPassesAndPipelines();
    return true;
  }();
  (void)registered;
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  tp::registerDialects(registry);
  tp::registerCodeGeneration(registry);
  return registry;
}

static std::string getText(Location loc) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto file = loc->findInstanceOf<FileLineColLoc>())
    os << file.getFilename().getValue() << ':' << file.getLine() << ':'
       << file.getColumn();
  else
    os << loc;
  return text;
}

static char *copyString(StringRef text) {
  char *copy = static_cast<char *>(llvm::safe_malloc(text.size() + 1));
  llvm::copy(text, copy);
  copy[text.size()] = '\0';
  return copy;
}

struct TpContext {
  TpContext() : context(makeRegistry()) {
    // Otherwise an error about a function would print all of it.
    context.printOpOnDiagnostic(false);
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      tell(diagnostic);
      return success();
    });
  }

  void tell(Diagnostic &diagnostic) {
    bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
    tellOne(diagnostic, isError);
    for (Diagnostic &note : diagnostic.getNotes())
      tellOne(note, isError);
  }

  void tellOne(Diagnostic &diagnostic, bool ofError) {
    struct Kind {
      TpSeverity severity;
      const char *word;
    };
    Kind kind = [&]() -> Kind {
      switch (diagnostic.getSeverity()) {
      case DiagnosticSeverity::Note:
        return {TP_SEVERITY_NOTE, "note"};
      case DiagnosticSeverity::Warning:
        return {TP_SEVERITY_WARNING, "warning"};
      case DiagnosticSeverity::Error:
        return {TP_SEVERITY_ERROR, "error"};
      case DiagnosticSeverity::Remark:
        return {TP_SEVERITY_REMARK, "remark"};
      }
      llvm_unreachable("all severities are listed");
    }();
    std::string location = getText(diagnostic.getLocation());
    std::string message = diagnostic.str();
    if (ofError)
      errors += location + ": " + kind.word + ": " + message + "\n";
    if (handler)
      handler(kind.severity, location.c_str(), message.c_str(), userData);
  }

  /// Reports an error that has no location in a module.
  void fail(const llvm::Twine &message) {
    emitError(UnknownLoc::get(&context)) << message;
  }

  MLIRContext context;
  TpDiagnosticHandler handler = nullptr;
  void *userData = nullptr;
  std::string errors;
};

struct TpModule {
  TpContext &owner;
  OwningOpRef<ModuleOp> module;
};

static TpModule *parse(TpContext *context,
                       std::unique_ptr<llvm::MemoryBuffer> buffer) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, &context->context);
  return module ? new TpModule{*context, std::move(module)} : nullptr;
}

static bool runPipeline(TpModule *module, StringRef pipeline) {
  TpContext &owner = module->owner;
  PassManager pm(&owner.context);
  std::string message;
  llvm::raw_string_ostream os(message);
  FailureOr<OpPassManager> passes = parsePassPipeline(pipeline, os);
  if (failed(passes)) {
    owner.fail("in the pipeline '" + pipeline +
               "': " + StringRef(message).trim());
    return false;
  }
  if (passes->getOpAnchorName() != ModuleOp::getOperationName()) {
    owner.fail("the pipeline '" + pipeline + "' is one of '" +
               passes->getOpAnchorName() + "', not of 'builtin.module'");
    return false;
  }
  static_cast<OpPassManager &>(pm) = std::move(*passes);
  return succeeded(pm.run(*module->module));
}

const char *tpVersion(void) { return TP_MLIR_VERSION; }

void tpStringFree(char *string) { free(string); }

TpContext *tpContextCreate(void) { return new TpContext(); }

void tpContextDestroy(TpContext *context) { delete context; }

void tpContextSetDiagnosticHandler(TpContext *context,
                                   TpDiagnosticHandler handler,
                                   void *userData) {
  context->handler = handler;
  context->userData = userData;
}

const char *tpContextGetErrors(const TpContext *context) {
  return context->errors.c_str();
}

TpModule *tpModuleParse(TpContext *context, const char *source, size_t size,
                        const char *name) {
  context->errors.clear();
  return parse(context, llvm::MemoryBuffer::getMemBufferCopy(
                            StringRef(source, size), name));
}

TpModule *tpModuleParseFile(TpContext *context, const char *path) {
  context->errors.clear();
  auto file = tp::readInput(path);
  if (!file) {
    context->fail("cannot open input file '" + std::string(path) +
                  "': " + llvm::toString(file.takeError()));
    return nullptr;
  }
  return parse(context, std::move(*file));
}

void tpModuleDestroy(TpModule *module) { delete module; }

char *tpModulePrint(const TpModule *module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  ModuleOp op = module->module.get();
  op.print(os);
  os << '\n';
  return copyString(text);
}

bool tpModuleParallelize(TpModule *module, const char *options) {
  module->owner.errors.clear();
  return runPipeline(module, "builtin.module(tp-parallelize{" +
                                 std::string(options ? options : "") + "})");
}

bool tpModuleRunPipeline(TpModule *module, const char *pipeline) {
  module->owner.errors.clear();
  return runPipeline(module, pipeline);
}

char *tpModuleReport(TpModule *module) {
  module->owner.errors.clear();
  std::string report;
  PassManager pm(&module->owner.context);
  pm.addPass(tp::createReport(report));
  if (failed(pm.run(*module->module)))
    return nullptr;
  return copyString(report);
}

bool tpModuleCompile(TpModule *module, const char *cpu, unsigned optLevel,
                     const char *path) {
  const char *name = "main";
  return tpModulesCompile(&module, &name, 1, cpu, optLevel, path);
}

bool tpModulesCompile(TpModule *const *modules, const char *const *names,
                      size_t count, const char *cpu, unsigned optLevel,
                      const char *path) {
  TpContext &owner = modules[0]->owner;
  owner.errors.clear();
  if (optLevel > 3) {
    owner.fail("the optimization level is 0 to 3, not " +
               llvm::Twine(optLevel));
    return false;
  }
  tp::CompileOptions options;
  options.targetCPU = cpu;
  options.optLevel = optLevel;
  std::vector<OwningOpRef<ModuleOp>> copies;
  std::vector<tp::ArtifactProgram> programs;
  for (size_t i = 0; i < count; ++i) {
    copies.emplace_back(modules[i]->module->clone());
    programs.push_back({names[i], *copies.back()});
  }
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  llvm::Error error = tp::compileToArtifact(programs, options, os);
  if (!error)
    error = tp::writeFile(path, bytes);
  if (!error)
    return true;
  owner.fail(llvm::toString(std::move(error)));
  return false;
}
