//===- Passes.td - Code generation passes ------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of lib/CodeGen, with one file for each of its folders.
//
//===----------------------------------------------------------------------===//

#ifndef TP_CODEGEN_PASSES_TD
#define TP_CODEGEN_PASSES_TD

include "tp/CodeGen/NNToLinalgPasses.td"
include "tp/CodeGen/ProgramPasses.td"
include "tp/CodeGen/FusionPasses.td"
include "tp/CodeGen/LoopsPasses.td"
include "tp/CodeGen/ArenaPasses.td"
include "tp/CodeGen/CPUPasses.td"
include "tp/CodeGen/GPUPasses.td"
include "tp/CodeGen/PipelinePasses.td"

#endif // TP_CODEGEN_PASSES_TD
