//===- OutputFile.h - Files written completely or not at all ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_SUPPORT_OUTPUTFILE_H
#define TP_SUPPORT_OUTPUTFILE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <optional>

namespace mlir::tp {

/// An output file. The kind of file that `path` names decides how it is
/// written:
/// - no file, or a regular file: the data go to a temporary file in the same
///   folder. commit() renames it to `path` after its data are on the disk. If
///   commit() isn't called, `path` is unchanged. A symbolic link stays a link,
///   and a replaced file's permissions are kept.
/// - a FIFO, a device, or "-" for standard output: the data go there directly.
/// - an open file of this process, such as /dev/stdout or /dev/fd/3: the data
///   go to its current position, as with `>&3` in a shell.
/// Errors name the path and give the reason.
class OutputFile {
public:
  /// Fails if no file can be written there, for instance because `path` is a
  /// folder.
  static llvm::Expected<OutputFile> create(StringRef path);
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  raw_ostream &os();
  /// Ends the writing. Fails unless all data are written, and, for a temporary
  /// file, are on the disk. Close all files that belong together before you
  /// commit the first.
  llvm::Error close();
  /// Closes the file if it isn't closed yet, and gives it its name.
  llvm::Error commit();

private:
  explicit OutputFile(StringRef path) : path(path) {}
  llvm::Error fail(llvm::Error error) const;

  std::string path;
  /// The final name: `path`, or the target of the link of that name.
  std::string target;
  std::optional<llvm::sys::fs::TempFile> aside;
  std::unique_ptr<llvm::raw_fd_ostream> stream;
};

/// Writes the file `path` with `write`. If `write` fails, the file is
/// unchanged.
llvm::Error writeFile(StringRef path,
                      llvm::function_ref<llvm::Error(raw_ostream &)> write);
/// Writes `text` to the file `path`.
llvm::Error writeFile(StringRef path, StringRef text);

/// Writes texts to the files of their paths, to all of them or, if one can't be
/// written, to none. An empty path is left out.
llvm::Error writeFiles(ArrayRef<std::pair<StringRef, StringRef>> texts);

/// Flushes standard output; fails if something printed there was lost.
llvm::Error closeStandardOutput();

/// While an object of this class exists, each file is written at most once, and
/// no file that was read since then. Another output to such a file, under any
/// name, is an error, because the first one or the input would be lost. For
/// tools whose users name several files.
class DistinctOutputs {
public:
  DistinctOutputs();
  ~DistinctOutputs();
  /// Says that `path` is read. readInput() says so by itself.
  static void noteInput(StringRef path);
};

} // namespace mlir::tp

#endif // TP_SUPPORT_OUTPUTFILE_H
