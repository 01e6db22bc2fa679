//===- ObjectFile.cpp - Machine code of LLVM IR ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ObjectFile.h"
#include "tp/Support/TemporaryDirectory.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace llvm;

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

Expected<std::unique_ptr<TargetMachine>>
mlir::tp::createTargetMachine(StringRef cpu, unsigned optLevel) {
  std::string name = cpu.str(), features;
  if (cpu == "native") {
    name = sys::getHostCPUName().str();
    for (const auto &feature : sys::getHostCPUFeatures()) {
      features += features.empty() ? "" : ",";
      features += (feature.second ? "+" : "-") + feature.first().str();
    }
  }
  return createTargetMachine(Triple(sys::getProcessTriple()), name, features,
                             optLevel);
}

/// The host and CUDA devices, once: LLVM's list of targets isn't for several
/// threads.
static void initializeTargets() {
  static const bool done = [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)done;
}

Expected<std::unique_ptr<TargetMachine>>
mlir::tp::createTargetMachine(const Triple &triple, StringRef cpu,
                              StringRef features, unsigned optLevel) {
  initializeTargets();
  std::string message;
  const Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return makeError(message);
  std::unique_ptr<MCSubtargetInfo> subtarget(
      target->createMCSubtargetInfo(triple, "", ""));
  if (features.empty() && !subtarget->isCPUStringValid(cpu))
    return makeError("unknown CPU '" + cpu + "' for " + triple.str() +
                     "; 'native' is this machine's");
  TargetOptions options;
  // Fuse a product and a sum only where an op's body allows it, not because two
  // ops happen to be in one loop.
  options.AllowFPOpFusion = FPOpFusion::Standard;
  auto level = CodeGenOpt::getLevel(optLevel);
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      triple, cpu, features, options, Reloc::PIC_, std::nullopt,
      level.value_or(CodeGenOptLevel::Aggressive)));
}

SmallVector<std::string>
mlir::tp::getNeededFeatures(const TargetMachine &machine) {
  SmallVector<std::string> needed;
  SmallVector<StringRef> listed;
  if (machine.getTargetFeatureString().empty()) {
    if (machine.getTargetTriple().isX86())
      X86::getFeaturesForCPU(machine.getTargetCPU(), listed, /*NeedPlus=*/true);
  } else {
    machine.getTargetFeatureString().split(listed, ',');
  }
  for (StringRef feature : listed)
    if (feature.starts_with("+"))
      needed.push_back(feature.str());
  llvm::sort(needed);
  return needed;
}

void mlir::tp::optimize(llvm::Module &module, TargetMachine &machine,
                        unsigned optLevel) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    if (!machine.getTargetFeatureString().empty())
      function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }

  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  PassInstrumentationCallbacks callbacks;
  OptNoneInstrumentation unoptimized(/*DebugLogging=*/false);
  unoptimized.registerCallbacks(callbacks);
  PassBuilder builder(&machine, PipelineTuningOptions(), std::nullopt,
                      &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const OptimizationLevel levels[] = {
      OptimizationLevel::O0, OptimizationLevel::O1, OptimizationLevel::O2,
      OptimizationLevel::O3};
  OptimizationLevel level = levels[std::min(optLevel, 3u)];
  ModulePassManager passes = level == OptimizationLevel::O0
                                 ? builder.buildO0DefaultPipeline(level)
                                 : builder.buildPerModuleDefaultPipeline(level);
  passes.run(module, modules);
}

Expected<SmallString<0>> mlir::tp::emitFile(llvm::Module &module,
                                            TargetMachine &machine,
                                            CodeGenFileType type) {
  SmallString<0> file;
  raw_svector_ostream os(file);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr, type))
    return makeError("LLVM can't write files for " +
                     machine.getTargetTriple().str());
  passes.run(module);
  return file;
}

Expected<SmallString<0>> mlir::tp::emitObject(llvm::Module &module,
                                              TargetMachine &machine) {
  return emitFile(module, machine, CodeGenFileType::ObjectFile);
}

Error mlir::tp::writeTemporary(StringRef path, StringRef bytes) {
  std::error_code code;
  raw_fd_ostream os(path, code);
  os << bytes;
  os.close();
  if (code || (code = os.error())) {
    os.clear_error();
    return makeError("can't write '" + path + "': " + code.message());
  }
  return Error::success();
}

Expected<std::string> mlir::tp::readFile(StringRef path) {
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false,
                                    /*RequiresNullTerminator=*/false);
  if (!file)
    return makeError("can't read '" + path + "': " + file.getError().message());
  return (*file)->getBuffer().str();
}

/// LLVM's linker, or else GNU's, which also has the options below.
static Expected<std::string> findLinker() {
  for (StringRef name : {"ld.lld", "ld.lld-22"})
    if (auto path = sys::findProgramByName(name, {TP_LLVM_TOOLS_DIR}))
      return *path;
  for (StringRef name : {"ld.lld-22", "ld.lld", "ld"})
    if (auto path = sys::findProgramByName(name))
      return *path;
  return makeError(
      "no linker: neither '" TP_LLVM_TOOLS_DIR
      "' nor PATH has 'ld.lld', 'ld.lld-22' or 'ld' (Debian: lld-22 or "
      "binutils)");
}

Expected<std::string>
mlir::tp::linkSharedObject(ArrayRef<SmallString<0>> objects) {
  Expected<std::string> linker = findLinker();
  if (!linker)
    return linker.takeError();
  TemporaryDirectory directory;
  if (Error error = directory.create("tp-compile"))
    return error;
  std::string sharedPath = directory.getFile("program.so");
  std::vector<std::string> objectPaths;
  for (const SmallString<0> &object : objects) {
    objectPaths.push_back(directory.getFile(Twine(objectPaths.size()) + ".o"));
    if (Error error = writeTemporary(objectPaths.back(), object))
      return error;
  }

  // The runtime's functions stay undefined; the process that loads the program
  // has them.
  SmallVector<StringRef> arguments = {
      *linker, "-shared",     "-Bsymbolic", "--hash-style=gnu", "-z",
      "now",   "--strip-all", "-o",         sharedPath};
  llvm::append_range(arguments, objectPaths);
  if (Error error = directory.run(arguments))
    return error;
  return readFile(sharedPath);
}
