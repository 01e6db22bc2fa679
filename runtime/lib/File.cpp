//===- File.cpp - Mapped input files, atomically written output files ----===//

#include "tprt/File.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace tprt;

static Error systemError(const std::string &action, const std::string &path) {
  return inputError("cannot " + action + " '" + path +
                    "': " + std::strerror(errno));
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
  int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    throw systemError("open", path);
  int result = ::fsync(descriptor);
  ::close(descriptor);
  // Some file systems can't, and need not.
  if (result != 0 && errno != EINVAL)
    throw systemError("write", path);
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    throw systemError("open", path);
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw inputError("'" + path + "' is not a regular file");
  }
  size_t size = status.st_size;
  void *data = nullptr;
  if (size > 0)
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  ::close(descriptor);
  if (data == MAP_FAILED)
    throw systemError("map", path);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<const std::byte *>(data), size));
}

MappedFile::~MappedFile() {
  if (size > 0)
    ::munmap(const_cast<std::byte *>(data), size);
}

OutputFile::OutputFile(std::string path) : path(std::move(path)) {
  do { // unlike mkstemp, this leaves the mode to the umask
    temporaryPath = makeTemporaryName(this->path + ".tmp-");
    descriptor = ::open(temporaryPath.c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EEXIST);
  if (descriptor < 0) {
    temporaryPath.clear();
    throw systemError("create", this->path);
  }
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path(std::move(other.path)),
      temporaryPath(std::exchange(other.temporaryPath, {})),
      descriptor(std::exchange(other.descriptor, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (!temporaryPath.empty())
    ::unlink(temporaryPath.c_str());
}

void OutputFile::fail(const std::string &action) {
  throw systemError(action, path);
}

void OutputFile::write(const void *data, size_t bytes) {
  const char *cursor = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t written = ::write(descriptor, cursor, bytes);
    if (written < 0) {
      if (errno == EINTR)
        continue;
      fail("write");
    }
    cursor += written;
    bytes -= written;
  }
}

void OutputFile::sync() {
  if (::fsync(descriptor) != 0)
    fail("write");
}

void OutputFile::commit() {
  int closed = ::close(std::exchange(descriptor, -1));
  if (closed != 0)
    fail("write");
  if (::rename(temporaryPath.c_str(), path.c_str()) != 0)
    fail("create");
  temporaryPath.clear();
}

std::string tprt::describeTorchFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  char bytes[4] = {};
  if (!file.read(bytes, sizeof(bytes)))
    return {};
  std::string_view head(bytes, sizeof(bytes));
  if (head == std::string_view("PK\x03\x04", 4))
    return "a zip archive, as torch.save and torch.jit.save write";
  if (head.starts_with("\x80\x02") || head.starts_with("\x80\x04"))
    return "a pickle, as an old torch.save wrote";
  return {};
}
