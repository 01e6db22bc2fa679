//===- tp-opt.cpp - The pass driver ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Help.h"
#include "../NextCommand.h"
#include "../ResourceLimits.h"
#include "../Version.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "tp/Advice/Passes.h"
#include "tp/Pipelines/Pipelines.h"
#include "tp/Plan/PlanSchema.h"
#include "tp/Planning/Passes.h"
#include "tp/Proof/Passes.h"
#include "tp/Sharding/Cost/MachineModel.h"
#include "tp/Support/InputFile.h"
#include "tp/Support/NearestName.h"
#include "tp/Support/OutputFile.h"
#include "tp/Training/TrainingFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/WithColor.h"

namespace cl = llvm::cl;

/// MLIR takes an apostrophe within an option's value, "plan=it's.yaml", for an
/// opening quote, and all following text for part of the value. Puts double
/// quotes around such a value.
static std::string quoteApostrophes(llvm::StringRef argument) {
  size_t begin = argument.find('=');
  if (!argument.starts_with("--tp-") || begin == llvm::StringRef::npos)
    return argument.str();
  std::string text = argument.take_front(begin + 1).str();
  llvm::StringRef rest = argument.drop_front(begin + 1);
  while (!rest.empty()) {
    size_t equals = rest.find_first_of("= ");
    if (equals == llvm::StringRef::npos || rest[equals] == ' ') {
      size_t end = std::min(equals, rest.size() - 1) + 1;
      text += rest.take_front(end);
      rest = rest.drop_front(end);
      continue;
    }
    text += rest.take_front(equals + 1);
    rest = rest.drop_front(equals + 1);
    // Only a quote at the start of a value quotes it.
    bool isQuoted = !rest.empty() && (rest[0] == '\'' || rest[0] == '"');
    size_t end = isQuoted ? rest.find(rest[0], 1) : rest.find(' ');
    end = std::min(end == llvm::StringRef::npos ? end : end + isQuoted,
                   rest.size());
    llvm::StringRef value = rest.take_front(end);
    bool needsQuotes =
        !isQuoted && value.contains('\'') && !value.contains('"');
    text += needsQuotes ? ("\"" + value + "\"").str() : value.str();
    rest = rest.drop_front(end);
  }
  return text;
}

static int fail(llvm::StringRef message) {
  llvm::WithColor::error(llvm::errs(), "tp-opt") << message << "\n";
  return 1;
}

/// After an unknown pass option, suggests a similar one.
static void suggestPassOptions(int argc, char **argv,
                               mlir::MLIRContext &context) {
  for (llvm::StringRef argument : llvm::ArrayRef(argv, argc).drop_front()) {
    if (!argument.consume_front("--") && !argument.consume_front("-"))
      continue;
    auto [pass, options] = argument.split('=');
    llvm::SmallVector<std::string> names =
        mlir::tp::getPassOptionNames(pass, &context);
    llvm::SmallVector<llvm::StringRef> known(names.begin(), names.end());
    for (llvm::StringRef option : llvm::split(options, " ")) {
      llvm::StringRef name = option.split('=').first;
      if (name.empty() || llvm::is_contained(known, name))
        continue;
      llvm::StringRef nearest = mlir::tp::findNearest(name, known);
      if (!nearest.empty())
        llvm::errs() << "tp-opt: " << pass << " has no option '" << name
                     << "'; did you mean '" << nearest << "'?\n";
    }
  }
}

/// The passes and pipelines of tp-mlir, each with its options; MLIR's own list
/// has all of MLIR's, too.
static std::string describePasses(mlir::MLIRContext &context) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const auto &entry : cl::getRegisteredOptions())
    if (entry.first.starts_with("tp-"))
      names.push_back(entry.first);
  llvm::sort(names);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "\nPASSES AND PIPELINES, with their options:\n";
  for (llvm::StringRef name : names) {
    const mlir::PassRegistryEntry *entry = mlir::PassInfo::lookup(name);
    if (!entry)
      entry = mlir::PassPipelineInfo::lookup(name);
    if (!entry)
      continue;
    os << "  --" << llvm::left_justify(name, 34) << " - "
       << entry->getPassDescription() << "\n";
    std::string line;
    for (const std::string &option :
         mlir::tp::getPassOptionNames(name, &context)) {
      if (line.size() + option.size() > 88) {
        os << "       " << line << "\n";
        line.clear();
      }
      line += " " + option;
    }
    if (!line.empty())
      os << "       " << line << "\n";
  }
  return text;
}

namespace {
enum class FileKind { None, Plan, Training, Machine };
} // namespace

static int printSchema(FileKind kind, mlir::DialectRegistry &registry) {
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  llvm::json::Value schema =
      kind == FileKind::Plan       ? mlir::tp::plan::getPlanSchema(&context)
      : kind == FileKind::Training ? mlir::tp::getTrainingSchema()
                                   : mlir::tp::getMachineSchema();
  llvm::outs() << llvm::formatv("{0:2}", schema) << "\n";
  llvm::Error error = mlir::tp::closeStandardOutput();
  return error ? fail(llvm::toString(std::move(error))) : 0;
}

