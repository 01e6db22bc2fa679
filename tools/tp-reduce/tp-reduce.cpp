//===- tp-reduce.cpp - Reduction of modules that show a fault -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Help.h"
#include "../ResourceLimits.h"
#include "../Version.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "tp/Pipelines/Pipelines.h"
#include "tp/Planning/Passes.h"
#include "tp/Support/InputFile.h"
#include "tp/Support/OutputFile.h"
#include "tp/Support/TemporaryDirectory.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/WithColor.h"
#include <cstdlib>

/// The word that contains the value of -o, after `prefix`; null if there is
/// none.
static const char **findOutput(llvm::MutableArrayRef<const char *> words,
                               std::string &prefix) {
  for (size_t i = 1; i < words.size(); ++i) {
    llvm::StringRef word = words[i];
    if ((word == "-o" || word == "--o") && i + 1 < words.size())
      return &words[i + 1];
    if (word.starts_with("-o=") || word.starts_with("--o=")) {
      prefix = "-o=";
      return &words[i];
    }
  }
  return nullptr;
}

static int fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "tp-reduce") << message << "\n";
  return 1;
}

/// The path of -o, for errors that don't name it themselves.
static std::string outputPath;

static int failWithoutOutput(const llvm::Twine &reason) {
  if (outputPath.empty())
    return fail(reason);
  return fail(reason + "; '" + outputPath + "' isn't written");
}

/// Like mlirReduceMain, but also rejects inputs that readInput() rejects, and
/// doesn't empty the output first.
static int run(int argc, char **argv, mlir::MLIRContext &context) {
  llvm::SmallVector<const char *> words(argv, argv + argc);
  std::string prefix;
  const char **output = findOutput(words, prefix);
  for (const char *&word : llvm::drop_begin(words)) {
    if (word[0] == '-' || &word == output)
      continue;
    llvm::Error error = mlir::tp::checkInput(word);
    if (!error && llvm::sys::fs::is_regular_file(word))
      error = mlir::tp::readInput(word).takeError();
    if (error)
      return fail("cannot open input file '" + llvm::Twine(word) +
                  "': " + llvm::toString(std::move(error)));
  }
  if (!output)
    return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
  outputPath = llvm::StringRef(*output).drop_front(prefix.size()).str();
  llvm::SmallString<128> aside;
  if (std::error_code code =
          llvm::sys::fs::createTemporaryFile("tp-reduce", "mlir", aside))
    return fail("can't make a temporary file 'tp-reduce-*.mlir' in " +
                mlir::tp::describeTemporaryFolder() + ": " + code.message());
  llvm::FileRemover remover(aside);
  llvm::sys::RemoveFileOnSignal(aside);
  std::string replaced = prefix + aside.str().str();
  *output = replaced.c_str();
  words.push_back(nullptr);
  if (mlir::failed(mlir::mlirReduceMain(argc, const_cast<char **>(words.data()),
                                        context)))
    return failWithoutOutput("the reduction failed");
  auto reduced = llvm::MemoryBuffer::getFile(aside);
  if (!reduced)
    return fail("can't read '" + aside + "': " + reduced.getError().message());
  llvm::Error error = mlir::tp::writeFile(outputPath, (*reduced)->getBuffer());
  if (!error)
    error = mlir::tp::closeStandardOutput();
  return error ? fail(llvm::toString(std::move(error))) : 0;
}

/// mlir-reduce has no other way to report that a temporary file can't be
/// written, and a crash would leave its other temporary files behind.
static void leaveWithMessage(void *, const char *reason, bool) {
  failWithoutOutput(reason);
  llvm::sys::RunInterruptHandlers();
  std::_Exit(1);
}

int main(int argc, char **argv) {
  llvm::install_fatal_error_handler(leaveWithMessage);
  reportResourceLimits("tp-reduce");
  setVersion("tp-reduce");
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  mlir::tp::registerDialects(registry);
  mlir::tp::registerPassesAndPipelines();
  mlir::tp::registerTPPlanningPasses();
  // mlirReduceMain registers the tool's own options.
  hideOtherOptions(llvm::cl::OptionCategory("tp-reduce options"));
  mlir::MLIRContext context(registry);
  return run(argc, argv, context);
}
