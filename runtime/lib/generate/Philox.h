//===- Philox.h - Random numbers by counter ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_GENERATE_PHILOX_H
#define TPRT_LIB_GENERATE_PHILOX_H

#include <array>
#include <cstdint>

namespace tprt {

/// Philox-4x32-10: four random words for each counter and key (Salmon et al.,
/// Parallel Random Numbers: As Easy as 1, 2, 3, 2011).
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                      std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t(0xD2511F53) * counter[0];
    uint64_t second = uint64_t(0xCD9E8D57) * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(first)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

} // namespace tprt

#endif // TPRT_LIB_GENERATE_PHILOX_H
