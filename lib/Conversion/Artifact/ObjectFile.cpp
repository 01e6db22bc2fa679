//===- ObjectFile.cpp - LLVM IR to machine code ---------------------------===//

#include "ObjectFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
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
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  Triple triple(sys::getProcessTriple());
  std::string message;
  const Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return makeError(message);

  std::string name = cpu.str(), features;
  if (cpu == "native") {
    name = sys::getHostCPUName().str();
    for (const auto &feature : sys::getHostCPUFeatures()) {
      features += features.empty() ? "" : ",";
      features += (feature.second ? "+" : "-") + feature.first().str();
    }
  } else {
    std::unique_ptr<MCSubtargetInfo> subtarget(
        target->createMCSubtargetInfo(triple, "", ""));
    if (!subtarget->isCPUStringValid(cpu))
      return makeError("unknown CPU '" + cpu + "' for " + triple.str() +
                       "; 'native' is this machine's");
  }
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Fast;
  auto level = CodeGenOpt::getLevel(optLevel);
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      triple, name, features, options, Reloc::PIC_, std::nullopt,
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
  PassBuilder builder(&machine);
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

Expected<SmallString<0>> mlir::tp::emitObject(llvm::Module &module,
                                              TargetMachine &machine) {
  SmallString<0> object;
  raw_svector_ostream os(object);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr,
                                  CodeGenFileType::ObjectFile))
    return makeError("LLVM can't write objects for " +
                     machine.getTargetTriple().str());
  passes.run(module);
  return object;
}

namespace {
/// A directory that goes away with everything in it.
struct TemporaryDirectory {
  SmallString<128> path;
  ~TemporaryDirectory() {
    if (!path.empty())
      sys::fs::remove_directories(path);
  }
};
} // namespace

static Expected<std::string> findLinker() {
  for (StringRef name : {"ld.lld", "ld.lld-22"})
    if (auto path = sys::findProgramByName(name, {TP_LLVM_TOOLS_DIR}))
      return *path;
  for (StringRef name : {"ld.lld-22", "ld.lld"})
    if (auto path = sys::findProgramByName(name))
      return *path;
  return makeError("no linker: neither '" TP_LLVM_TOOLS_DIR
                   "' nor PATH has 'ld.lld' or 'ld.lld-22' (Debian: lld-22)");
}

Expected<std::string>
mlir::tp::linkSharedObject(ArrayRef<SmallString<0>> objects) {
  Expected<std::string> linker = findLinker();
  if (!linker)
    return linker.takeError();
  TemporaryDirectory directory;
  if (std::error_code code =
          sys::fs::createUniqueDirectory("tp-compile", directory.path))
    return makeError("can't make a temporary directory: " + code.message());
  std::string sharedPath = (directory.path + "/program.so").str();
  std::string logPath = (directory.path + "/log").str();
  std::vector<std::string> objectPaths;
  for (const SmallString<0> &object : objects) {
    std::string &path = objectPaths.emplace_back(
        (directory.path + "/" + Twine(objectPaths.size()) + ".o").str());
    std::error_code code;
    raw_fd_ostream os(path, code);
    os << object;
    os.close();
    if (code || (code = os.error())) {
      os.clear_error();
      return makeError("can't write '" + path + "': " + code.message());
    }
  }

  // The runtime's functions stay undefined: whoever loads the program has them.
  SmallVector<StringRef> arguments = {
      *linker, "-shared",     "-Bsymbolic", "--hash-style=gnu", "-z",
      "now",   "--strip-all", "-o",         sharedPath};
  llvm::append_range(arguments, objectPaths);
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(logPath),
                                          StringRef(logPath)};
  std::string message;
  int code = sys::ExecuteAndWait(*linker, arguments, std::nullopt, redirects, 0,
                                 0, &message);
  if (code != 0) {
    if (auto log = MemoryBuffer::getFile(logPath))
      message += (*log)->getBuffer().trim();
    return makeError("'" + *linker + "' failed: " + message);
  }
  auto shared = MemoryBuffer::getFile(sharedPath, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!shared)
    return makeError("can't read '" + sharedPath +
                     "': " + shared.getError().message());
  return (*shared)->getBuffer().str();
}
