//===- tp-opt.cpp - The pass driver ---------------------------------------===//

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "tp/Pipelines/Pipelines.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/StringSaver.h"

namespace cl = llvm::cl;

/// `--accept-tested` is that option of each `--tp-verify-spmd`.
static llvm::SmallVector<char *> passAcceptTested(int argc, char **argv,
                                                  llvm::StringSaver &saver) {
  llvm::SmallVector<char *> words(argv, argv + argc);
  auto isIt = [](llvm::StringRef word) {
    return word == "--accept-tested" || word == "-accept-tested";
  };
  if (llvm::none_of(words, isIt))
    return words;
  for (char *&word : words) {
    auto [name, value] = llvm::StringRef(word).split('=');
    if (name.ltrim('-') != "tp-verify-spmd" ||
        value.contains("accept-tested"))
      continue;
    word = const_cast<char *>(
        saver.save(name + "=" + value + " accept-tested").data());
  }
  return words;
}

int main(int argc, char **argv) {
  llvm::setBugReportMsg(
      "PLEASE submit a bug report to the tp-mlir project with "
      "the input, the command line and this backtrace.\n");
  llvm::InitLLVM init(argc, argv);
  cl::AddExtraVersionPrinter([](llvm::raw_ostream &os) {
    os << "tp-opt (tp-mlir " TP_MLIR_VERSION ")\n";
  });
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  mlir::tp::registerDialects(registry);
  mlir::tp::registerPassesAndPipelines();

  static cl::opt<std::string> input(cl::Positional, cl::desc("<input file>"),
                                    cl::init("-"));
  static cl::opt<std::string> output("o", cl::desc("Output file"),
                                     cl::value_desc("file"), cl::init("-"));
  static cl::opt<bool> acceptTested(
      "accept-tested",
      cl::desc("Accept programs that --tp-verify-spmd tests by execution and "
               "can't prove"));
  static cl::extrahelp examples(R"(
EXAMPLES:
  tp-opt model.mlir --tp-parallelize="plan=plan.yaml report=report.json" -o ranks.mlir
  tp-opt model.mlir --tp-apply-plan=plan=plan.yaml --tp-propagate
  tp-opt model.mlir --tp-parallelize=plan=plan.yaml -o ranks.mlir --remarks-filter='tp-.*'
  tp-opt ranks.mlir --tp-verify-spmd=reference=model.mlir --accept-tested -o /dev/null

EXIT CODES: 0 success, 1 bad input, 2 wrong usage
)");
  std::string header =
      mlir::registerCLIOptions("tp-mlir optimizer driver\n", registry);
  // An error about a function would be followed by all of it.
  auto *printOp = static_cast<cl::opt<bool> *>(
      cl::getRegisteredOptions().lookup("mlir-print-op-on-diagnostic"));
  if (printOp)
    printOp->setInitialValue(false);
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver(allocator);
  llvm::SmallVector<char *> words = passAcceptTested(argc, argv, saver);
  if (!cl::ParseCommandLineOptions(argc, words.data(), header, &llvm::errs()))
    return 2;
  // MlirOptMain takes a wrong option of a pass or pipeline for bad input.
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::PassManager passes(&context, "builtin.module",
                           mlir::PassManager::Nesting::Implicit);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (mlir::failed(config.setupPassPipeline(passes)))
    return 2;
  // Who asks for a plan's meaning or an explanation alone doesn't want the
  // model after it.
  bool onlyPrints =
      !passes.empty() && llvm::all_of(passes, [](mlir::Pass &pass) {
        return pass.getArgument() == "tp-print-plan" ||
               pass.getArgument() == "tp-explain";
      });
  std::string file = onlyPrints && !output.getNumOccurrences()
                         ? "/dev/null"
                         : output.getValue();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, input, file, registry));
}
