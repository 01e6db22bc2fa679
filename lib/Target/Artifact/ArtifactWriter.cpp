//===- ArtifactWriter.cpp - Manifest and container ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Target/Artifact/ArtifactWriter.h"
#include "DeviceCode.h"
#include "ObjectFile.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "tp/CodeGen/Pipeline/CodeGenPipeline.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tprt/abi.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/ScopedPrinter.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace mlir::tp;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// The name of the function that the code for CPU `i` of the list exports.
static std::string getEntryName(size_t i) {
  return i == 0 ? TPRT_ENTRY_SYMBOL : TPRT_ENTRY_SYMBOL "_" + std::to_string(i);
}

/// A CPU whose code runs on all CPUs of the host's architecture.
static llvm::StringRef getBaselineCPU() {
  return llvm::Triple(llvm::sys::getProcessTriple()).isX86() ? "x86-64"
                                                             : "generic";
}

namespace {
/// What the artifact has code for.
struct Targets {
  /// The device's; empty without a device.
  llvm::SmallVector<int32_t> architectures = {};
  /// The CPUs.
  llvm::SmallVector<std::unique_ptr<llvm::TargetMachine>> machines = {};
};
} // namespace

static llvm::json::Object describeTarget(const llvm::TargetMachine &machine) {
  llvm::json::Array features;
  for (std::string &feature : getNeededFeatures(machine))
    features.push_back(std::move(feature));
  return llvm::json::Object{{"cpu", machine.getTargetCPU()},
                            {"features", std::move(features)}};
}

static std::string writeManifest(DictionaryAttr attr, const Targets &targets) {
  const auto &[architectures, machines] = targets;
  llvm::json::Object manifest = *toJSON(attr).getAsObject();
  manifest["schema"] = TPRT_MANIFEST_SCHEMA;
  manifest["producer"] = "tp-mlir " TP_VERSION;
  manifest["entry"] = getEntryName(0);
  llvm::json::Object target = describeTarget(*machines.front());
  target["triple"] = machines.front()->getTargetTriple().str();
  llvm::json::Array variants;
  for (auto [i, machine] : llvm::enumerate(llvm::drop_begin(machines))) {
    llvm::json::Object variant = describeTarget(*machine);
    variant["entry"] = getEntryName(i + 1);
    variants.push_back(std::move(variant));
  }
  if (!variants.empty())
    target["variants"] = std::move(variants);
  if (!architectures.empty()) {
    target["device"] = "cuda";
    target["architectures"] = llvm::json::Array(architectures);
  }
  manifest["target"] = std::move(target);
  return llvm::to_string(llvm::json::Value(std::move(manifest)));
}

static void writeContainer(llvm::StringRef manifest, llvm::StringRef object,
                           llvm::raw_ostream &output) {
  uint32_t checksum = llvm::crc32(0, llvm::arrayRefFromStringRef(manifest));
  checksum = llvm::crc32(checksum, llvm::arrayRefFromStringRef(object));
  static_assert(llvm::endianness::native == llvm::endianness::little);
  tprt_artifact_header header = {.magic = TPRT_ARTIFACT_MAGIC,
                                 .abi = TPRT_ABI_VERSION,
                                 .reserved0 = 0,
                                 .manifest_size = manifest.size(),
                                 .object_size = object.size(),
                                 .crc = checksum,
                                 .reserved1 = 0};
  output.write(reinterpret_cast<const char *>(&header), sizeof(header));
  output << manifest << object;
}

static llvm::Expected<Targets> getTargets(const CompileOptions &options) {
  Targets targets;
  auto &[architectures, machines] = targets;
  std::string targetCPU = options.targetCPU;
  if (!options.target.empty()) {
    auto parsed = parseDeviceTarget(options.target);
    if (!parsed)
      return parsed.takeError();
    architectures = *parsed;
    if (targetCPU == "native") // the host has little to do
      targetCPU = getBaselineCPU();
  }
  if (options.emit == Emit::PTX &&
      (architectures.size() != 1 ||
       architectures.front() == kEmulatedArchitecture))
    return makeError("PTX is for one CUDA architecture, not '" +
                     options.target + "'");

  llvm::SmallVector<llvm::StringRef> cpus;
  llvm::StringRef(targetCPU).split(cpus, ',');
  if (!architectures.empty() && cpus.size() > 1)
    return makeError("a program for CUDA has code for one CPU, not " +
                     llvm::Twine(cpus.size()));
  for (llvm::StringRef cpu : cpus) {
    auto machine = createTargetMachine(cpu, options.optLevel);
    if (!machine)
      return machine.takeError();
    machines.push_back(std::move(*machine));
  }
  if (machines.size() > 1 &&
      (options.emit == Emit::LLVM || options.emit == Emit::Object))
    return makeError("LLVM IR and objects are for one CPU, not " +
                     llvm::Twine(machines.size()));
  return targets;
}

