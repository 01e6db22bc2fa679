//===- FuzzFile.h - Any bytes as a file -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_FUZZ_FUZZFILE_H
#define TPRT_UNITTESTS_FUZZ_FUZZFILE_H

#include "tprt/Error.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace tprt::fuzz {

inline std::string_view asText(const uint8_t *data, size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

inline void writeFile(const std::string &path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), bytes.size());
}

/// A file in memory, as long as this lives.
class MemoryFile {
public:
  explicit MemoryFile(std::string_view bytes)
      : descriptor(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor < 0 || ::write(descriptor, bytes.data(), bytes.size()) !=
                              static_cast<ssize_t>(bytes.size()))
      std::abort();
  }
  ~MemoryFile() { ::close(descriptor); }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;

  std::string getPath() const {
    return "/proc/self/fd/" + std::to_string(descriptor);
  }

private:
  const int descriptor;
};

/// A directory in memory that the process keeps for all inputs.
inline std::string makeDirectory() {
  static struct Directory {
    char path[32] = "/dev/shm/tprt-fuzz-XXXXXX";
    Directory() {
      if (!::mkdtemp(path))
        std::abort();
    }
    ~Directory() {
      std::error_code error;
      std::filesystem::remove_all(path, error);
    }
  } directory;
  return directory.path;
}

/// A file is read, or refused with an input error: every other exception ends
/// the process, which is a finding.
template <typename Read>
void readOrRefuse(Read read) {
  try {
    read();
  } catch (const Error &error) {
    if (error.getKind() == ErrorKind::Input)
      return;
    std::fprintf(stderr, "not an input error: %s\n", error.what());
    std::abort();
  }
}

/// Reads every byte, so that a sanitizer sees one that isn't there.
inline void touch(const void *data, size_t bytes) {
  static volatile unsigned char sink;
  auto *at = static_cast<const unsigned char *>(data);
  unsigned char sum = 0;
  for (size_t i = 0; i < bytes; ++i)
    sum += at[i];
  sink = sum;
}

} // namespace tprt::fuzz

#endif // TPRT_UNITTESTS_FUZZ_FUZZFILE_H
