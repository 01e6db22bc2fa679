//===- File.cpp - Mapped input files, atomically written output files -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/File.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>

using namespace tprt;

static Error systemError(const std::string &action, const std::string &path,
                         int error = errno) {
  return inputError("cannot " + action + " '" + path +
                    "': " + std::strerror(error));
}

Error tprt::writeError(const std::string &path, int error) {
  return inputError((path == "-" ? "cannot write to standard output"
                                 : "cannot write '" + path + "'") +
                    ": " + std::strerror(error));
}

/// Calls `call` again if a signal has interrupted it.
template <typename Call>
static int retry(Call call) {
  int result;
  do
    result = call();
  while (result < 0 && errno == EINTR);
  return result;
}

/// Syncs a file. Returns zero, or the error why its data might not survive a
/// loss of power.
static int sync(int descriptor) {
  if (retry([&] { return ::fsync(descriptor); }) == 0)
    return 0;
  // Some file systems don't support or need this.
  return errno == EINVAL || errno == EROFS ? 0 : errno;
}

/// The same for the names in a directory.
static int syncNames(const std::string &directory) {
  int descriptor = retry([&] {
    return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  });
  if (descriptor < 0) // EACCES: a directory that may be written but not read
    return errno == EACCES ? 0 : errno;
  int error = sync(descriptor);
  ::close(descriptor);
  return error;
}

std::string tprt::makeTemporaryName(const std::string &prefix) {
  static constexpr std::string_view letters =
      "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::string name = prefix;
  for (int i = 0; i < 6; ++i)
    name += letters[random() % letters.size()];
  return name;
}

void tprt::syncDirectory(const std::string &path) {
  if (int error = syncNames(path))
    throw writeError(path, error);
}

namespace {
/// An entry for a mapped file that a signal handler can look up. The list of
/// entries only grows; entries are reused.
struct Mapping {
  std::atomic<const MappedFile *> file{nullptr};
  Mapping *next = nullptr;
};
} // namespace

static std::atomic<Mapping *> mappings{nullptr};

static void noteMapping(const MappedFile &file) {
  for (Mapping *place = mappings; place; place = place->next) {
    const MappedFile *nobody = nullptr;
    if (place->file.compare_exchange_strong(nobody, &file))
      return;
  }
  auto *place = new Mapping;
  place->file = &file;
  place->next = mappings;
  while (!mappings.compare_exchange_weak(place->next, place))
    ;
}

static void forgetMapping(const MappedFile &file) {
  for (Mapping *place = mappings; place; place = place->next) {
    const MappedFile *found = &file;
    if (place->file.compare_exchange_strong(found, nullptr))
      return;
  }
}

static const char *toolName = "";
static int lostExitCode = 1;

/// Calls only functions that a signal handler may call.
static void explainLostPage(int signal, siginfo_t *info, void *) {
  auto print = [](std::string_view text) {
    [[maybe_unused]] ssize_t n =
        ::write(STDERR_FILENO, text.data(), text.size());
  };
  auto *address = static_cast<const std::byte *>(info->si_addr);
  for (Mapping *place = mappings; place; place = place->next) {
    const MappedFile *file = place->file;
    if (!file || address < file->getBytes().data() ||
        address >= file->getBytes().data() + file->getBytes().size())
      continue;
    print(toolName);
    print(": error: '");
    print(file->getPath());
    print("' can no longer be read: another process has cut it, or its disk "
          "fails\n");
    ::_exit(lostExitCode);
  }
  ::signal(signal, SIG_DFL); // not our page: the default action
}

void tprt::reportLostPages(const char *tool, int exitCode) {
  toolName = tool;
  lostExitCode = exitCode;
  struct sigaction action = {};
  action.sa_sigaction = explainLostPage;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

/// Whether only this process's user or root may write the file with this
/// status.
static bool isOwnedSafely(const struct stat &status) {
  return (status.st_uid == ::geteuid() || status.st_uid == 0) &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string &path) {
  // The system would take the text before the null for the path.
  if (path.find('\0') != std::string::npos)
    throw inputError("'" + path + "' isn't a path: it has a null character");
  // Opening a FIFO without a writer would block.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0)
    throw systemError("open", path);
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw inputError("'" + path + "' is not a regular file");
  }
  size_t size = status.st_size;
  bool isOwned = isOwnedSafely(status);
  void *data = nullptr;
  if (size > 0)
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  ::close(descriptor);
  if (data == MAP_FAILED)
    throw systemError("map", path);
  std::shared_ptr<const MappedFile> file(new MappedFile(
      path, static_cast<const std::byte *>(data), size, isOwned));
  noteMapping(*file);
  return file;
}

MappedFile::~MappedFile() {
  forgetMapping(*this);
  if (size > 0)
    ::munmap(const_cast<std::byte *>(data), size);
}

