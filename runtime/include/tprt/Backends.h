//===- Backends.h - The backends of this library ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   SessionOptions options;
//   const tprt::Backend &backend = *tprt::findBackend("nccl");
//   options.backend = backend.name;
//   options.makeCommunicators = tprt::makeFactory(backend, &connection);
//   options.ranks = {job.rank};
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_BACKENDS_H
#define TPRT_BACKENDS_H

#include "tprt/Backend.h"

#include <span>
#include <string_view>

namespace tprt {

class Connection;

/// All backends, whether or not this machine has what they need.
TPRT_API std::span<const Backend *const> getBackends();

/// Returns null if there is no backend of this name.
TPRT_API const Backend *findBackend(std::string_view name);

/// For SessionOptions::makeCommunicators. `connection` is this process's in its
/// job, must outlive the communicators, and is null if ranks are threads. The
/// factory throws an input error if something that the backend needs is
/// missing, and what checkNumProcesses throws.
TPRT_API CommunicatorFactory makeFactory(const Backend &backend,
                                         Connection *connection = nullptr);

/// Throws an input error unless the job has one process for each rank of the
/// program.
TPRT_API void checkNumProcesses(const Manifest &manifest, const Job &job);

} // namespace tprt

#endif // TPRT_BACKENDS_H
