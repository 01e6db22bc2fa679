//===- ThreadTransport.h - A transport between threads ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_UNITTESTS_THREADTRANSPORT_H
#define TPRT_UNITTESTS_THREADTRANSPORT_H

#include "tprt/Backend.h"
#include "tprt/Transport.h"

namespace tprt::test {

/// The transports of ranks that are threads, by rank.
std::vector<std::shared_ptr<Transport>> makeThreadTransports(int64_t worldSize);

/// The communicators of such transports as a backend.
const Backend &getTransportBackend();

} // namespace tprt::test

#endif // TPRT_UNITTESTS_THREADTRANSPORT_H
