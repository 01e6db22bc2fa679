//===- TemporaryDirectory.h - What is gone at the end -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SUPPORT_TEMPORARYDIRECTORY_H
#define TP_SUPPORT_TEMPORARYDIRECTORY_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::tp {

/// The system's directory for temporary files as messages name it: "'/tmp'", or
/// "'/scratch', which $TMPDIR names".
std::string describeTemporaryFolder();

/// A directory in the system's one for temporary files, which is removed with
/// its contents at the end of the scope. As long as there is one, SIGHUP,
/// SIGINT, SIGQUIT and SIGTERM end the programs that run() has started. They
/// take effect in this process once all such directories are removed.
class TemporaryDirectory {
public:
  TemporaryDirectory() = default;
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  ~TemporaryDirectory();
  /// `prefix` begins the directory's name.
  llvm::Error create(StringRef prefix);
  std::string getFile(const llvm::Twine &name) const;

  /// Runs a program by its path until it ends. The error has what the program
  /// has printed. The program is killed where this process, or the thread that
  /// calls this, ends before it.
  llvm::Error run(ArrayRef<StringRef> arguments) const;

private:
  llvm::SmallString<128> path;
};

} // namespace mlir::tp

#endif // TP_SUPPORT_TEMPORARYDIRECTORY_H
