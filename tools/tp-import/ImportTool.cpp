//===- ImportTool.cpp - PyTorch models to MLIR ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ImportTool.h"
#include "../Help.h"
#include "../NextCommand.h"
#include "../ResourceLimits.h"
#include "../Version.h"
#include "mlir/IR/AsmState.h"
#include "tp/Import/Importer.h"
#include "tp/Support/InputFile.h"
#include "tp/Support/OutputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"
#include <cstdlib>

using namespace mlir;
namespace cl = llvm::cl;

namespace {
/// The command line. An object, because the Python package has this tool in an
/// extension module, where options of the whole process would be in the way.
struct Options {
  cl::OptionCategory category{"tp-import options"};
  cl::opt<std::string> modelPath{cl::Positional, cl::Required,
                                 cl::desc("<model.pt2 or model.pt>"),
                                 cl::cat(category)};
  cl::list<std::string> inputTexts{
      "input", cl::value_desc("name=SIZExSIZE...xTYPE"),
      cl::desc("An argument of forward, as in ids=2x64xi64; x=f32 is a "
               "scalar. Types: f32 f64 f16 bf16 i64 i32 i16 i8 ui8 i1. A "
               "torch.export program has its own, which this replaces where "
               "they are dynamic"),
      cl::cat(category)};
  cl::opt<std::string> signaturePath{
      "signature", cl::value_desc("model.signature.json"),
      cl::desc("The order and names of the arguments of modules, "
               "which tp_trace.py writes"),
      cl::cat(category)};
  cl::opt<std::string> outputPath{"o", cl::value_desc("model.mlir"),
                                  cl::desc("Where the IR goes, - for "
                                           "standard output (default)"),
                                  cl::init("-"), cl::cat(category)};
  cl::opt<std::string> weightsPath{
      "weights", cl::value_desc("model.safetensors"),
      cl::desc("Where the parameters and buffers go; without it, "
               "only the IR is written"),
      cl::cat(category)};
  cl::opt<bool> quiet{"quiet", cl::desc("Don't suggest the next command"),
                      cl::cat(category)};
};
} // namespace

static constexpr int kBadInput = 1, kBadUsage = 2;

static int fail(llvm::Error error, int code) {
  llvm::WithColor::error(llvm::errs(), "tp-import")
      << tp::escapeControlCharacters(llvm::toString(std::move(error))) << "\n";
  return code;
}

/// For --list-ops, which needs no model. Importers that have the same ops have
/// one list.
[[noreturn]] static void
leaveWithOps(llvm::ArrayRef<std::unique_ptr<tp::Importer>> importers) {
  llvm::StringSet<> seen;
  for (const auto &importer : importers) {
    std::string list;
    llvm::raw_string_ostream os(list);
    importer->printOps(os);
    if (seen.insert(list).second)
      llvm::outs() << list;
  }
  llvm::Error error = tp::closeStandardOutput();
  std::exit(error ? fail(std::move(error), kBadInput) : 0);
}

/// Refuses the options of other formats than the model's.
static llvm::Error
checkOptions(llvm::ArrayRef<std::unique_ptr<tp::Importer>> importers,
             const tp::Importer &chosen, const Options &options) {
  for (const auto &other : importers)
    for (const cl::Option *option : other->getOptions())
      if (other.get() != &chosen && option->getNumOccurrences())
        return llvm::createStringError(
            "--" + option->ArgStr + " is an option for " + other->getFormat() +
            " models, and '" + options.modelPath + "' is a " +
            chosen.getFormat() + " model");
  return llvm::Error::success();
}

/// Writes either both files or none.
static llvm::Error writeModel(const tp::ImportedModel &model,
                              const Options &options) {
  tp::DistinctOutputs distinct;
  distinct.noteInput(options.modelPath);
  auto ir = tp::OutputFile::create(options.outputPath);
  if (!ir)
    return ir.takeError();
  ModuleOp module = *model.module;
  module.print(ir->os());
  if (options.weightsPath.empty())
    return ir->commit();
  for (const tp::WeightTensor &weight : model.weights)
    if (!weight.load)
      return llvm::createStringError(
          "cannot write '" + options.weightsPath + "': '" + weight.name +
          "' has no values, because the model was built on the meta device; "
          "import it without --weights");
  auto weights = tp::OutputFile::create(options.weightsPath);
  if (!weights)
    return weights.takeError();
  tp::writeSafetensors(weights->os(), model.weights);
  if (llvm::Error error = ir->close())
    return error;
  if (llvm::Error error = weights->commit())
    return error;
  return ir->commit();
}

int runImportTool(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Options options;
  reportResourceLimits("tp-import");
  registerAsmPrinterCLOptions();
  setVersion("tp-import");
  std::vector<std::unique_ptr<tp::Importer>> importers =
      tp::createImporters(options.category);
  // Called before the command line reports a missing model.
  cl::opt<bool> listOps(
      "list-ops",
      cl::desc("Print the PyTorch ops that can be imported, and what "
               "each of their arguments may be"),
      cl::callback([&](const bool &) { leaveWithOps(importers); }),
      cl::cat(options.category));
  hideOtherOptions(options.category);
  cl::extrahelp help(
      "\nEXAMPLES:\n"
      "  tp-import model.pt --input ids=2x64xi64 --input mask=2x64xi64 \\\n"
      "            -o model.mlir --weights model.safetensors\n"
      "  tp-import mlp.pt --input x=8x32xf32        (the IR, to read it)\n"
      "  tp-import model.pt2 -o model.mlir --weights model.safetensors\n"
      "  … --mlir-print-debuginfo                   (with modules and source "
      "lines)\n"
      "\nEXIT CODES:\n"
      "  0  the model is imported\n"
      "  1  the model or an input doesn't fit; nothing is written\n"
      "  2  wrong usage\n");
  std::string formats =
      llvm::join(llvm::map_range(importers,
                                 [](const auto &importer) {
                                   return importer->getFormat();
                                 }),
                 " or ");
  if (!cl::ParseCommandLineOptions(
          argc, argv,
          "Imports a " + formats +
              " model: its code as MLIR (nn dialect, static "
              "shapes),\nits weights as a safetensors file.\n",
          &llvm::errs()))
    return kBadUsage;

  if (options.weightsPath.getNumOccurrences() && options.weightsPath.empty())
    return fail(llvm::createStringError("--weights: the value is empty"),
                kBadUsage);

  MLIRContext context;
  std::vector<tp::InputSpec> inputs;
  for (const std::string &text : options.inputTexts) {
    auto input = tp::parseInputSpec(&context, text);
    if (!input)
      return fail(input.takeError(), kBadUsage);
    inputs.push_back(std::move(*input));
  }
  tp::ForwardSignatures signatures;
  if (!options.signaturePath.empty()) {
    auto read = tp::readForwardSignatures(options.signaturePath);
    if (!read)
      return fail(read.takeError(), kBadInput);
    signatures = std::move(*read);
  }
  const tp::Importer &importer =
      tp::chooseImporter(importers, options.modelPath);
  if (llvm::Error error = checkOptions(importers, importer, options))
    return fail(std::move(error), kBadUsage);
  auto model = importer.run(&context, options.modelPath, inputs, signatures,
                            llvm::errs());
  if (!model)
    return fail(model.takeError(), kBadInput);
  if (llvm::Error error = writeModel(*model, options))
    return fail(std::move(error), kBadInput);
  if (options.outputPath != "-" && options.outputPath != "/dev/null")
    suggestNext({"tp-opt", options.outputPath,
                 "--tp-parallelize=plan=plan.yaml", "-o", "ranks.mlir"},
                options.quiet);
  return 0;
}
