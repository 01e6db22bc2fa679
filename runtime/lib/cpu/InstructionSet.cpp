//===- InstructionSet.cpp - The instructions of products ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "cpu/InstructionSet.h"

#include "tprt/Error.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#if defined(__x86_64__)
#include <asm/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace tprt;

static constexpr std::string_view instructionSetNames[] = {
    "baseline", "avx2", "avx512", "avx512-bf16", "amx-bf16"};

/// Whether Linux lets this process use the registers of AMX.
static bool requestAmx() {
#if defined(__x86_64__) && defined(ARCH_REQ_XCOMP_PERM)
  constexpr int tileData = 18; // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, tileData) == 0;
#else
  return false;
#endif
}

static InstructionSet getBestInstructionSet() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    if (!__builtin_cpu_supports("avx512bf16"))
      return InstructionSet::Avx512;
    return __builtin_cpu_supports("amx-bf16") && requestAmx()
               ? InstructionSet::AmxBf16
               : InstructionSet::Avx512Bf16;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c"))
    return InstructionSet::Avx2;
#endif
  return InstructionSet::Baseline;
}

/// The one that tiles use: at most what TPRT_MAX_ISA names.
static InstructionSet chooseInstructionSet() {
  const InstructionSet own = getBestInstructionSet();
  const char *limit = std::getenv("TPRT_MAX_ISA");
  if (!limit || !*limit)
    return own;
  auto *name = std::ranges::find(instructionSetNames, limit);
  if (name == std::end(instructionSetNames)) {
    std::string all;
    for (std::string_view each : instructionSetNames)
      all.append(all.empty() ? "" : ", ").append(each);
    throw inputError("TPRT_MAX_ISA is '" + std::string(limit) +
                     "', not one of " + all);
  }
  return std::min(
      own, static_cast<InstructionSet>(name - std::begin(instructionSetNames)));
}

InstructionSet tprt::getInstructionSet() {
  static const InstructionSet chosen = chooseInstructionSet();
  return chosen;
}

std::string_view tprt::getInstructionSetName() {
  return instructionSetNames[static_cast<int>(getInstructionSet())];
}
