//===- OpenFile.h - Paths that are names of open files ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SUPPORT_OPENFILE_H
#define TP_LIB_SUPPORT_OPENFILE_H

#include "mlir/Support/LLVM.h"
#include <optional>
#include <string>

namespace mlir::tp {

/// The descriptor of this process that `path` names, as /dev/fd/1 does.
std::optional<int> findDescriptor(StringRef path);

/// Follows the links of a path, as open(O_CREAT) does. The result need not
/// exist, and may be the name of an open file.
std::string resolveLinks(StringRef path);

} // namespace mlir::tp

#endif // TP_LIB_SUPPORT_OPENFILE_H
