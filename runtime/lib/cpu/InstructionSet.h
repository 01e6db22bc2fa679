//===- InstructionSet.h - The instructions of products ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_CPU_INSTRUCTIONSET_H
#define TPRT_LIB_CPU_INSTRUCTIONSET_H

#include <string_view>

namespace tprt {

/// From the least to the most that tiles use. AmxBf16 includes Avx512Bf16.
enum class InstructionSet { Baseline, Avx2, Avx512, Avx512Bf16, AmxBf16 };

/// The best of this CPU, or a lesser one that the environment variable
/// TPRT_MAX_ISA names. Throws an input error if it names none.
InstructionSet getInstructionSet();

/// Its name, as TPRT_MAX_ISA has it.
std::string_view getInstructionSetName();

} // namespace tprt

#endif // TPRT_LIB_CPU_INSTRUCTIONSET_H
