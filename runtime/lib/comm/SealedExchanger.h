//===- SealedExchanger.h - Exchanges with checksums -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Networks, their cards and the memory that messages pass through may change
// bits that no checksum of theirs covers (Stone and Partridge, When the CRC and
// TCP checksum disagree, SIGCOMM 2000). A seal follows each part of an exchange:
// the sender's host, and the CRC-32 that it has computed. The receiver computes
// it again before anybody uses the part.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_COMM_SEALEDEXCHANGER_H
#define TPRT_LIB_COMM_SEALEDEXCHANGER_H

#include "comm/Exchanger.h"

#include <memory>

namespace tprt {

/// Does what `exchanger` does, and checks what arrives: test() throws an
/// execution error, which names both ranks and their hosts, if a part isn't what
/// was sent. `describe` says what a label stands for: "collective 3 (all_reduce
/// of 'mlp.down')". All processes have a sealed exchanger, or none has one.
std::unique_ptr<Exchanger>
makeSealed(std::unique_ptr<Exchanger> exchanger,
           std::function<std::string(int64_t label)> describe);

} // namespace tprt

#endif // TPRT_LIB_COMM_SEALEDEXCHANGER_H
