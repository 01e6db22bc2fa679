//===- ContainerFuzzer.cpp - Any bytes as an artifact ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FuzzFile.h"

#include "tprt/Artifact.h"

#include <cstring>
#include <zlib.h>

using namespace tprt;
using namespace tprt::fuzz;

// Where docs/Artifact.md puts the checksum, and what it is of.
static constexpr size_t checksumOffset = 32, headerSize = 40;

static void tryArtifact(std::string_view bytes) {
  MemoryFile file(bytes);
  isArtifact(file.getPath());
  readOrRefuse([&] {
    ArtifactParts parts = checkContainer(bytes, file.getPath());
    touch(parts.manifest.data(), parts.manifest.size());
    touch(parts.sharedObject.data(), parts.sharedObject.size());
  });
  readOrRefuse([&] { Artifact::load(file.getPath()); });
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tryArtifact(asText(data, size));
  if (size < headerSize)
    return 0;
  // Once more with a checksum that matches, as an attacker would.
  std::string bytes(asText(data, size));
  uint32_t crc = crc32_z(0, data + headerSize, size - headerSize);
  std::memcpy(bytes.data() + checksumOffset, &crc, sizeof(crc));
  tryArtifact(bytes);
  return 0;
}
