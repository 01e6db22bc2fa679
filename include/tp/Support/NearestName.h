//===- NearestName.h - The name that was probably meant ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SUPPORT_NEARESTNAME_H
#define TP_SUPPORT_NEARESTNAME_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir::tp {

/// The candidate closest to `name` in spelling, or an empty string if none is
/// close enough to be the intended one.
StringRef findNearest(StringRef name, ArrayRef<StringRef> candidates);

/// "; did you mean 'x'?" for the nearest candidate, or an empty string.
std::string suggestNearest(StringRef name, ArrayRef<StringRef> candidates);

} // namespace mlir::tp

#endif // TP_SUPPORT_NEARESTNAME_H
