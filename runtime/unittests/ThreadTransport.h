//===- ThreadTransport.h - A transport between threads ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_THREADTRANSPORT_H
#define TPRT_UNITTESTS_THREADTRANSPORT_H

#include "tprt/Backend.h"
#include "tprt/Transport.h"

namespace tprt::test {

/// May change a message that is under way from one rank to another.
using ChangeMessage = std::function<void(int64_t from, int64_t to,
                                         std::vector<std::byte> &message)>;

/// The transports of ranks that are threads, by rank. `change` is called by one
/// thread at a time.
std::vector<std::shared_ptr<Transport>>
makeThreadTransports(int64_t worldSize, ChangeMessage change = nullptr);

/// The communicators of such transports as a backend.
const Backend &getTransportBackend();

} // namespace tprt::test

#endif // TPRT_UNITTESTS_THREADTRANSPORT_H
