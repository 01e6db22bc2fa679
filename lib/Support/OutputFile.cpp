//===- OutputFile.cpp - Files that are written whole or not at all --------===//

#include "tp/Support/OutputFile.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <unistd.h>

using namespace mlir;
using namespace mlir::tp;
namespace fs = llvm::sys::fs;

namespace {
/// What was written while a DistinctOutputs lives.
struct Written {
  std::mutex mutex;
  bool isKept = false;
  llvm::StringSet<> paths;
  std::set<fs::UniqueID> files; ///< what was there before, of several names
};
} // namespace

static Written &getWritten() {
  static Written written;
  return written;
}

DistinctOutputs::DistinctOutputs() {
  std::lock_guard lock(getWritten().mutex);
  getWritten().isKept = true;
}

DistinctOutputs::~DistinctOutputs() {
  std::lock_guard lock(getWritten().mutex);
  getWritten().isKept = false;
  getWritten().paths.clear();
  getWritten().files.clear();
}

/// `target`, with one name for each folder.
static std::string makeCanonical(StringRef target) {
  StringRef folder = llvm::sys::path::parent_path(target);
  llvm::SmallString<256> whole;
  if (fs::real_path(folder.empty() ? "." : folder, whole))
    return target.str();
  llvm::sys::path::append(whole, llvm::sys::path::filename(target));
  return whole.str().str();
}

static llvm::Error noteWritten(StringRef path, StringRef target,
                               std::optional<fs::UniqueID> before) {
  Written &written = getWritten();
  std::lock_guard lock(written.mutex);
  if (!written.isKept)
    return llvm::Error::success();
  bool isNew = written.paths.insert(makeCanonical(target)).second;
  if (before)
    isNew &= written.files.insert(*before).second;
  if (isNew)
    return llvm::Error::success();
  return llvm::createStringError(
      "'" + path + "' is the name of two outputs; give each its own");
}

static llvm::Error getSystemError() {
  return llvm::errorCodeToError(
      std::error_code(errno, std::generic_category()));
}

static llvm::Error sync(int descriptor) {
  // Some file systems can't, and need not.
  if (llvm::sys::RetryAfterSignal(-1, ::fsync, descriptor) == 0 ||
      errno == EINVAL || errno == EROFS)
    return llvm::Error::success();
  return getSystemError();
}

