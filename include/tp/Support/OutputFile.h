//===- OutputFile.h - Files that are written whole or not at all -*- C++
//-*-===//

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

/// A file that is written. What it is about depends on what `path` names:
/// - nothing, or a regular file: it is written aside, in the same folder, and
///   takes its name in commit(), after it is on the disk. Until then, and when
///   it is destroyed without, `path` stays as it was. A symbolic link remains
///   one, and the permissions of a file that is replaced are kept.
/// - a FIFO, a device, or "-" for standard output: it is written at once.
/// - an open file of this process, as /dev/stdout and /dev/fd/3 do: it is
///   written on from where it is, as by `>&3` of a shell.
/// Errors name the path and say why.
class OutputFile {
public:
  /// Fails where no file can be written in that place, a folder for instance.
  static llvm::Expected<OutputFile> create(StringRef path);
  OutputFile(OutputFile &&other);
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();

  raw_ostream &os();
  /// Ends the writing: everything has been taken by the disk, or there is an
  /// error. Of several files that belong together all are closed before the
  /// first is committed.
  llvm::Error close();
  /// Closes the file where that wasn't done, and gives it its name.
  llvm::Error commit();

private:
  explicit OutputFile(StringRef path) : path(path) {}
  llvm::Error fail(llvm::Error error) const;

  std::string path;
  /// What is renamed: `path`, or what the link of that name leads to.
  std::string target;
  std::optional<llvm::sys::fs::TempFile> aside;
  std::unique_ptr<llvm::raw_fd_ostream> stream;
};

/// Writes the file `path` by `write`. An error of `write` leaves it as it was.
llvm::Error writeFile(StringRef path,
                      llvm::function_ref<llvm::Error(raw_ostream &)> write);
/// The same of a text.
llvm::Error writeFile(StringRef path, StringRef text);

/// Flushes standard output; fails if something printed there was lost.
llvm::Error closeStandardOutput();

/// While one lives, a file is written once: a second time, by whatever name, is
/// an error, for what was written first would be lost. For tools whose user
/// names several outputs.
class DistinctOutputs {
public:
  DistinctOutputs();
  ~DistinctOutputs();
};

} // namespace mlir::tp

#endif // TP_SUPPORT_OUTPUTFILE_H
