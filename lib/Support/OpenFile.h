//===- OpenFile.h - Paths that are names of open files ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SUPPORT_OPENFILE_H
#define TP_LIB_SUPPORT_OPENFILE_H

#include "mlir/Support/LLVM.h"
#include <optional>
#include <string>

namespace mlir::tp {

/// The open file of this process that `path` is a name of, as /dev/fd/1 is.
std::optional<int> findDescriptor(StringRef path);

/// What a path leads to, as open(O_CREAT) follows it: the last one may not
/// exist, or be the name of an open file.
std::string resolveLinks(StringRef path);

} // namespace mlir::tp

#endif // TP_LIB_SUPPORT_OPENFILE_H
