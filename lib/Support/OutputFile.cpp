//===- OutputFile.cpp - Files written completely or not at all ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Support/OutputFile.h"
#include "OpenFile.h"
#include "tp/Support/MemoryFiles.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <unistd.h>

using namespace mlir;
using namespace mlir::tp;
namespace fs = llvm::sys::fs;

namespace {
/// The files that were written since a DistinctOutputs was created.
struct Written {
  std::mutex mutex;
  bool isKept = false;
  llvm::StringSet<> paths;
  std::set<fs::UniqueID> files; ///< replaced files, which may have more names
  std::set<fs::UniqueID> open;  ///< files written through a descriptor
  std::set<fs::UniqueID> inputs;
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
  getWritten().open.clear();
  getWritten().inputs.clear();
}

static std::optional<fs::UniqueID> getRegularFile(const Twine &path) {
  fs::file_status status;
  if (fs::status(path, status) || !fs::is_regular_file(status))
    return std::nullopt;
  return status.getUniqueID();
}

void DistinctOutputs::noteInput(StringRef path) {
  Written &written = getWritten();
  std::lock_guard lock(written.mutex);
  if (written.isKept)
    if (std::optional<fs::UniqueID> file = getRegularFile(path))
      written.inputs.insert(*file);
}

/// Fails if the output `target` would replace an input.
static llvm::Error checkIsNoInput(StringRef target) {
  Written &written = getWritten();
  std::lock_guard lock(written.mutex);
  std::optional<fs::UniqueID> file = getRegularFile(target);
  if (!file || !written.inputs.count(*file))
    return llvm::Error::success();
  return llvm::createStringError(
      "it is an input, too; give the output a file of its own");
}

/// `target`, with a unique name for its folder.
static std::string makeCanonical(StringRef target) {
  StringRef folder = llvm::sys::path::parent_path(target);
  llvm::SmallString<256> whole;
  if (fs::real_path(folder.empty() ? "." : folder, whole))
    return target.str();
  llvm::sys::path::append(whole, llvm::sys::path::filename(target));
  return whole.str().str();
}

static llvm::Error refuse(StringRef path) {
  return llvm::createStringError(
      "'" + path + "' is given for two outputs; give each a file of its own");
}

static llvm::Error noteWritten(StringRef path, StringRef target,
                               std::optional<fs::UniqueID> before) {
  Written &written = getWritten();
  std::lock_guard lock(written.mutex);
  if (!written.isKept)
    return llvm::Error::success();
  bool isNew = written.paths.insert(makeCanonical(target)).second;
  if (before)
    isNew &=
        written.files.insert(*before).second && !written.open.count(*before);
  return isNew ? llvm::Error::success() : refuse(path);
}

/// Several outputs may go through one descriptor, one after the other.
static llvm::Error noteOpen(StringRef path, int descriptor) {
  Written &written = getWritten();
  std::lock_guard lock(written.mutex);
  fs::file_status status;
  if (!written.isKept || fs::status(descriptor, status) ||
      !fs::is_regular_file(status))
    return llvm::Error::success();
  written.open.insert(status.getUniqueID());
  return written.files.count(status.getUniqueID()) ? refuse(path)
                                                   : llvm::Error::success();
}

static llvm::Error getSystemError() {
  return llvm::errorCodeToError(
      std::error_code(errno, std::generic_category()));
}

static llvm::Error sync(int descriptor) {
  // Some file systems can't sync, and needn't.
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
  if (descriptor < 0) // EACCES: the folder may be written but not read
    return errno == EACCES ? llvm::Error::success() : getSystemError();
  llvm::Error error = sync(descriptor);
  ::close(descriptor);
  return error;
}

/// `path`, with its name shortened to leave room for a suffix.
static std::string shorten(StringRef path) {
  constexpr size_t kMaxName = 255 - sizeof(".tmp-abcdef");
  StringRef name = path.substr(path.rfind('/') + 1); // npos + 1 is 0
  return path.drop_back(name.size() - std::min(name.size(), kMaxName)).str();
}

llvm::Error OutputFile::fail(llvm::Error error) const {
  std::string why = llvm::toString(std::move(error));
  return llvm::createStringError(path == "-"
                                     ? "cannot write to standard output: " + why
                                     : "cannot write '" + path + "': " + why);
}

llvm::Expected<OutputFile> OutputFile::create(StringRef path) {
  OutputFile file(path);
  if (path == "-") {
    if (llvm::Error error = noteOpen(path, STDOUT_FILENO))
      return std::move(error);
    return file;
  }
  file.target = resolveLinks(path);
  if (std::optional<int> descriptor = findDescriptor(file.target)) {
    int copy = ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
      return file.fail(getSystemError());
    if ((::fcntl(copy, F_GETFL) & O_ACCMODE) == O_RDONLY) {
      ::close(copy);
      errno = EBADF;
      return file.fail(getSystemError());
    }
    if (llvm::Error error = noteOpen(path, copy)) {
      ::close(copy);
      return std::move(error);
    }
    file.stream =
        std::make_unique<llvm::raw_fd_ostream>(copy, /*shouldClose=*/true);
    return file;
  }
  if (fs::is_directory(file.target))
    return file.fail(llvm::createStringError("it is a directory"));
  if (fs::is_symlink_file(file.target)) // a cycle of links
    return file.fail(llvm::errorCodeToError(
        std::make_error_code(std::errc::too_many_symbolic_link_levels)));
  fs::file_status status;
  std::error_code unknown = fs::status(file.target, status);
  if (unknown && unknown != std::errc::no_such_file_or_directory)
    return file.fail(
        llvm::errorCodeToError(unknown)); // for example, the name is too long
  bool exists = !unknown;
  if (exists && !fs::is_regular_file(status)) {
    std::error_code code;
    file.stream = std::make_unique<llvm::raw_fd_ostream>(
        file.target, code, fs::CD_OpenExisting, fs::FA_Write, fs::OF_None);
    if (code) {
      file.stream->clear_error();
      file.stream.reset(); // has no descriptor to close
      return file.fail(llvm::errorCodeToError(code));
    }
    return file;
  }
  std::optional<fs::UniqueID> before;
  if (exists)
    before = status.getUniqueID();
  if (llvm::Error error = noteWritten(path, file.target, before))
    return std::move(error);
  if (llvm::Error error = checkIsNoInput(file.target))
    return file.fail(std::move(error));
  // The temporary file of a private file must be private, too.
  auto aside = fs::TempFile::create(shorten(file.target) + ".tmp-%%%%%%",
                                    exists ? fs::owner_read | fs::owner_write
                                           : fs::all_read | fs::all_write);
  if (!aside)
    return file.fail(aside.takeError());
  file.aside.emplace(std::move(*aside));
  if (exists)
    if (std::error_code code = fs::setPermissions(
            file.aside->FD, status.permissions() & fs::all_all))
      return file.fail(llvm::errorCodeToError(code));
  file.stream = std::make_unique<llvm::raw_fd_ostream>(file.aside->FD,
                                                       /*shouldClose=*/false);
  return file;
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path(std::move(other.path)), target(std::move(other.target)),
      aside(std::exchange(other.aside, std::nullopt)),
      stream(std::move(other.stream)) {}

OutputFile::~OutputFile() {
  // An unchecked error of the stream would end the process.
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
  if (!aside) // the stream owns its descriptor
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
  // It may have been read since this object was created.
  if (llvm::Error error = checkIsNoInput(target))
    return fail(std::move(error));
  // keep(target) would copy if it can't rename, and a copy may stop half-way.
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
  if (MemoryFiles *files = MemoryFiles::getCurrent();
      files && files->isOutput(path)) {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (llvm::Error error = write(os))
      return error;
    files->setOutput(path, std::move(text));
    return llvm::Error::success();
  }
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

llvm::Error
mlir::tp::writeFiles(ArrayRef<std::pair<StringRef, StringRef>> texts) {
  MemoryFiles *files = MemoryFiles::getCurrent();
  SmallVector<OutputFile, 2> outputs;
  for (auto [path, text] : texts) {
    if (path.empty() || (files && files->isOutput(path)))
      continue;
    auto output = OutputFile::create(path);
    if (!output)
      return output.takeError();
    output->os() << text;
    outputs.push_back(std::move(*output));
  }
  for (OutputFile &output : outputs)
    if (llvm::Error error = output.close())
      return error;
  for (OutputFile &output : outputs)
    if (llvm::Error error = output.commit())
      return error;
  for (auto [path, text] : texts)
    if (files && files->isOutput(path))
      files->setOutput(path, text.str());
  return llvm::Error::success();
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
