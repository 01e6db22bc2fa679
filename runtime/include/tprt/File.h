//===- File.h - Mapped input files, atomically written output files -*- C++
//-*-===//

#ifndef TPRT_FILE_H
#define TPRT_FILE_H

#include "tprt/Error.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace tprt {

/// A whole file, mapped read-only. Pages that several ranks read exist once.
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
  /// Whether nobody but this process's user, or root, can have written it.
  bool isOwn() const { return isOwned; }

private:
  MappedFile(std::string path, const std::byte *data, size_t size, bool isOwned)
      : path(std::move(path)), data(data), size(size), isOwned(isOwned) {}

  std::string path;
  const std::byte *data;
  size_t size;
  bool isOwned;
};

/// From now on the process ends with a message and `exitCode` where a page of a
/// mapped file can't be read, since the file has been cut or its disk fails;
/// otherwise SIGBUS ends it without a word. For tools, whose name the message
/// begins with: replaces the handler of that signal.
TPRT_API void reportLostPages(const char *tool, int exitCode);

/// A file that is written. What it is about depends on what `path` names:
/// - nothing, or a regular file: it is written aside, in the same directory,
///   and takes its name in commit(), after it is on the disk. Until then, and
///   when it is destroyed without, `path` stays as it was. A symbolic link
///   remains one, and the permissions of a file that is replaced are kept.
/// - a FIFO or a device: it is written at once.
/// - an open file of this process, as /dev/stdout and /dev/fd/3 do: it is
///   written on from where it is, as by `>&3` of a shell.
/// Errors are input errors that name the path and say why.
class TPRT_API OutputFile {
public:
  /// Throws where no file can be written there, a directory for instance. With
  /// `followsLinks` false a link is replaced: for paths that no user has given,
  /// where somebody else may have put it.
  explicit OutputFile(std::string path, bool followsLinks = true);
  ~OutputFile();
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;

  /// Appends.
  void write(const void *data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Ends the writing: everything would survive a loss of power. Of several
  /// files that belong together all are closed before the first is committed.
  void close();
  /// Closes the file where that wasn't done, and gives it its name.
  void commit();

private:
  std::string path;
  std::string target; ///< `path`, or what a link of that name leads to
  std::string temporaryPath; ///< empty: there is nothing to rename
  int descriptor = -1;
};

/// Throws an input error unless each of `paths` can be written, and no two of
/// them are one file, by whatever names: what was written first would be lost.
/// Leaves nothing.
/// To be called before the work whose results they take.
TPRT_API void checkOutputs(std::span<const std::string> paths);

/// Whether `path` names an open file of this process, as /dev/stdout does.
TPRT_API bool namesOpenFile(const std::string &path);

/// Waits until the names in a directory would survive a loss of power.
TPRT_API void syncDirectory(const std::string &path);

/// `prefix` and six random letters and digits.
TPRT_API std::string makeTemporaryName(const std::string &prefix);

/// "a PyTorch archive", "a pickle", by the first bytes of the file at `path`;
/// empty for another file, and for none.
TPRT_API std::string describeTorchFile(const std::string &path);

} // namespace tprt

#endif // TPRT_FILE_H
