//===- Checksum.cpp - zlib's CRC-32 ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/Checksum.h"

#include <zlib.h>

uint32_t tprt::updateCrc(uint32_t crc, const void *data, size_t bytes) {
  // Given a null address, zlib would start over.
  return bytes ? ::crc32_z(crc, static_cast<const Bytef *>(data), bytes) : crc;
}
