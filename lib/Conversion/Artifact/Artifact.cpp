//===- Artifact.cpp - manifest and container ------------------------------===//

#include "tp/Conversion/Artifact.h"
#include "ObjectFile.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "tp/Conversion/Manifest.h"
#include "tp/Conversion/Pipeline.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/EndianStream.h"

using namespace mlir;
using namespace mlir::tp;

/// Version of docs/Artifact.md.
static constexpr uint32_t kAbiVersion = 4;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static std::string writeManifest(DictionaryAttr attr,
                                 const llvm::TargetMachine &machine) {
  llvm::json::Object manifest = *toJSON(attr).getAsObject();
  manifest["schema"] = 4;
  manifest["producer"] = "tp-mlir " TP_VERSION;
  manifest["entry"] = "tpx_main";
  llvm::json::Array features;
  for (std::string &feature : getNeededFeatures(machine))
    features.push_back(std::move(feature));
  manifest["target"] =
      llvm::json::Object{{"triple", machine.getTargetTriple().str()},
                         {"cpu", machine.getTargetCPU()},
                         {"features", std::move(features)}};
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(manifest));
  return text;
}

static void writeContainer(llvm::StringRef manifest, llvm::StringRef object,
                           llvm::raw_ostream &output) {
  uint32_t checksum = llvm::crc32(0, llvm::arrayRefFromStringRef(manifest));
  checksum = llvm::crc32(checksum, llvm::arrayRefFromStringRef(object));
  output << llvm::StringRef("TPMLIRX\0", 8);
  llvm::support::endian::Writer writer(output, llvm::endianness::little);
  writer.write<uint32_t>(kAbiVersion);
  writer.write<uint32_t>(0);
  writer.write<uint64_t>(manifest.size());
  writer.write<uint64_t>(object.size());
  writer.write<uint32_t>(checksum);
  writer.write<uint32_t>(0);
  output << manifest << object;
}

llvm::Error tp::compileToArtifact(ModuleOp module,
                                  const CompileOptions &options,
                                  llvm::raw_ostream &output) {
  auto machine = createTargetMachine(options.targetCPU, options.optLevel);
  if (!machine)
    return machine.takeError();

  PassManager pm(module->getName());
  if (options.configure && failed(options.configure(pm)))
    return makeError("bad options for the pass manager");
  buildLowerToLLVMPipeline(pm);
  if (failed(pm.run(module)))
    return makeError("the program can't be lowered");
  if (options.emit == Emit::MLIR) {
    module.print(output);
    return llvm::Error::success();
  }
  std::string manifest = writeManifest(getManifest(module), **machine);
  if (options.emit == Emit::Manifest) {
    output << manifest << '\n';
    return llvm::Error::success();
  }

  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, llvmContext, "program");
  if (!llvmModule)
    return makeError("the program can't be translated to LLVM IR");
  optimize(*llvmModule, **machine, options.optLevel);
  if (options.emit == Emit::LLVM) {
    llvmModule->print(output, nullptr);
    return llvm::Error::success();
  }
  auto object = emitObject(*llvmModule, **machine);
  if (!object)
    return object.takeError();
  if (options.emit == Emit::Object) {
    output << *object;
    return llvm::Error::success();
  }
  auto shared = linkSharedObject(*object);
  if (!shared)
    return shared.takeError();
  writeContainer(manifest, *shared, output);
  return llvm::Error::success();
}