/// Like MlirOptMain with paths, except for the output: if a pass fails or the
/// process is killed, MLIR loses both the output and the file's old contents.
static int run(llvm::StringRef input, llvm::StringRef output,
               mlir::DialectRegistry &registry,
               const mlir::MlirOptMainConfig &config) {
  auto file = mlir::tp::readInput(input);
  if (!file)
    return fail("cannot open input file '" + input.str() +
                "': " + llvm::toString(file.takeError()));
  mlir::tp::DistinctOutputs distinct;
  bool isValid = true;
  llvm::Error error =
      mlir::tp::writeFile(output, [&](llvm::raw_ostream &os) -> llvm::Error {
        isValid = mlir::succeeded(
            mlir::MlirOptMain(os, std::move(*file), registry, config));
        return isValid ? llvm::Error::success()
                       : llvm::createStringError("has been reported");
      });
  if (!isValid) {
    llvm::consumeError(std::move(error));
    return 1;
  }
  if (!error)
    error = mlir::tp::closeStandardOutput();
  return error ? fail(llvm::toString(std::move(error))) : 0;
}

int main(int argc, char **argv) {
  llvm::setBugReportMsg(
      "PLEASE submit a bug report to the tp-mlir project with "
      "the input, the command line and this backtrace.\n");
  llvm::InitLLVM init(argc, argv);
  reportResourceLimits("tp-opt");
  llvm::SmallVector<std::string> quoted;
  for (char *argument : llvm::ArrayRef(argv, argc))
    quoted.push_back(quoteApostrophes(argument));
  // Otherwise MLIR prints the whole function after an error about it.
  constexpr llvm::StringLiteral printOp = "--mlir-print-op-on-diagnostic";
  if (llvm::none_of(quoted, [&](llvm::StringRef argument) {
        return argument.ltrim('-').starts_with(printOp.ltrim('-'));
      }))
    quoted.insert(quoted.begin() + 1, (printOp + "=false").str());
  llvm::SmallVector<char *> arguments = llvm::map_to_vector(
      quoted, [](std::string &text) { return text.data(); });
  argc = arguments.size();
  arguments.push_back(nullptr);
  argv = arguments.data();
  setVersion("tp-opt");
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  mlir::tp::registerDialects(registry);
  mlir::tp::registerPassesAndPipelines();
  mlir::tp::registerTPPlanningPasses();
  mlir::tp::registerProofCLOptions();

  static cl::OptionCategory category("tp-opt options");
  static cl::opt<std::string> input(cl::Positional, cl::desc("<input file>"),
                                    cl::init("-"), cl::cat(category));
  static cl::opt<std::string> output(
      "o", cl::desc("Where to write; '-' is standard output (default)"),
      cl::value_desc("file"), cl::init("-"), cl::cat(category));
  static cl::opt<FileKind> schema(
      "print-schema",
      cl::desc("Print the JSON schema of a kind of file, for editors"),
      cl::values(clEnumValN(FileKind::Plan, "plan", "plans"),
                 clEnumValN(FileKind::Training, "training", "training files"),
                 clEnumValN(FileKind::Machine, "machine", "machines")),
      cl::init(FileKind::None), cl::cat(category));
  static cl::opt<bool> quiet(
      "quiet", cl::desc("Don't suggest the next command"), cl::cat(category));
  mlir::registerCLIOptions("", registry);
  cl::getRegisteredOptions()["accept-tested"]->addCategory(category);
  hideOtherOptions(category);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::string passHelp = describePasses(context);
  cl::extrahelp passList(passHelp);
  static cl::extrahelp examples(R"(
EXAMPLES:
  tp-opt model.mlir --tp-parallelize="plan=plan.yaml report=report.json" -o ranks.mlir
  tp-opt model.mlir --tp-apply-plan=plan=plan.yaml --tp-propagate
  tp-opt model.mlir --tp-parallelize=plan=plan.yaml -o ranks.mlir --remarks-filter='tp-.*'
  tp-opt ranks.mlir --tp-verify-spmd=reference=model.mlir --accept-tested -o /dev/null

EXIT CODES: 0 success, 1 bad input, 2 wrong usage

--help-hidden lists the passes and the options of MLIR and LLVM, too.
)");
  if (!cl::ParseCommandLineOptions(
          argc, argv,
          "Runs passes on a model or a program of one rank: applies a plan, "
          "splits the model,\nreports, proves.\n",
          &llvm::errs()))
    return 2;
  if (schema != FileKind::None)
    return printSchema(schema, registry);
  // MlirOptMain would report a wrong option of a pass or pipeline as bad input.
  mlir::PassManager passes(&context, "builtin.module",
                           mlir::PassManager::Nesting::Implicit);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (mlir::failed(config.setupPassPipeline(passes))) {
    suggestPassOptions(argc, argv, context);
    return 2;
  }
  // If all passes only print an answer, such as an explanation, the model isn't
  // printed after it.
  bool onlyPrints =
      !passes.empty() && llvm::all_of(passes, [](mlir::Pass &pass) {
        return mlir::tp::printsAnswer(pass);
      });
  std::string file = onlyPrints && !output.getNumOccurrences()
                         ? "/dev/null"
                         : output.getValue();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::asMainReturnCode(
        mlir::MlirOptMain(argc, argv, input, file, registry));
  int exitCode = run(input, file, registry, config);
  bool isCompiledNext =
      llvm::any_of(llvm::ArrayRef(argv, argc), [](llvm::StringRef argument) {
        return argument.ltrim('-').split('=').first ==
               mlir::tp::ParallelizeOptions::kArgument;
      });
  if (exitCode == 0 && isCompiledNext && file != "-" && file != "/dev/null")
    suggestNext({"tp-compile", file, "-o", "model.tpx"}, quiet);
  return exitCode;
}
