//===- DynamicLibrary.h - Shared libraries loaded at run time ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One binary works on machines with and without NVIDIA's libraries. They are
// looked up by the dynamic linker's rules (LD_LIBRARY_PATH, ld.so.conf) when a
// program first needs them, and then in the folders of LibraryFolders.h. This
// folder's headers declare only the functions that the runtime calls.
// unittests/Cuda/HeadersTest.cpp compares the declarations with NVIDIA's.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_CUDA_DYNAMICLIBRARY_H
#define TPRT_LIB_CUDA_DYNAMICLIBRARY_H

#include "tprt/Error.h"

namespace tprt::cuda {

/// A version number, split into its parts.
struct Version {
  int32_t major = 0, minor = 0;

  bool operator==(const Version &) const = default;
  auto operator<=>(const Version &) const = default;
  std::string toString() const {
    return std::to_string(major) + "." + std::to_string(minor);
  }
};

/// The library to load, and the versions that are accepted.
struct LibraryInfo {
  std::string_view name;               ///< for people, "cuBLASLt"
  std::vector<std::string_view> files; ///< tried in this order
  Version needed;                      ///< the oldest accepted version
  /// Libraries that it loads later by these names, which may have wildcards.
  /// Those that are found are loaded with it. The linker then finds them,
  /// wherever they are, because it knows loaded libraries by their names.
  std::vector<std::string_view> companions = {};
};

/// A library, which stays loaded until the process ends.
class TPRT_API Library {
public:
  /// Throws an input error that names the library, the version needed, and the
  /// files and folders that were tried.
  explicit Library(LibraryInfo info);

  /// Finds the function `symbol`. Throws an input error if the library is too
  /// old to have it.
  template <typename Function>
  void find(const char *symbol, Function *&function) const {
    function = reinterpret_cast<Function *>(findSymbol(symbol));
  }

  /// The same, but sets `function` to null if the library doesn't have it.
  template <typename Function>
  void findOptional(const char *symbol, Function *&function) const {
    function = reinterpret_cast<Function *>(lookUp(symbol));
  }

  /// Throws an input error if `found` is too old.
  void checkVersion(Version found) const;

  /// The path of the file that was loaded.
  const std::string &getFile() const { return file; }

private:
  void load();
  std::string sayWhichFile() const;
  bool loadFrom(const std::string &path, std::string &problem);
  void *lookUp(const char *symbol) const;
  void *findSymbol(const char *symbol) const;

  LibraryInfo info;
  void *handle = nullptr;
  std::string file;
};

/// The paths of all libraries that were loaded, in this order.
TPRT_API std::vector<std::string> getLoadedLibraries();

} // namespace tprt::cuda

#endif // TPRT_LIB_CUDA_DYNAMICLIBRARY_H
