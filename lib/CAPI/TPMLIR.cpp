//===- TPMLIR.cpp - The compiler for programs in C ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp-c/TPMLIR.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "tp/Embedding/Programs.h"
#include "tp/Support/InputFile.h"

using namespace mlir;

static DialectRegistry makeRegistry() {
  static const bool registered = [] {
    registerAllPasses();
    return true;
  }();
  (void)registered;
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  tp::registerForEmbedding(registry);
  return registry;
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
    std::string location = tp::toString(diagnostic.getLocation());
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
  OwningOpRef<ModuleOp> module =
      tp::parseProgram(std::move(buffer), context->context);
  return module ? new TpModule{*context, std::move(module)} : nullptr;
}

static bool runPipeline(TpModule *module, StringRef pipeline) {
  return succeeded(tp::runPipeline(*module->module, pipeline));
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
  FailureOr<std::string> report = tp::getReport(*module->module);
  return succeeded(report) ? copyString(*report) : nullptr;
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
  tp::CompileOptions options;
  options.targetCPU = cpu;
  options.optLevel = optLevel;
  std::vector<tp::ArtifactProgram> programs;
  for (size_t i = 0; i < count; ++i)
    programs.push_back({names[i], *modules[i]->module});
  return succeeded(tp::compileToFile(programs, options, path));
}
