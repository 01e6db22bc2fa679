//===- DeviceImage.cpp - What PTX and cubins say --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DeviceImage.h"

#include "Fake.h"

#include <cstdio>
#include <cstring>
#include <elf.h>

using namespace tprt;
using namespace tprt::cuda;
using namespace tprt::fake;

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

/// A driver of CUDA 12.3 takes PTX up to version 8.3.
CUresult fake::checkPtx(const std::string &ptx) {
  const Settings &settings = getSettings();
  int major = 0, minor = 0, target = 0;
  size_t version = ptx.find(".version "), aim = ptx.find(".target sm_");
  if (version == std::string::npos ||
      std::sscanf(ptx.c_str() + version, ".version %d.%d", &major, &minor) != 2)
    return CUDA_ERROR_INVALID_PTX;
  if (aim != std::string::npos)
    std::sscanf(ptx.c_str() + aim, ".target sm_%d", &target);
  if ((major + 4) * 1000 + minor * 10 > settings.driverVersion)
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  if (settings.architecture > 0 && target > settings.architecture)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  return CUDA_SUCCESS;
}

std::optional<KernelLimits> fake::findPtxLimits(const std::string &ptx,
                                                const std::string &name) {
  size_t entry = ptx.find(".entry " + name + "(");
  if (entry == std::string::npos)
    return std::nullopt;
  // Between the parameters and the body are the limits.
  std::string head = ptx.substr(entry, ptx.find('{', entry) - entry);
  KernelLimits limits;
  if (size_t at = head.find(".maxntid "); at != std::string::npos) {
    uint32_t sizes[3] = {1, 1, 1};
    std::sscanf(head.c_str() + at, ".maxntid %u, %u, %u", &sizes[0], &sizes[1],
                &sizes[2]);
    limits.maxThreads = sizes[0] * sizes[1] * sizes[2];
  }
  if (size_t at = head.find(".maxnreg "); at != std::string::npos)
    std::sscanf(head.c_str() + at, ".maxnreg %u", &limits.registers);
  return limits;
}

//===----------------------------------------------------------------------===//
// Cubins
//===----------------------------------------------------------------------===//

bool fake::isObject(const void *data) {
  return std::memcmp(data, ELFMAG, SELFMAG) == 0;
}

bool fake::isCubin(const void *data) {
  return isObject(data) &&
         static_cast<const Elf64_Ehdr *>(data)->e_machine == EM_CUDA;
}

/// Calls `callback` with the number and the value of each attribute of a
/// section .nv.info that has more than two bytes.
template <typename Callback>
static void forEachAttribute(const char *data, size_t bytes,
                             Callback callback) {
  constexpr unsigned char hasSize = 4;
  for (size_t at = 0; at + 4 <= bytes;) {
    auto format = static_cast<unsigned char>(data[at]),
         number = static_cast<unsigned char>(data[at + 1]);
    uint16_t size = 0;
    if (format == hasSize) {
      std::memcpy(&size, data + at + 2, sizeof(size));
      callback(number, reinterpret_cast<const uint32_t *>(data + at + 4));
    }
    at += 4 + size;
  }
}

Cubin fake::readCubin(const void *data) {
  constexpr unsigned char maxThreads = 0x05, numRegisters = 0x2f;
  auto *base = static_cast<const char *>(data);
  auto *header = static_cast<const Elf64_Ehdr *>(data);
  Cubin cubin;
  cubin.isOfCuda13 = header->e_ident[EI_ABIVERSION] >= 8;
  cubin.architecture = (header->e_flags >> (cubin.isOfCuda13 ? 8 : 0)) & 0xff;
  if (header->e_shnum == 0)
    return cubin;
  auto *sections = reinterpret_cast<const Elf64_Shdr *>(base + header->e_shoff);
  auto getData = [&](uint32_t section) {
    return base + sections[section].sh_offset;
  };
  auto getName = [&](uint32_t section) -> std::string {
    return getData(header->e_shstrndx) + sections[section].sh_name;
  };
  for (uint32_t i = 0; i < header->e_shnum; ++i)
    if (std::string name = getName(i); name.starts_with(".text."))
      cubin.kernels[name.substr(6)];
  for (uint32_t i = 0; i < header->e_shnum; ++i) {
    std::string name = getName(i);
    if (name == ".nv.info") {
      const Elf64_Shdr &symbols = sections[sections[i].sh_link];
      auto *table =
          reinterpret_cast<const Elf64_Sym *>(base + symbols.sh_offset);
      forEachAttribute(getData(i), sections[i].sh_size,
                       [&](unsigned char number, const uint32_t *words) {
                         if (number != numRegisters)
                           return;
                         auto kernel =
                             cubin.kernels.find(getData(symbols.sh_link) +
                                                table[words[0]].st_name);
                         if (kernel != cubin.kernels.end())
                           kernel->second.registers = words[1];
                       });
    } else if (name.starts_with(".nv.info.")) {
      forEachAttribute(getData(i), sections[i].sh_size,
                       [&](unsigned char number, const uint32_t *words) {
                         if (number == maxThreads)
                           cubin.kernels[name.substr(9)].maxThreads =
                               words[0] * words[1] * words[2];
                       });
    }
  }
  return cubin;
}

CUresult fake::checkCubin(const Cubin &cubin) {
  const Settings &settings = getSettings();
  if (cubin.isOfCuda13 && settings.driverVersion < 13000)
    return CUDA_ERROR_INVALID_IMAGE;
  if (cubin.architecture / 10 != settings.architecture / 10 ||
      cubin.architecture > settings.architecture)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  return cubin.kernels.empty() ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}
