//===- tp-compile.cpp - Artifacts of per-rank IR --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Help.h"
#include "../NextCommand.h"
#include "../ResourceLimits.h"
#include "../Version.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "tp/Advice/Passes.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Pipeline/CodeGenPipeline.h"
#include "tp/Support/InputFile.h"
#include "tp/Support/OutputFile.h"
#include "tp/Target/Artifact/ArtifactWriter.h"
#include "tp/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mlir::tp;
namespace cl = llvm::cl;

static cl::OptionCategory category("tp-compile options");
static cl::list<std::string>
    inputs(cl::Positional,
           cl::desc("<ranks.mlir>... (several programs share their "
                    "parameters; each has the name of its file, without the "
                    "extension)"),
           cl::cat(category));
static cl::opt<std::string>
    outputPath("o", cl::desc("Where to write; '-' is standard output"),
               cl::value_desc("file"), cl::Required, cl::cat(category));
static cl::opt<std::string> targetCPU(
    "target-cpu",
    cl::desc("CPUs to compile for, 'native' by default; with several CPUs, "
             "the machine uses the last one in the list that it supports"),
    cl::value_desc("name,..."), cl::init("native"), cl::cat(category));
static cl::opt<std::string>
    target("target",
           cl::desc("Compile for GPUs of these architectures: "
                    "cuda:sm_80,sm_90; the CPU by default"),
           cl::value_desc("device:name,..."), cl::cat(category));
static cl::opt<unsigned> optLevel("O", cl::desc("Optimization level, 0 to 3"),
                                  cl::Prefix, cl::init(3), cl::cat(category));
static cl::opt<Emit> emitKind(
    "emit", cl::desc("What to write"), cl::init(Emit::Artifact),
    cl::values(clEnumValN(Emit::Artifact, "tpx", "the artifact (default)"),
               clEnumValN(Emit::Manifest, "manifest", "its manifest, JSON"),
               clEnumValN(Emit::MLIR, "mlir", "the LLVM dialect"),
               clEnumValN(Emit::LLVM, "llvm", "optimized LLVM IR"),
               clEnumValN(Emit::Object, "obj", "a relocatable object"),
               clEnumValN(Emit::PTX, "ptx", "the kernels of a GPU, as PTX")),
    cl::cat(category));

static cl::opt<std::string>
    machine("machine",
            cl::desc("Predict a run on this machine: a preset, or the path of "
                     "a description; prints a table"),
            cl::value_desc("name"), cl::cat(category));
static cl::opt<std::string>
    report("report",
           cl::desc("Write the report of tp-opt, with the prediction "
                    "where there is a machine"),
           cl::value_desc("file"), cl::cat(category));
static cl::opt<std::string> page("html",
                                 cl::desc("Write the report as an HTML page"),
                                 cl::value_desc("file"), cl::cat(category));

/// Whether the program is reported or predicted, which is for one program.
static bool isReported() {
  return !machine.empty() || !report.empty() || !page.empty();
}

static cl::opt<bool> quiet("quiet", cl::desc("Don't suggest the next command"),
                           cl::cat(category));

static int fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "tp-compile") << message << '\n';
  return 1;
}

/// The program's name in the artifact.
static std::string getName(llvm::StringRef path) {
  return path == "-" ? "main" : llvm::sys::path::stem(path).str();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  reportResourceLimits("tp-compile");
  setVersion("tp-compile");
  registerTPCodeGenPasses(); // so that options can name them
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
  hideOtherOptions(category);
  std::string errors;
  llvm::raw_string_ostream errorStream(errors);
  if (!cl::ParseCommandLineOptions(
          argc, argv,
          "Compiles per-rank programs to one artifact for tp-run.\n\n"
          "  tp-opt model.mlir --tp-parallelize=\"plan=plan.yaml\" -o "
          "ranks.mlir\n"
          "  tp-compile ranks.mlir -o model.tpx\n"
          "  tp-compile short.mlir long.mlir -o model.tpx\n\n"
          "Exit codes: 0 done, 1 the program can't be compiled, 2 wrong "
          "usage.\n",
          &errorStream)) {
    llvm::errs() << errors;
    return 2;
  }
  if (optLevel > 3) {
    fail("-O takes 0 to 3, not " + llvm::Twine(optLevel));
    return 2;
  }

  if (inputs.empty())
    inputs.push_back("-");
  if (inputs.size() > 1 && isReported()) {
    fail("--machine, --report and --html are for one program, not " +
         llvm::Twine(inputs.size()));
    return 2;
  }

  DistinctOutputs distinct;
  DialectRegistry registry;
  registerCodeGeneration(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false); // it may be the whole program
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  std::vector<OwningOpRef<ModuleOp>> modules;
  std::vector<ArtifactProgram> programs;
  for (const std::string &input : inputs) {
    auto file = readInput(input);
    if (!file)
      return fail("cannot open input file '" + input +
                  "': " + llvm::toString(file.takeError()));
    const llvm::MemoryBuffer &text = **file;
    sources.AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
    modules.push_back(parseSourceString<ModuleOp>(text.getBuffer(), &context,
                                                  text.getBufferIdentifier()));
    if (!modules.back())
      return 1;
    programs.push_back({getName(input), *modules.back()});
  }

  DefaultTimingManager timing;
  applyDefaultTimingManagerCLOptions(timing);
  TimingScope scope = timing.getRootScope();
  CompileOptions options;
  options.targetCPU = targetCPU;
  options.target = target;
  options.warn = [](const llvm::Twine &message) {
    llvm::WithColor::warning(llvm::errs(), "tp-compile") << message << '\n';
  };
  options.optLevel = optLevel;
  options.emit = emitKind;
  options.configure = [&](PassManager &pm) {
    pm.enableTiming(scope);
    return applyPassManagerCLOptions(pm);
  };
  if (isReported()) {
    PassManager pm(&context);
    pm.addPass(createPredictMemory({/*onDevice=*/!target.empty()}));
    pm.addPass(createReport({report, page, /*explanation=*/"", /*trace=*/"",
                             /*alternatives=*/"", /*scaling=*/"", machine,
                             /*table=*/!machine.empty()}));
    if (failed(pm.run(programs.front().module)))
      return 1;
  }
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  if (llvm::Error error = compileToArtifact(programs, options, os))
    return fail(llvm::toString(std::move(error)));
  if (llvm::Error error = writeFile(outputPath, bytes))
    return fail(llvm::toString(std::move(error)));
  if (llvm::Error error = closeStandardOutput())
    return fail(llvm::toString(std::move(error)));
  if (emitKind == Emit::Artifact && outputPath != "-" &&
      outputPath != "/dev/null")
    suggestNext({"tp-run", outputPath, "--describe"}, quiet);
  return 0;
}
