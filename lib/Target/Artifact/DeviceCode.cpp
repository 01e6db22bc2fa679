//===- DeviceCode.cpp - Kernels for GPUs ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DeviceCode.h"
#include "ObjectFile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Threading.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "tp/CodeGen/Pipeline/CodeGenPipeline.h"
#include "tp/Support/TemporaryDirectory.h"
#include "tprt/abi.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"
#include <cstddef>

using namespace mlir;
using namespace mlir::tp;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

llvm::Expected<SmallVector<int32_t>> tp::parseDeviceTarget(StringRef target) {
  auto [device, list] = target.split(':');
  if (device != "cuda")
    return makeError("unknown target '" + target +
                     "'; expected 'cuda:' and architectures, as "
                     "'cuda:sm_80,sm_90'");
  SmallVector<StringRef> names;
  list.split(names, ',');
  SmallVector<int32_t> architectures;
  for (StringRef name : names) {
    int32_t number = kEmulatedArchitecture;
    if (name != "emulated" && (!name.consume_front("sm_") ||
                               name.getAsInteger(10, number) || number < 80))
      return makeError("unknown architecture in '" + target +
                       "'; expected 'sm_80' or newer");
    architectures.push_back(number);
  }
  llvm::sort(architectures);
  architectures.erase(llvm::unique(architectures), architectures.end());
  return architectures;
}

/// The path of a file of the CUDA toolkit, as "bin/ptxas"; empty if there is
/// none.
static std::string findInToolkit(StringRef file) {
  std::string folder = TP_CUDA_DIR;
  for (const char *variable : {"CUDA_PATH", "CUDA_HOME"})
    if (auto value = llvm::sys::Process::GetEnv(variable))
      folder = *value;
  SmallString<128> path(folder);
  llvm::sys::path::append(path, file);
  if (folder.empty() || !llvm::sys::fs::exists(path))
    return "";
  return path.str().str();
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createDeviceMachine(int32_t architecture, unsigned optLevel) {
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string name = "sm_" + std::to_string(architecture);
  auto machine = createTargetMachine(triple, name, "", optLevel);
  if (!machine)
    return makeError("no code for CUDA: " +
                     llvm::toString(machine.takeError()));
  return machine;
}

/// Links the functions that `module` needs from CUDA's device library.
static llvm::Error linkDeviceLibrary(llvm::Module &module) {
  std::string needed;
  for (llvm::Function &function : module)
    if (function.isDeclaration() && function.getName().starts_with("__nv_"))
      needed = function.getName().str();
  if (needed.empty())
    return llvm::Error::success();
  StringRef name = "nvvm/libdevice/libdevice.10.bc";
  std::string path = findInToolkit(name);
  if (path.empty())
    return makeError("'" + needed + "' is in '" + name +
                     "' of the CUDA toolkit, which isn't found; "
                     "CUDA_HOME says where it is");
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> library =
      llvm::parseIRFile(path, diagnostic, module.getContext());
  if (!library)
    return makeError("can't read '" + path +
                     "': " + diagnostic.getMessage().str());
  library->setTargetTriple(module.getTargetTriple());
  library->setDataLayout(module.getDataLayout());
  llvm::StringSet<> own;
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      own.insert(function.getName());
  if (llvm::Linker::linkModules(module, std::move(library),
                                llvm::Linker::LinkOnlyNeeded))
    return makeError("'" + path + "' can't be linked");
  for (llvm::Function &function : module) {
    if (function.isDeclaration() && function.getName().starts_with("__nv_"))
      return makeError("'" + path + "' has no '" + function.getName() + "'");
    if (!function.isDeclaration() && !own.contains(function.getName()))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  return llvm::Error::success();
}

/// A module with nothing but a copy of `kernels`.
static OwningOpRef<ModuleOp> copyToModule(gpu::GPUModuleOp kernels) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernels.getLoc());
  OpBuilder::atBlockEnd(module->getBody()).clone(*kernels);
  return module;
}

namespace {
/// The kernels for one architecture, in an LLVM context of their own, so that a
/// thread of their own can compile them.
struct DeviceModule {
  int32_t architecture;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::TargetMachine> machine;
};
} // namespace