/// The open file of this process that `path` names, like /dev/fd/1.
static std::optional<int> findDescriptor(const std::filesystem::path &path) {
  std::error_code error;
  std::string directory =
      std::filesystem::canonical(path.parent_path(), error).string();
  std::string own = "/proc/" + std::to_string(::getpid()) + "/";
  if (error || !directory.starts_with(own) || !directory.ends_with("/fd"))
    return std::nullopt;
  std::string name = path.filename().string();
  const char *end = name.data() + name.size();
  int descriptor = 0;
  auto [stop, problem] = std::from_chars(name.data(), end, descriptor);
  if (problem != std::errc() || stop != end)
    return std::nullopt;
  return descriptor;
}

/// The target of an output's path, as open(O_CREAT) follows it. The target may
/// not exist, or may be the name of an open file.
static std::string resolveLinks(const std::string &path) {
  namespace fs = std::filesystem;
  fs::path target = path == "-" ? "/dev/stdout" : path;
  std::error_code error;
  for (int depth = 0; depth < 40 && fs::is_symlink(target, error); ++depth) {
    if (findDescriptor(target))
      break;
    fs::path next = fs::read_symlink(target, error);
    if (error)
      break;
    target = target.parent_path() / next; // an absolute `next` replaces it
  }
  return target.string();
}

std::optional<int> tprt::findOpenFile(const std::string &path) {
  return findDescriptor(resolveLinks(path));
}

