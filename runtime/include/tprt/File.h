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

private:
  MappedFile(std::string path, const std::byte *data, size_t size)
      : path(std::move(path)), data(data), size(size) {}

  std::string path;
  const std::byte *data;
  size_t size;
};

/// An output file that appears under its name only when commit() is called;
/// until then, and when it is destroyed without, nothing is left at `path`.
class TPRT_API OutputFile {
public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;

  /// Appends; throws an input error naming the path when the disk doesn't take
  /// it.
  void write(const void *data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Waits until what was written would survive a loss of power.
  void sync();
  void commit();

private:
  [[noreturn]] void fail(const std::string &action);

  std::string path;
  std::string temporaryPath;
  int descriptor = -1;
};

/// Waits until the names in a directory would survive a loss of power.
TPRT_API void syncDirectory(const std::string &path);

/// `prefix` and six random letters and digits.
TPRT_API std::string makeTemporaryName(const std::string &prefix);

/// "a PyTorch archive", "a pickle", by the first bytes of the file at `path`;
/// empty for another file, and for none.
TPRT_API std::string describeTorchFile(const std::string &path);

} // namespace tprt

#endif // TPRT_FILE_H
