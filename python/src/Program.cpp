//===- Program.cpp - Programs in MLIR -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Program.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "tp/Pipelines/Pipelines.h"
#include "tp/Support/MemoryFiles.h"
#include "tp/Support/NearestName.h"
#include "llvm/ADT/StringExtras.h"
#include <deque>
#include <set>
#include <unistd.h>

using namespace mlir;
using namespace mlir::tp::python;

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  mlir::tp::registerForEmbedding(registry);
  return registry;
}

Context::Context() : context(makeRegistry()), process(getpid()) {
  // Otherwise an error about a function would print all of it.
  context.printOpOnDiagnostic(false);
}

std::shared_ptr<Context> Context::make() {
  return std::shared_ptr<Context>(new Context, [](Context *context) {
    // After a fork, the destructor would wait for threads that don't exist.
    if (context->process == getpid())
      delete context;
  });
}

Program::~Program() {
  if (context->process != getpid()) {
    (void)module.release();
    return;
  }
  std::lock_guard lock(context->mutex);
  module = nullptr;
}

std::unique_ptr<Program> Program::parse(std::string_view source,
                                        const std::string &name) {
  auto context = Context::make();
  MessageCollector collector(context->context);
  OwningOpRef<ModuleOp> module =
      mlir::tp::parseProgram(llvm::MemoryBuffer::getMemBufferCopy(
                                 StringRef(source.data(), source.size()), name),
                             context->context);
  if (!module)
    throw CompileError(collector.take());
  auto program = std::make_unique<Program>(context, std::move(module));
  program->messages = collector.take();
  return program;
}

std::vector<Message>
Program::withModule(const std::function<bool(ModuleOp)> &work) const {
  checkProcess(context->process, "program");
  std::lock_guard lock(context->mutex);
  MessageCollector collector(context->context);
  bool succeeded = work(*module);
  std::vector<Message> messages = collector.take();
  if (!succeeded)
    throw CompileError(std::move(messages));
  return messages;
}

std::string Program::print(bool withLocations) const {
  std::string text;
  withModule([&](ModuleOp module) {
    llvm::raw_string_ostream os(text);
    module.print(os, OpPrintingFlags().enableDebugInfo(withLocations));
    os << '\n';
    return true;
  });
  return text;
}

std::string Program::writeBytecode() const {
  std::string bytes;
  withModule([&](ModuleOp module) {
    llvm::raw_string_ostream os(bytes);
    return succeeded(writeBytecodeToFile(module, os));
  });
  return bytes;
}

std::unique_ptr<Program> Program::makeCopy() const {
  OwningOpRef<ModuleOp> copy;
  withModule([&](ModuleOp module) {
    copy = module.clone();
    return true;
  });
  auto program = std::make_unique<Program>(context, std::move(copy));
  program->weights = weights;
  program->weightNames = weightNames;
  program->notes = notes;
  return program;
}

std::unique_ptr<Program> Program::clone() const {
  std::unique_ptr<Program> copy = makeCopy();
  copy->messages = messages;
  return copy;
}

/// The value as the parser of pipelines takes it.
static std::string quoteValue(const std::string &name,
                              const std::string &value) {
  for (char quote : {'"', '\''})
    if (value.find(quote) == std::string::npos)
      return quote + value + quote;
  throw InputError("the value of option '" + name +
                   "' has both kinds of quotes: " + value);
}

/// Throws an InputError if tp-parallelize has no option of this name.
static void checkOptionName(const std::string &name) {
  static const SmallVector<std::string> known = [] {
    MLIRContext context;
    return tp::getPassOptionNames(tp::ParallelizeOptions::kArgument, &context);
  }();
  if (llvm::is_contained(known, name))
    return;
  SmallVector<StringRef> names(known.begin(), known.end());
  std::string hint = tp::suggestNearest(name, names);
  throw InputError(
      "tp-parallelize has no option '" + name + "'" +
      (hint.empty() ? "; options are " + llvm::join(names, ", ") : hint));
}

static std::string formatOptions(const Options &options) {
  std::string text;
  for (const auto &[name, value] : options) {
    checkOptionName(name);
    text += " " + name + "=";
    if (const bool *flag = std::get_if<bool>(&value))
      text += *flag ? "true" : "false";
    else if (const int64_t *number = std::get_if<int64_t>(&value))
      text += std::to_string(*number);
    else
      text += quoteValue(name, std::get<std::string>(value));
  }
  return text;
}

static void addInputs(tp::MemoryFiles &memory, const Files &files) {
  for (const auto &[name, text] : files)
    memory.addInput(name, StringRef(text.data(), text.size()));
}

std::unique_ptr<Program> Program::parallelize(const Options &options,
                                              const Files &files) const {
  std::string pipeline =
      "builtin.module(tp-parallelize{" + formatOptions(options) + "})";
  std::unique_ptr<Program> copy = makeCopy();
  copy->messages = copy->withModule([&](ModuleOp module) {
    tp::MemoryFiles memory;
    addInputs(memory, files);
    return succeeded(tp::runPipeline(module, pipeline));
  });
  return copy;
}

std::map<std::string, std::string>
Program::runPipeline(const std::string &pipeline, const Files &files,
                     const std::vector<std::string> &outputs) {
  std::map<std::string, std::string> written;
  try {
    messages = withModule([&](ModuleOp current) {
      tp::MemoryFiles memory;
      addInputs(memory, files);
      for (const std::string &output : outputs)
        memory.addOutput(output);
      OwningOpRef<ModuleOp> changed = current.clone();
      bool isDone = succeeded(tp::runPipeline(*changed, pipeline));
      for (const std::string &output : outputs)
        if (std::optional<StringRef> text = memory.getOutput(output))
          written[output] = text->str();
      if (isDone)
        module = std::move(changed);
      return isDone;
    });
  } catch (CompileError &error) {
    error.outputs = written;
    throw;
  }
  return written;
}

std::string Program::getReport() const {
  std::string report;
  withModule([&](ModuleOp module) {
    FailureOr<std::string> made = mlir::tp::getReport(module);
    if (succeeded(made))
      report = *made;
    return succeeded(made);
  });
  return report;
}

std::vector<Message> Program::compile(const std::vector<Named> &programs,
                                      const mlir::tp::CompileOptions &options,
                                      const std::string &path) {
  if (programs.empty())
    throw InputError("there are no programs to compile");
  // In the same order in all threads, so that none waits for another's context
  // forever.
  std::set<std::shared_ptr<Context>> contexts;
  for (const Named &each : programs)
    contexts.insert(each.program->context);
  std::vector<std::unique_lock<std::mutex>> locks;
  std::deque<MessageCollector> collectors;
  for (const std::shared_ptr<Context> &context : contexts) {
    checkProcess(context->process, "program");
    locks.emplace_back(context->mutex);
    collectors.emplace_back(context->context);
  }
  std::vector<mlir::tp::ArtifactProgram> modules;
  for (const Named &each : programs)
    modules.push_back({each.name, *each.program->module});
  bool isDone = succeeded(mlir::tp::compileToFile(modules, options, path));
  std::vector<Message> messages;
  for (MessageCollector &collector : collectors)
    llvm::append_range(messages, collector.take());
  if (!isDone)
    throw CompileError(std::move(messages));
  return messages;
}
