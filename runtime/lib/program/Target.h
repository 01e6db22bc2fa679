//===- Target.h - Compatibility of machines and code ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_PROGRAM_TARGET_H
#define TPRT_LIB_PROGRAM_TARGET_H

#include "tprt/Manifest.h"

namespace tprt {

/// The last variant of the code that this machine can run, as an index of
/// Program::entries. Throws an input error if the manifest's target is another
/// architecture, or if all variants need CPU features that this machine doesn't
/// have. This checks the features that code generators use by default (vector,
/// bit manipulation), but not those that only privileged or special instructions
/// need.
size_t chooseCode(const Manifest &manifest);

} // namespace tprt

#endif // TPRT_LIB_PROGRAM_TARGET_H
