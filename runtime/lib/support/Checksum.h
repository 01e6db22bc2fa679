//===- Checksum.h - zlib's CRC-32 -------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_SUPPORT_CHECKSUM_H
#define TPRT_LIB_SUPPORT_CHECKSUM_H

#include "tprt/abi.h"

#include <cstddef>
#include <cstdint>

namespace tprt {

/// The CRC-32 of the bytes that `crc` is the CRC-32 of, 0 for none, followed by
/// these. It notices every change of up to 32 bits in a row.
TPRT_API uint32_t updateCrc(uint32_t crc, const void *data, size_t bytes);

} // namespace tprt

#endif // TPRT_LIB_SUPPORT_CHECKSUM_H
