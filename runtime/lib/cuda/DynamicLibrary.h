//===- DynamicLibrary.h - Shared libraries loaded at run time ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One binary serves machines with and without NVIDIA's libraries: they are
// looked up by the dynamic linker's rules (LD_LIBRARY_PATH, ld.so.conf) when a
// program first needs them. What is declared here and in the headers beside
// this one are the few functions that the runtime calls;
// unittests/Cuda/HeadersTest.cpp compares the declarations with NVIDIA's.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_DYNAMICLIBRARY_H
#define TPRT_LIB_CUDA_DYNAMICLIBRARY_H

#include "tprt/Error.h"

namespace tprt::cuda {

/// A version as NVIDIA's libraries give theirs, taken apart.
struct Version {
  int32_t major = 0, minor = 0;

  bool operator==(const Version &) const = default;
  auto operator<=>(const Version &) const = default;
  std::string toString() const {
    return std::to_string(major) + "." + std::to_string(minor);
  }
};

/// What is loaded, and which versions will do.
struct LibraryInfo {
  std::string_view name;               ///< for people, "cuBLASLt"
  std::vector<std::string_view> files; ///< tried in this order
  Version needed;                      ///< this one or newer
};

/// A library, which stays loaded until the process ends.
class TPRT_API Library {
public:
  /// Throws an input error that names the library, the files tried, and the
  /// version needed.
  explicit Library(LibraryInfo info);

  /// The function `symbol`. Throws an input error where the library is too old
  /// to have it.
  template <typename Function>
  void find(const char *symbol, Function *&function) const {
    function = reinterpret_cast<Function *>(findSymbol(symbol));
  }

  /// Where the library is too old to have it, `function` is null.
  template <typename Function>
  void findOptional(const char *symbol, Function *&function) const {
    function = reinterpret_cast<Function *>(lookUp(symbol));
  }

  /// Throws an input error unless `found` will do.
  void checkVersion(Version found) const;

private:
  void *lookUp(const char *symbol) const;
  void *findSymbol(const char *symbol) const;

  LibraryInfo info;
  void *handle = nullptr;
};

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_DYNAMICLIBRARY_H