static std::string getDirectory(const std::string &path) {
  std::string directory = std::filesystem::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

/// `path`, with its name shortened to leave room for a suffix.
static std::string shorten(const std::string &path) {
  constexpr size_t maxName = 255 - sizeof(".tmp-abcdef");
  size_t begin = path.rfind('/') + 1; // 0 without a directory
  return path.substr(0, begin) + path.substr(begin, maxName);
}

static std::string getOpenPath(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

/// A new file in `directory` that has no name yet, so nothing is left of it if
/// the process is killed. -1 if the system can't make one.
static int openNameless(const std::string &directory, mode_t mode) {
  int descriptor = retry([&] {
    return ::open(directory.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
  });
  // Without /proc it could never get a name.
  if (descriptor >= 0 && ::access(getOpenPath(descriptor).c_str(), F_OK) != 0) {
    ::close(descriptor);
    return -1;
  }
  return descriptor;
}

/// Calls `make` with names in the directory of `target` until one isn't taken.
/// Returns the result of `make`, and the name.
template <typename Make>
static std::pair<int, std::string> makeBeside(const std::string &target,
                                              Make make) {
  while (true) {
    std::string name = makeTemporaryName(shorten(target) + ".tmp-");
    int result = retry([&] { return make(name.c_str()); });
    if (result >= 0 || errno != EEXIST)
      return {result, name};
  }
}

OutputFile::OutputFile(std::string path, bool followsLinks)
    : path(std::move(path)),
      target(followsLinks ? resolveLinks(this->path) : this->path) {
  if (std::optional<int> open = findDescriptor(target)) {
    descriptor = ::fcntl(*open, F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0)
      throw writeError(this->path, errno);
    if ((::fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY) {
      ::close(std::exchange(descriptor, -1));
      throw writeError(this->path, EBADF);
    }
    return;
  }
  struct stat status = {};
  bool exists = ::lstat(target.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) // a name that is too long
    throw writeError(this->path, errno);
  if (exists && S_ISLNK(status.st_mode)) {
    if (followsLinks) // a cycle of links
      throw writeError(this->path, ELOOP);
    exists = false; // it is replaced
  }
  if (exists && S_ISDIR(status.st_mode))
    throw writeError(this->path, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor = openToWrite(target, /*flags=*/0, this->path);
    return;
  }
  mode_t mode = exists ? 0600 : 0666; // a private file must stay private
  descriptor = openNameless(getDirectory(target), mode);
  isNameless = descriptor >= 0;
  if (!isNameless) // unlike mkstemp, this leaves the mode to the umask
    std::tie(descriptor, temporaryPath) =
        makeBeside(target, [&](const char *name) {
          return ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        });
  int error = descriptor < 0 ? errno : 0;
  if (error == 0 && exists &&
      ::fchmod(descriptor, status.st_mode & 0777) != 0) {
    error = errno;
    ::close(descriptor);
    ::unlink(temporaryPath.c_str());
  }
  if (error != 0)
    throw writeError(this->path, error);
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path(std::move(other.path)), target(std::move(other.target)),
      temporaryPath(std::exchange(other.temporaryPath, {})),
      isNameless(other.isNameless),
      descriptor(std::exchange(other.descriptor, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (!temporaryPath.empty())
    ::unlink(temporaryPath.c_str());
}

void OutputFile::write(const void *data, size_t bytes) {
  const char *cursor = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t written = ::write(descriptor, cursor, bytes);
    if (written < 0) {
      if (errno == EINTR)
        continue;
      throw writeError(path, errno);
    }
    cursor += written;
    bytes -= written;
  }
}

void OutputFile::close() {
  if (descriptor < 0)
    return;
  int error = isNameless || !temporaryPath.empty() ? sync(descriptor) : 0;
  if (error == 0 && isNameless) {
    auto [result, name] = makeBeside(target, [&](const char *name) {
      return ::linkat(AT_FDCWD, getOpenPath(descriptor).c_str(), AT_FDCWD, name,
                      AT_SYMLINK_FOLLOW);
    });
    if (result == 0)
      temporaryPath = name;
    else
      error = errno;
  }
  // Linux closes a descriptor even if close() is interrupted.
  if (::close(std::exchange(descriptor, -1)) != 0 && errno != EINTR &&
      error == 0)
    error = errno;
  if (error != 0)
    throw writeError(path, error);
}

void OutputFile::commit() {
  close();
  if (temporaryPath.empty())
    return;
  if (::rename(temporaryPath.c_str(), target.c_str()) != 0)
    throw writeError(path, errno);
  temporaryPath.clear();
  if (int error = syncNames(getDirectory(target)))
    throw writeError(path, error);
}

static const volatile std::sig_atomic_t *isEndOfWaits = nullptr;

void tprt::endWaitsForReaders(const volatile std::sig_atomic_t &isWanted) {
  isEndOfWaits = &isWanted;
}

int tprt::openToWrite(const std::string &path, int flags,
                      const std::string &name) {
  flags |= O_WRONLY | O_CLOEXEC;
  struct stat status = {};
  bool isFifo = ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  // A wait in open() would miss a signal that comes before it.
  while (true) {
    int descriptor = retry([&] {
      return ::open(path.c_str(), isFifo ? flags | O_NONBLOCK : flags, 0666);
    });
    if (descriptor >= 0) {
      if (isFifo)
        ::fcntl(descriptor, F_SETFL,
                ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
      return descriptor;
    }
    if (!isFifo || errno != ENXIO)
      throw writeError(name, errno);
    if (isEndOfWaits && *isEndOfWaits)
      throw inputError("cannot write '" + name +
                       "': a signal has ended the wait for its reader");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

NewDirectory::NewDirectory(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::path missing = fs::path(path) / ""; // with or without a slash
       missing.has_relative_path() && !fs::exists(missing, error);
       missing = missing.parent_path())
    if (missing.has_filename())
      made.push_back(missing.string());
  fs::create_directories(path, error);
  if (!error)
    return;
  for (const std::string &directory : made)
    ::rmdir(directory.c_str());
  throw inputError("cannot create directory '" + path +
                   "': " + error.message());
}

NewDirectory::~NewDirectory() {
  for (const std::string &directory : made)
    ::rmdir(directory.c_str());
}

void tprt::checkOutputs(std::span<const std::string> paths) {
  struct Written {
    std::string path;
    bool isOpen = false; ///< whether it is written through a descriptor
  };
  std::map<std::string, std::string> known; // by their targets
  std::map<std::pair<dev_t, ino_t>, Written> before;
  for (const std::string &path : paths) {
    if (path == "-" && std::count(paths.begin(), paths.end(), path) > 1)
      throw inputError("'-' is given for two outputs; only one can be the "
                       "standard output");
    std::string target = resolveLinks(path);
    bool isOpen = findDescriptor(target).has_value();
    struct stat status = {};
    bool exists = ::stat(target.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
      if (::access(target.c_str(), W_OK) != 0)
        throw writeError(path, errno);
      continue; // opening a FIFO would wait for its reader
    }
    {
      OutputFile probe(path);
    }
    auto refuse = [&](const std::string &other) {
      throw inputError(other == path
                           ? "'" + path +
                                 "' is given for two outputs; give "
                                 "each a file of its own"
                           : "'" + path + "' and '" + other +
                                 "' are the same file; give each output a "
                                 "file of its own");
    };
    if (!isOpen) {
      std::error_code error;
      std::filesystem::path directory =
          std::filesystem::canonical(getDirectory(target), error);
      std::string whole =
          (directory / std::filesystem::path(target).filename()).string();
      if (auto [other, isNew] = known.emplace(whole, path); !isNew)
        refuse(other->second);
    }
    if (!exists)
      continue;
    auto [other, isNew] = before.emplace(
        std::pair(status.st_dev, status.st_ino), Written{path, isOpen});
    // A hard link, or a file that is both written through a descriptor and
    // replaced. If both paths are descriptors, their data just follow each
    // other.
    if (!isNew && !(isOpen && other->second.isOpen))
      refuse(other->second.path);
  }
}

std::string tprt::describeTorchFile(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return {};
  std::ifstream file(path, std::ios::binary);
  char bytes[4] = {};
  if (!file.read(bytes, sizeof(bytes)))
    return {};
  std::string_view head(bytes, sizeof(bytes));
  if (head == std::string_view("PK\x03\x04", 4))
    return "a zip archive, as torch.save, torch.export.save and torch.jit.save "
           "write";
  if (head.starts_with("\x80\x02") || head.starts_with("\x80\x04"))
    return "a pickle, as an old torch.save wrote";
  return {};
}
