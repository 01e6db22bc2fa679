//===- Artifact.cpp - Compiled programs, loaded ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Artifact.h"

#include "program/Target.h"
#include "support/Json.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

using namespace tprt;

static constexpr std::string_view magic(TPRT_ARTIFACT_MAGIC,
                                        sizeof(TPRT_ARTIFACT_MAGIC));
static_assert(std::endian::native == std::endian::little);

static uint32_t checksum(std::string_view bytes, uint32_t crc = 0) {
  return crc32_z(crc, reinterpret_cast<const Bytef *>(bytes.data()),
                 bytes.size());
}

bool tprt::isArtifact(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return false; // opening a FIFO would wait for a writer
  std::ifstream file(path, std::ios::binary);
  char bytes[magic.size()] = {};
  return file.read(bytes, sizeof(bytes)) &&
         std::string_view(bytes, sizeof(bytes)) == magic;
}

ArtifactParts tprt::checkContainer(std::string_view bytes,
                                   const std::string &path) {
  auto fail = [&](const std::string &message) {
    return inputError("'" + path + "' " + message);
  };
  if (std::string foreign = describeTorchFile(path); !foreign.empty())
    throw fail("is " + foreign +
               ", expected an artifact: tp-import, tp-opt and tp-compile make "
               "one of a model");
  if (!bytes.starts_with(magic))
    throw fail("is not an artifact of tp-compile");
  tprt_artifact_header header;
  if (bytes.size() < sizeof(header))
    throw fail("is truncated: " + std::to_string(bytes.size()) +
               " bytes, expected at least " + std::to_string(sizeof(header)));
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.abi != TPRT_ABI_VERSION)
    throw fail("has artifact version " + std::to_string(header.abi) +
               ", this runtime reads version " +
               std::to_string(TPRT_ABI_VERSION) +
               ": compile it again with this release's tp-compile");
  if (header.reserved0 != 0 || header.reserved1 != 0)
    throw fail("is corrupt: reserved fields are not zero");
  std::string_view body = bytes.substr(sizeof(header));
  if (header.manifest_size > body.size() ||
      header.object_size != body.size() - header.manifest_size)
    throw fail("is truncated or corrupt: " + std::to_string(body.size()) +
               " bytes behind the header, expected a manifest of " +
               std::to_string(header.manifest_size) +
               " and a shared object of " + std::to_string(header.object_size));
  if (checksum(body) != header.crc)
    throw fail("is corrupt: its checksum doesn't match");
  return {body.substr(0, header.manifest_size),
          body.substr(header.manifest_size)};
}

std::string tprt::makeContainer(std::string_view manifest,
                                std::string_view sharedObject) {
  tprt_artifact_header header = {.magic = TPRT_ARTIFACT_MAGIC,
                                 .abi = TPRT_ABI_VERSION,
                                 .reserved0 = 0,
                                 .manifest_size = manifest.size(),
                                 .object_size = sharedObject.size(),
                                 .crc =
                                     checksum(sharedObject, checksum(manifest)),
                                 .reserved1 = 0};
  std::string bytes(reinterpret_cast<const char *>(&header), sizeof(header));
  bytes.append(manifest);
  return bytes.append(sharedObject);
}

/// Parses a manifest. Errors begin with the path.
static Manifest parseManifest(std::string_view text, const std::string &path) {
  try {
    return Manifest::parse(text);
  } catch (const Error &error) {
    throw inputError("'" + path + "': " + error.what());
  }
}

Manifest tprt::readManifest(const std::string &path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  std::string_view bytes = asText(file->getBytes());
  return parseManifest(checkContainer(bytes, path).manifest, path);
}

/// Makes the runtime's C ABI visible to artifacts even when libtprt itself was
/// loaded with RTLD_LOCAL, as language bindings do.
static void promoteRuntimeSymbols() {
  Dl_info info = {};
  if (::dladdr(reinterpret_cast<void *>(&tprt_collective), &info) &&
      info.dli_fname)
    if (void *self =
            ::dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL))
      ::dlclose(self);
}

static int writeToMemory(std::string_view bytes) {
  int descriptor = ::memfd_create("tpx", MFD_CLOEXEC);
  if (descriptor < 0)
    return -1;
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) {
      ::close(descriptor);
      return -1;
    }
    bytes.remove_prefix(written);
  }
  return descriptor;
}

std::shared_ptr<const Artifact> Artifact::load(const std::string &path) {
  std::shared_ptr<Artifact> artifact(new Artifact);
  artifact->file = MappedFile::open(path);
  ArtifactParts parts =
      checkContainer(asText(artifact->file->getBytes()), path);
  artifact->path = path;
  artifact->manifest = parseManifest(parts.manifest, path);
  artifact->manifestText = parts.manifest;
  artifact->sharedObject = parts.sharedObject;
  try {
    artifact->code = chooseCode(artifact->manifest);
  } catch (const Error &error) {
    throw inputError("'" + path + "': " + error.what());
  }
  return artifact;
}

void Artifact::loadCode() const {
  std::call_once(isOpen, [this] { const_cast<Artifact *>(this)->open(); });
}

void Artifact::open() {
  promoteRuntimeSymbols();
  // The descriptor stays open with the handle: the dynamic linker knows objects
  // by name, and a second artifact under the same descriptor would be taken for
  // the first.
  descriptor = writeToMemory(sharedObject);
  if (descriptor < 0)
    throw inputError("'" + path + "': cannot hold its code in memory: " +
                     std::strerror(errno));
  std::string name = "/proc/self/fd/" + std::to_string(descriptor);
  handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw inputError("'" + path + "': cannot load its code: " + ::dlerror());
  for (const Program &program : manifest.programs) {
    entries.push_back(reinterpret_cast<tpx_main_fn>(
        getSymbol(program.entries[code], "function")));
    if (manifest.isForCuda)
      deviceCodes.push_back(static_cast<const tprt_device_code *>(
          getSymbol(program.deviceCode, "kernels")));
  }
}

void *Artifact::getSymbol(const std::string &name, const char *what) const {
  void *symbol = ::dlsym(handle, name.c_str());
  if (!symbol)
    throw inputError("'" + path + "': its code has no " + what + " '" + name +
                     "'");
  return symbol;
}

Artifact::~Artifact() {
  if (handle)
    ::dlclose(handle);
  if (descriptor >= 0)
    ::close(descriptor);
}