/// LLVM IR of `kernels` for each architecture.
static llvm::Expected<std::vector<DeviceModule>>
translate(gpu::GPUModuleOp kernels, ArrayRef<int32_t> architectures,
          unsigned optLevel) {
  OwningOpRef<ModuleOp> module = copyToModule(kernels);
  PassManager pm(module->getContext());
  buildLowerKernelsToNVVMPipeline(pm);
  if (failed(pm.run(*module)))
    return makeError("the kernels can't be lowered");
  std::vector<DeviceModule> modules;
  for (int32_t architecture : architectures) {
    auto machine = createDeviceMachine(architecture, optLevel);
    if (!machine)
      return machine.takeError();
    auto context = std::make_unique<llvm::LLVMContext>();
    std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(
        *module->getOps<gpu::GPUModuleOp>().begin(), *context, "kernels");
    if (!llvmModule)
      return makeError("the kernels can't be translated to LLVM IR");
    modules.push_back({architecture, std::move(context), std::move(llvmModule),
                       std::move(*machine)});
  }
  return modules;
}

static llvm::Expected<std::string> emitPTX(DeviceModule &kernels,
                                           unsigned optLevel) {
  llvm::Module &module = *kernels.module;
  module.setTargetTriple(kernels.machine->getTargetTriple());
  module.setDataLayout(kernels.machine->createDataLayout());
  if (llvm::Error error = linkDeviceLibrary(module))
    return error;
  optimize(module, *kernels.machine, optLevel);
  auto ptx =
      emitFile(module, *kernels.machine, llvm::CodeGenFileType::AssemblyFile);
  if (!ptx)
    return ptx.takeError();
  return ptx->str().str();
}

llvm::Expected<std::string> tp::compileToPTX(gpu::GPUModuleOp kernels,
                                             int32_t architecture,
                                             unsigned optLevel) {
  auto modules = translate(kernels, architecture, optLevel);
  if (!modules)
    return modules.takeError();
  return emitPTX(modules->front(), optLevel);
}

static llvm::Expected<std::string> assemble(StringRef ptxas, StringRef ptx,
                                            int32_t architecture) {
  TemporaryDirectory directory;
  if (llvm::Error error = directory.create("tp-compile"))
    return error;
  std::string source = directory.getFile("kernels.ptx");
  std::string result = directory.getFile("kernels.cubin");
  if (llvm::Error error = writeTemporary(source, ptx))
    return error;
  std::string option = "-arch=sm_" + std::to_string(architecture);
  if (llvm::Error error = directory.run({ptxas, option, "-o", result, source}))
    return error;
  return readFile(result);
}

/// The kernels as a shared object of the host, which an emulator runs.
static llvm::Expected<std::string> compileToEmulate(gpu::GPUModuleOp kernels,
                                                    StringRef hostCPU,
                                                    unsigned optLevel) {
  OwningOpRef<ModuleOp> module = copyToModule(kernels);
  PassManager pm(module->getContext());
  buildEmulateKernelsPipeline(pm);
  if (failed(pm.run(*module)))
    return makeError("the kernels can't be lowered for the emulator");
  llvm::LLVMContext context;
  auto llvmModule = translateModuleToLLVMIR(*module, context, "kernels");
  if (!llvmModule)
    return makeError("the kernels can't be translated to LLVM IR");
  auto machine = createTargetMachine(hostCPU, optLevel);
  if (!machine)
    return machine.takeError();
  optimize(*llvmModule, **machine, optLevel);
  auto object = emitObject(*llvmModule, **machine);
  if (!object)
    return object.takeError();
  return linkSharedObject(*object);
}