/// The device's code; has images only if an artifact or an object is written.
static llvm::Expected<DeviceCode> getDeviceCode(gpu::GPUModuleOp kernels,
                                                const Targets &targets,
                                                const CompileOptions &options) {
  DeviceCode code;
  for (auto kernel : kernels.getOps<gpu::GPUFuncOp>())
    code.kernels.push_back(kernel.getName().str());
  for (auto site : kernels->getParentOfType<ModuleOp>()
                       ->getAttrOfType<ArrayAttr>(kSitesAttr)
                       .getAsRange<StringAttr>())
    code.sites.push_back(site.str());
  if (options.emit == Emit::Artifact || options.emit == Emit::Object) {
    auto compiled = compileKernels(kernels, targets.architectures,
                                   targets.machines.front()->getTargetCPU(),
                                   options.optLevel, options.warn);
    if (!compiled)
      return compiled.takeError();
    code.images = std::move(*compiled);
  }
  return code;
}

llvm::Error tp::compileToArtifact(ModuleOp module,
                                  const CompileOptions &options,
                                  llvm::raw_ostream &output) {
  auto targets = getTargets(options);
  if (!targets)
    return targets.takeError();
  bool hasDevice = !targets->architectures.empty();
  PassManager pm(module->getName());
  if (options.configure && failed(options.configure(pm)))
    return makeError("bad options for the pass manager");
  if (hasDevice)
    buildLowerToCUDAPipeline(pm);
  else
    buildLowerToLLVMPipeline(pm);
  if (failed(pm.run(module)))
    return makeError("the program can't be lowered");
  if (options.emit == Emit::MLIR) {
    module.print(output);
    return llvm::Error::success();
  }
  std::string manifest = writeManifest(getManifest(module), *targets);
  if (options.emit == Emit::Manifest) {
    output << manifest << '\n';
    return llvm::Error::success();
  }

  DeviceCode deviceCode;
  if (hasDevice) {
    auto kernels = *module.getOps<gpu::GPUModuleOp>().begin();
    if (options.emit == Emit::PTX) {
      auto ptx = compileToPTX(kernels, targets->architectures.front(),
                              options.optLevel);
      if (!ptx)
        return ptx.takeError();
      output << *ptx;
      return llvm::Error::success();
    }
    auto compiled = getDeviceCode(kernels, *targets, options);
    if (!compiled)
      return compiled.takeError();
    deviceCode = std::move(*compiled);
    kernels.erase();
  }

  llvm::SmallVector<llvm::SmallString<0>> objects;
  for (auto [i, machine] : llvm::enumerate(targets->machines)) {
    llvm::LLVMContext llvmContext;
    std::unique_ptr<llvm::Module> llvmModule =
        translateModuleToLLVMIR(module, llvmContext, "program");
    if (!llvmModule)
      return makeError("the program can't be translated to LLVM IR");
    llvmModule->getFunction(getEntryName(0))->setName(getEntryName(i));
    if (hasDevice)
      addDeviceCode(*llvmModule, deviceCode);
    optimize(*llvmModule, *machine, options.optLevel);
    if (options.emit == Emit::LLVM) {
      llvmModule->print(output, nullptr);
      return llvm::Error::success();
    }
    auto object = emitObject(*llvmModule, *machine);
    if (!object)
      return object.takeError();
    objects.push_back(std::move(*object));
  }
  if (options.emit == Emit::Object) {
    output << objects.front();
    return llvm::Error::success();
  }
  auto shared = linkSharedObject(objects);
  if (!shared)
    return shared.takeError();
  writeContainer(manifest, *shared, output);
  return llvm::Error::success();
}
