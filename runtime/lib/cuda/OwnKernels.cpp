//===- OwnKernels.cpp - The runtime's own kernels for CUDA devices --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cuda/OwnKernels.h"

#include <optional>
#include <string_view>

using namespace tprt;
using namespace tprt::cuda;

// Embeds a file and a NUL, by the assembler.
#define TPRT_EMBED(NAME, FILE)                                                 \
  extern "C" const char NAME[], NAME##_end[];                                  \
  asm(".pushsection .rodata\n"                                                 \
      ".balign 64\n"                                                           \
      ".hidden " #NAME "\n"                                                    \
      ".hidden " #NAME "_end\n"                                                \
      ".global " #NAME "\n"                                                    \
      ".global " #NAME "_end\n" #NAME ": .incbin \"" TPRT_KERNEL_FOLDER        \
      "/" FILE "\"\n"                                                          \
      ".byte 0\n" #NAME "_end:\n"                                              \
      ".popsection\n");
// What the build has made of a .cu file.
#define TPRT_EMBED_KERNELS(NAME)                                               \
  TPRT_EMBED(tprt_##NAME##_ptx, #NAME "Kernels.ptx")                           \
  TPRT_EMBED(tprt_##NAME##_fatbin, #NAME "Kernels.fatbin")
TPRT_KERNEL_FILES(TPRT_EMBED_KERNELS)

/// What a .cu file was compiled to.
struct Kernels::File {
  File(std::string_view ptx, std::string_view fatbin)
      : ptx(ptx), fatbin(fatbin) {}

  /// Loads the machine code for the device or, if there is none or the driver
  /// is too old for it, the PTX. `name` is a kernel to name in errors.
  void load(const ContextPtr &context, const std::string &name);

  const std::string_view ptx, fatbin; ///< with a NUL
  std::once_flag flag;
  std::optional<Module> module;
};

void Kernels::File::load(const ContextPtr &context, const std::string &name) {
  if (ptx.size() <= 1) // the NUL
    throw executionError("libtprt was built without nvcc, so it lacks the "
                         "kernel '" +
                         name +
                         "'; configure with -DTPRT_NVCC=PATH and rebuild");
  module.emplace(
      context, std::vector<KernelImage>{
                   {"the machine code of libtprt's own kernels", fatbin.data()},
                   {"the PTX of libtprt's own kernels", ptx.data()}});
}

Kernels::Kernels(ContextPtr context) : context(std::move(context)) {
#define TPRT_FILE(NAME)                                                        \
  files.push_back(std::make_unique<File>(                                      \
      std::string_view(tprt_##NAME##_ptx, tprt_##NAME##_ptx_end),              \
      std::string_view(tprt_##NAME##_fatbin, tprt_##NAME##_fatbin_end)));
  TPRT_KERNEL_FILES(TPRT_FILE)
}

Kernels::~Kernels() = default;

void Kernels::launchBlocks(KernelFile file, const std::string &name,
                           const Blocks &blocks, const void *arguments,
                           CUstream stream) {
  if (blocks.count <= 0)
    return;
  File &loaded = *files[static_cast<size_t>(file)];
  std::call_once(loaded.flag, [&] { loaded.load(context, name); });
  loaded.module->getKernel(name).launch(
      {{static_cast<uint32_t>(blocks.count), 1, 1},
       {blocks.threads, 1, 1},
       blocks.sharedBytes},
      const_cast<void *const *>(&arguments), stream);
}
