//===- ArtifactWriter.cpp - Compilation to an artifact --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Target/Artifact/ArtifactWriter.h"
#include "ArtifactManifest.h"
#include "DeviceCode.h"
#include "ObjectFile.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "tp/CodeGen/Pipeline/CodeGenPipeline.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tprt/abi.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/CRC.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace mlir::tp;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// A CPU whose code runs on all CPUs of the host's architecture.
static llvm::StringRef getBaselineCPU() {
  return llvm::Triple(llvm::sys::getProcessTriple()).isX86() ? "x86-64"
                                                             : "generic";
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

/// Lowers a program to the LLVM dialect.
static llvm::Error lower(ModuleOp module, bool hasDevice,
                         const CompileOptions &options) {
  PassManager pm(module->getName());
  pm.enableVerifier(false); // after each pass: a third of the time
  if (options.configure && failed(options.configure(pm)))
    return makeError("bad options for the pass manager");
  if (hasDevice)
    buildLowerToCUDAPipeline(pm);
  else
    buildLowerToLLVMPipeline(pm);
  if (failed(pm.run(module)) || failed(verify(module)))
    return makeError("the program can't be lowered");
  return llvm::Error::success();
}

/// Compiles program `number` for each CPU, and appends its objects; or, if
/// options.emit asks for a text of it, writes that and appends nothing.
static llvm::Error compile(ModuleOp module, size_t number,
                           const Targets &targets,
                           const CompileOptions &options,
                           llvm::SmallVectorImpl<llvm::SmallString<0>> &objects,
                           llvm::raw_ostream &output) {
  bool hasDevice = !targets.architectures.empty();
  DeviceCode deviceCode;
  if (hasDevice) {
    auto kernels = *module.getOps<gpu::GPUModuleOp>().begin();
    if (options.emit == Emit::PTX) {
      auto ptx = compileToPTX(kernels, targets.architectures.front(),
                              options.optLevel);
      if (!ptx)
        return ptx.takeError();
      output << *ptx;
      return llvm::Error::success();
    }
    auto compiled = getDeviceCode(kernels, targets, options);
    if (!compiled)
      return compiled.takeError();
    deviceCode = std::move(*compiled);
    kernels.erase();
  }
  for (auto [i, machine] : llvm::enumerate(targets.machines)) {
    llvm::LLVMContext llvmContext;
    std::unique_ptr<llvm::Module> llvmModule =
        translateModuleToLLVMIR(module, llvmContext, "program");
    if (!llvmModule)
      return makeError("the program can't be translated to LLVM IR");
    llvmModule->getFunction(TPRT_ENTRY_SYMBOL)
        ->setName(getEntryName(number, i, targets));
    if (hasDevice)
      addDeviceCode(*llvmModule, deviceCode, getDeviceCodeName(number));
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
  return llvm::Error::success();
}

llvm::Error tp::compileToArtifact(ArrayRef<ArtifactProgram> programs,
                                  const CompileOptions &options,
                                  llvm::raw_ostream &output) {
  bool takesSeveral =
      options.emit == Emit::Artifact || options.emit == Emit::Manifest;
  if (!takesSeveral && programs.size() != 1)
    return makeError("IR, objects and PTX are of one program, not " +
                     llvm::Twine(programs.size()));
  auto targets = getTargets(options);
  if (!targets)
    return targets.takeError();
  llvm::SmallVector<ProgramManifest> manifests;
  for (const ArtifactProgram &program : programs) {
    if (llvm::Error error =
            lower(program.module, !targets->architectures.empty(), options))
      return error;
    manifests.push_back({program.name, getManifest(program.module)});
  }
  if (options.emit == Emit::MLIR) {
    ModuleOp module = programs.front().module;
    module.print(output);
    return llvm::Error::success();
  }
  auto manifest = writeManifest(manifests, *targets);
  if (!manifest)
    return manifest.takeError();
  if (options.emit == Emit::Manifest) {
    output << *manifest << '\n';
    return llvm::Error::success();
  }

  llvm::SmallVector<llvm::SmallString<0>> objects;
  for (auto [number, program] : llvm::enumerate(programs))
    if (llvm::Error error =
            compile(program.module, number, *targets, options, objects, output))
      return error;
  if (options.emit == Emit::Object)
    output << objects.front();
  if (options.emit != Emit::Artifact)
    return llvm::Error::success();
  auto shared = linkSharedObject(objects);
  if (!shared)
    return shared.takeError();
  writeContainer(*manifest, *shared, output);
  return llvm::Error::success();
}