llvm::Expected<std::vector<DeviceImage>>
tp::compileKernels(gpu::GPUModuleOp kernels, ArrayRef<int32_t> architectures,
                   StringRef hostCPU, unsigned optLevel,
                   llvm::function_ref<void(const llvm::Twine &)> warn) {
  std::vector<DeviceImage> images;
  std::string ptxas = findInToolkit("bin/ptxas");
  bool isEmulatedAlone =
      architectures == ArrayRef<int32_t>(kEmulatedArchitecture);
  if (ptxas.empty() && !isEmulatedAlone)
    warn("no 'bin/ptxas' in the CUDA toolkit, or no toolkit (CUDA_HOME): the "
         "artifact has PTX, which the driver compiles when it is loaded");
  if (llvm::is_contained(architectures, kEmulatedArchitecture)) {
    auto image = compileToEmulate(kernels, hostCPU, optLevel);
    if (!image)
      return image.takeError();
    images.push_back(
        {kEmulatedArchitecture, /*isPTX=*/false, std::move(*image)});
  }
  auto real = llvm::to_vector(
      llvm::make_filter_range(architectures, [](int32_t architecture) {
        return architecture != kEmulatedArchitecture;
      }));
  if (real.empty())
    return images;
  auto modules = translate(kernels, real, optLevel);
  if (!modules)
    return modules.takeError();
  // LLVM and ptxas take time, so they run for all architectures at once.
  struct Code {
    std::string ptx, cubin, error;
  };
  std::vector<Code> codes(real.size());
  parallelFor(kernels.getContext(), 0, real.size(), [&](size_t i) {
    auto finish = [&]() -> llvm::Error {
      auto ptx = emitPTX((*modules)[i], optLevel);
      if (!ptx)
        return ptx.takeError();
      codes[i].ptx = std::move(*ptx);
      if (ptxas.empty())
        return llvm::Error::success();
      auto cubin = assemble(ptxas, codes[i].ptx, real[i]);
      if (!cubin)
        return cubin.takeError();
      codes[i].cubin = std::move(*cubin);
      return llvm::Error::success();
    };
    if (llvm::Error error = finish())
      codes[i].error = llvm::toString(std::move(error));
  });
  std::string failures;
  for (auto [architecture, code] : llvm::zip_equal(real, codes))
    if (!code.error.empty())
      failures += (failures.empty() ? "sm_" : "\nsm_") +
                  std::to_string(architecture) + ": " + code.error;
  if (!failures.empty())
    return makeError(failures);
  for (auto [architecture, code] : llvm::zip_equal(real, codes)) {
    if (!ptxas.empty())
      images.push_back({architecture, /*isPTX=*/false, std::move(code.cubin)});
    // Drivers that are too old for the cubins take the PTX of the lowest
    // architecture, newer devices that of the highest one.
    if (ptxas.empty() || architecture == real.front() ||
        architecture == real.back())
      images.push_back({architecture, /*isPTX=*/true, std::move(code.ptx)});
  }
  return images;
}

void tp::addDeviceCode(llvm::Module &module, const DeviceCode &deviceCode,
                       StringRef symbol) {
  const auto &[images, kernels, sites] = deviceCode;
  llvm::LLVMContext &context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type *ptr = b.getPtrTy(), *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
  auto define = [&](llvm::Constant *value) {
    auto *global = new llvm::GlobalVariable(
        module, value->getType(), /*isConstant=*/true,
        llvm::GlobalValue::PrivateLinkage, value, "device_code");
    global->setAlignment(llvm::Align(16));
    return global;
  };
  auto defineText = [&](StringRef text, bool addNull) {
    return define(llvm::ConstantDataArray::getString(context, text, addNull));
  };
  auto defineList = [&](llvm::Type *type, ArrayRef<llvm::Constant *> elements) {
    return define(llvm::ConstantArray::get(
        llvm::ArrayType::get(type, elements.size()), elements));
  };
  auto defineNames = [&](ArrayRef<std::string> names) {
    SmallVector<llvm::Constant *> texts;
    for (const std::string &name : names)
      texts.push_back(defineText(name, /*addNull=*/true));
    return defineList(ptr, texts);
  };
  // The structures below are these of abi.h, member by member.
  using Image = tprt_device_image;
  static_assert(offsetof(Image, arch) == 0 && offsetof(Image, is_ptx) == 4 &&
                offsetof(Image, data) == 8 && offsetof(Image, size) == 16 &&
                sizeof(Image) == 24);
  using Code = tprt_device_code;
  static_assert(
      offsetof(Code, num_images) == 0 && offsetof(Code, images) == 8 &&
      offsetof(Code, num_kernels) == 16 && offsetof(Code, kernels) == 24 &&
      offsetof(Code, num_sites) == 32 && offsetof(Code, sites) == 40 &&
      sizeof(Code) == 48);
  auto *imageType = llvm::StructType::get(context, {i32, i32, ptr, i64});
  SmallVector<llvm::Constant *> list;
  for (const DeviceImage &image : images)
    list.push_back(llvm::ConstantStruct::get(
        imageType, {b.getInt32(image.architecture), b.getInt32(image.isPTX),
                    defineText(image.data, image.isPTX),
                    b.getInt64(image.data.size() + (image.isPTX ? 1 : 0))}));
  auto *code = llvm::ConstantStruct::getAnon(
      {b.getInt32(images.size()), defineList(imageType, list),
       b.getInt32(kernels.size()), defineNames(kernels),
       b.getInt32(sites.size()), defineNames(sites)});
  new llvm::GlobalVariable(module, code->getType(), /*isConstant=*/true,
                           llvm::GlobalValue::ExternalLinkage, code, symbol);
}
