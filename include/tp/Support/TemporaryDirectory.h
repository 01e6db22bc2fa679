//===- TemporaryDirectory.h - Directories removed after use -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SUPPORT_TEMPORARYDIRECTORY_H
#define TP_SUPPORT_TEMPORARYDIRECTORY_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::tp {

/// The system's directory for temporary files, as text for messages: "'/tmp'",
/// or "'/scratch', which $TMPDIR names".
std::string describeTemporaryFolder();

/// A directory for temporary files, created in the system's one. It is removed
/// with its contents at the end of the scope. While one exists, SIGHUP, SIGINT,
/// SIGQUIT and SIGTERM end the programs that run() has started. They take
/// effect in this process once all such directories are removed.
class TemporaryDirectory {
public:
  TemporaryDirectory() = default;
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  ~TemporaryDirectory();
  /// `prefix` begins the directory's name.
  llvm::Error create(StringRef prefix);
  std::string getFile(const llvm::Twine &name) const;

  /// Runs the program at a path until it ends. The error contains the program's
  /// output. The program is killed if this process, or the calling thread, ends
  /// first.
  llvm::Error run(ArrayRef<StringRef> arguments) const;

private:
  llvm::SmallString<128> path;
};

} // namespace mlir::tp

#endif // TP_SUPPORT_TEMPORARYDIRECTORY_H
