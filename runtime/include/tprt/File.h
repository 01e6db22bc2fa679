//===- File.h - Mapped inputs, outputs that are whole -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_FILE_H
#define TPRT_FILE_H

#include "tprt/Error.h"

#include <csignal>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tprt {

/// A whole file, mapped read-only. Ranks that read the same pages share them.
class TPRT_API MappedFile {
public:
  /// Throws an input error naming the path when it can't be opened or isn't a
  /// regular file.
  static std::shared_ptr<const MappedFile> open(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::span<const std::byte> getBytes() const { return {data, size}; }
  const std::string &getPath() const { return path; }
  /// Whether only this process's user or root can have written the file.
  bool isOwn() const { return isOwned; }

private:
  MappedFile(std::string path, const std::byte *data, size_t size, bool isOwned)
      : path(std::move(path)), data(data), size(size), isOwned(isOwned) {}

  std::string path;
  const std::byte *data;
  size_t size;
  bool isOwned;
};

/// Replaces the handler of SIGBUS. From now on, if a page of a mapped file
/// can't be read because the file was truncated or its disk fails, the process
/// ends with `exitCode` and a message that begins with the tool's name. Only
/// for tools.
TPRT_API void reportLostPages(const char *tool, int exitCode);

/// An output. What happens depends on what `path` names:
/// - nothing, or a regular file: the data go to a temporary file in the same
///   directory. commit() renames it to `path` once its data are on the disk.
///   Until commit(), and if it is never called, `path` stays as it was. The
///   temporary file has no name before close() if the file system supports that
///   (O_TMPFILE). A symbolic link stays a link, and a replaced file's
///   permissions are kept.
/// - a FIFO or a device: the data go there at once. The constructor waits for
///   a FIFO's reader (endWaitsForReaders).
/// - an open file of this process, such as /dev/stdout or /dev/fd/3: it is
///   written from its current position, as with `>&3` in a shell. So is the
///   standard output, which `-` names.
/// Errors are input errors that name the path and say why.
class TPRT_API OutputFile {
public:
  /// Throws if no file can be written there, for instance because `path` is a
  /// directory. If `followsLinks` is false, a link is replaced: use this for
  /// paths that the user didn't give, since another user may have put a link
  /// there.
  explicit OutputFile(std::string path, bool followsLinks = true);
  ~OutputFile();
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;

  /// Appends.
  void write(const void *data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Finishes writing: from now on all data survive a loss of power. Close all
  /// files that belong together before you commit the first.
  void close();
  /// Closes the file if it isn't closed yet, and gives it its name.
  void commit();

private:
  std::string path;
  std::string target;        ///< `path`, or the target of a link of that name
  std::string temporaryPath; ///< empty: there is nothing to rename
  bool isNameless = false;   ///< close() makes a temporaryPath
  int descriptor = -1;
};

/// The input error that says why the output at `path` can't be written, by an
/// `errno`.
TPRT_API Error writeError(const std::string &path, int error);

/// Makes a directory and its missing parents. At the end of the scope it
/// removes the directories that it has made, unless they contain something.
class TPRT_API NewDirectory {
public:
  /// Throws an input error that says why the directory can't be made.
  explicit NewDirectory(const std::string &path);
  ~NewDirectory();
  NewDirectory(const NewDirectory &) = delete;
  NewDirectory &operator=(const NewDirectory &) = delete;

private:
  std::vector<std::string> made; ///< the deepest first
};

/// Throws an input error if one of `paths` can't be written, or if two of them
/// name the same file. Leaves nothing behind. Call this before the work whose
/// results are written.
TPRT_API void checkOutputs(std::span<const std::string> paths);

/// The descriptor of this process that an output's `path` names, like
/// /dev/stdout or `-`; nullopt for any other path.
TPRT_API std::optional<int> findOpenFile(const std::string &path);

/// Opens `path` to be written, with O_WRONLY, O_CLOEXEC and the other `flags`
/// of open(2), and waits for the reader of a FIFO. Throws an input error that
/// calls the file `name` and says why it can't be opened.
TPRT_API int openToWrite(const std::string &path, int flags,
                         const std::string &name);

/// From now on, a wait for a FIFO's reader ends with an error once `isWanted`
/// isn't 0, for instance after a signal.
TPRT_API void endWaitsForReaders(const volatile std::sig_atomic_t &isWanted);

/// Waits until the names in a directory would survive a loss of power.
TPRT_API void syncDirectory(const std::string &path);

/// `prefix` and six random letters and digits.
TPRT_API std::string makeTemporaryName(const std::string &prefix);

/// Recognizes "a PyTorch archive" or "a pickle" by the first bytes of the file
/// at `path`. Empty for any other file, or if there is none.
TPRT_API std::string describeTorchFile(const std::string &path);

} // namespace tprt

#endif // TPRT_FILE_H