/// Waits until the names in a folder would survive a loss of power.
static llvm::Error syncFolder(StringRef path) {
  std::string folder = llvm::sys::path::parent_path(path).str();
  int descriptor = llvm::sys::RetryAfterSignal(-1, [&] {
    return ::open(folder.empty() ? "." : folder.c_str(),
                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  });
  if (descriptor < 0) // EACCES: one that may be written and not read
    return errno == EACCES ? llvm::Error::success() : getSystemError();
  llvm::Error error = sync(descriptor);
  ::close(descriptor);
  return error;
}

/// The open file of this process that `path` is a name of, as /dev/fd/1 is.
static std::optional<int> findDescriptor(StringRef path) {
  llvm::SmallString<256> folder;
  if (fs::real_path(llvm::sys::path::parent_path(path), folder))
    return std::nullopt;
  std::string own = "/proc/" + std::to_string(::getpid()) + "/";
  int descriptor = 0;
  if (!folder.starts_with(own) || !folder.ends_with("/fd") ||
      llvm::sys::path::filename(path).getAsInteger(10, descriptor))
    return std::nullopt;
  return descriptor;
}

/// What a path leads to, as open(O_CREAT) follows it: the last one may not
/// exist, or be the name of an open file.
static std::string resolveLinks(StringRef path) {
  llvm::SmallString<256> target = path;
  for (int depth = 0; depth < 40 && fs::is_symlink_file(target); ++depth) {
    if (findDescriptor(target))
      break;
    char next[PATH_MAX];
    ssize_t length = ::readlink(target.c_str(), next, sizeof(next));
    if (length < 0)
      break;
    StringRef name(next, length);
    if (llvm::sys::path::is_relative(name)) {
      llvm::sys::path::remove_filename(target);
      llvm::sys::path::append(target, name);
    } else {
      target = name;
    }
  }
  return target.str().str();
}

llvm::Error OutputFile::fail(llvm::Error error) const {
  std::string why = llvm::toString(std::move(error));
  return llvm::createStringError(path == "-"
                                     ? "cannot write to standard output: " + why
                                     : "cannot write '" + path + "': " + why);
}

llvm::Expected<OutputFile> OutputFile::create(StringRef path) {
  OutputFile file(path);
  if (path == "-")
    return file;
  file.target = resolveLinks(path);
  if (std::optional<int> descriptor = findDescriptor(file.target)) {
    int copy = ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
      return file.fail(getSystemError());
    file.stream =
        std::make_unique<llvm::raw_fd_ostream>(copy, /*shouldClose=*/true);
    return file;
  }
  if (fs::is_directory(file.target))
    return file.fail(llvm::createStringError("it is a directory"));
  fs::file_status status;
  bool exists = !fs::status(file.target, status) && fs::exists(status);
  if (exists && !fs::is_regular_file(status)) {
    std::error_code code;
    file.stream = std::make_unique<llvm::raw_fd_ostream>(
        file.target, code, fs::CD_OpenExisting, fs::FA_Write, fs::OF_None);
    if (code)
      return file.fail(llvm::errorCodeToError(code));
    return file;
  }
  std::optional<fs::UniqueID> before;
  if (exists)
    before = status.getUniqueID();
  if (llvm::Error error = noteWritten(path, file.target, before))
    return std::move(error);
  auto aside = fs::TempFile::create(file.target + ".tmp-%%%%%%");
  if (!aside)
    return file.fail(aside.takeError());
  file.aside.emplace(std::move(*aside));
  if (exists)
    if (std::error_code code =
            fs::setPermissions(file.aside->FD, status.permissions()))
      return file.fail(llvm::errorCodeToError(code));
  file.stream = std::make_unique<llvm::raw_fd_ostream>(file.aside->FD,
                                                       /*shouldClose=*/false);
  return file;
}

OutputFile::OutputFile(OutputFile &&other)
    : path(std::move(other.path)), target(std::move(other.target)),
      aside(std::exchange(other.aside, std::nullopt)),
      stream(std::move(other.stream)) {}

OutputFile::~OutputFile() {
  // An error that nobody asked for would end the process.
  if (stream) {
    stream->flush();
    if (!aside)
      stream->close();
    stream->clear_error();
  }
  stream.reset();
  if (aside)
    llvm::consumeError(aside->discard());
}

raw_ostream &OutputFile::os() { return stream ? *stream : llvm::outs(); }

llvm::Error OutputFile::close() {
  if (path == "-")
    return closeStandardOutput();
  if (!stream)
    return llvm::Error::success();
  stream->flush();
  std::error_code code = stream->error();
  stream->clear_error();
  if (!aside) // its descriptor is the stream's own
    stream->close();
  if (!code)
    code = stream->error();
  stream->clear_error();
  stream.reset();
  if (code)
    return fail(llvm::errorCodeToError(code));
  if (aside)
    if (llvm::Error error = sync(aside->FD))
      return fail(std::move(error));
  return llvm::Error::success();
}

llvm::Error OutputFile::commit() {
  if (llvm::Error error = close())
    return error;
  if (!aside)
    return llvm::Error::success();
  // keep(target) would copy where it can't rename, which may end half-way.
  if (std::error_code code = fs::rename(aside->TmpName, target))
    return fail(llvm::errorCodeToError(code));
  llvm::Error error = aside->keep();
  aside.reset();
  if (error)
    return fail(std::move(error));
  if (llvm::Error error = syncFolder(target))
    return fail(std::move(error));
  return llvm::Error::success();
}

llvm::Error
mlir::tp::writeFile(StringRef path,
                    llvm::function_ref<llvm::Error(raw_ostream &)> write) {
  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  if (llvm::Error error = write(file->os()))
    return error;
  return file->commit();
}

llvm::Error mlir::tp::writeFile(StringRef path, StringRef text) {
  return writeFile(path, [&](raw_ostream &os) {
    os << text;
    return llvm::Error::success();
  });
}

llvm::Error mlir::tp::closeStandardOutput() {
  llvm::raw_fd_ostream &os = llvm::outs();
  os.flush();
  std::error_code code = os.error();
  os.clear_error();
  if (!code)
    return llvm::Error::success();
  return llvm::createStringError("cannot write to standard output: " +
                                 code.message());
}
