//===- Artifact.h - Compiled programs, loaded -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_ARTIFACT_H
#define TPRT_ARTIFACT_H

#include "tprt/File.h"
#include "tprt/Manifest.h"

#include <memory>
#include <mutex>
#include <string>

namespace tprt {

/// The two parts of a container, checked but not loaded.
struct ArtifactParts {
  std::string_view manifest;
  std::string_view sharedObject;
};

/// True when the file at `path` begins with the container's magic. False for
/// files that can't be read.
TPRT_API bool isArtifact(const std::string &path);

/// Checks magic, version, sizes and checksum of a container's bytes. Throws an
/// input error that begins with `path`.
TPRT_API ArtifactParts checkContainer(std::string_view bytes,
                                      const std::string &path);

/// Packs a manifest and a shared object into a container.
TPRT_API std::string makeContainer(std::string_view manifest,
                                   std::string_view sharedObject);

/// Programs in native code. Loading the code can already run parts of it: load
/// only artifacts whose makers you trust (docs/Security.md).
class TPRT_API Artifact {
public:
  /// Reads and checks everything but the code, and runs none of it. Throws an
  /// input error if the file isn't an artifact, has another version, is
  /// corrupt, or was made for another machine.
  static std::shared_ptr<const Artifact> load(const std::string &path);
  ~Artifact();
  Artifact(const Artifact &) = delete;
  Artifact &operator=(const Artifact &) = delete;

  const Manifest &getManifest() const { return manifest; }
  /// The manifest as JSON.
  std::string_view getManifestText() const { return manifestText; }
  /// The file that the artifact was loaded from.
  const std::string &getPath() const { return path; }
  /// Whether only this process's user or root can have written the file.
  bool isOwn() const { return file->isOwn(); }

  /// Loads the code, which stays loaded as long as this object lives. Call this
  /// after everything else has been checked, and before getEntry() and
  /// getDeviceCodes(). Throws an input error if the code can't be loaded.
  /// Several threads may call it, more than once.
  void loadCode() const;
  /// Of a program, by its index.
  tpx_main_fn getEntry(size_t program = 0) const { return entries[program]; }
  /// The kernels of each program for CUDA devices; none for others.
  const std::vector<const tprt_device_code *> &getDeviceCodes() const {
    return deviceCodes;
  }

private:
  Artifact() = default;
  void open();
  void *getSymbol(const std::string &name, const char *what) const;

  std::string path;
  Manifest manifest;
  std::shared_ptr<const MappedFile> file;
  std::string_view manifestText, sharedObject; ///< in the file
  size_t code = 0; ///< the chosen one of Program::entries
  mutable std::once_flag isOpen;
  int descriptor = -1;
  void *handle = nullptr;
  std::vector<tpx_main_fn> entries; ///< by program
  std::vector<const tprt_device_code *> deviceCodes;
};

/// Reads only the manifest, without loading code, so it works for another
/// machine's artifacts too.
TPRT_API Manifest readManifest(const std::string &path);

} // namespace tprt

#endif // TPRT_ARTIFACT_H
