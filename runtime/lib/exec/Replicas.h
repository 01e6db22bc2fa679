//===- Replicas.h - Comparison of what ranks hold alike ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_EXEC_REPLICAS_H
#define TPRT_LIB_EXEC_REPLICAS_H

#include "exec/ShardedTensors.h"
#include "tprt/Communicator.h"

namespace tprt {

/// Compares the values of the updated parameters that several ranks hold, by
/// their checksums. All ranks call it, and get the same result: what differs in
/// the first parameter in which something does, or an empty text.
std::string findDivergence(const Manifest &manifest,
                           const ShardedTensors &parameters,
                           Communicator &communicator);

} // namespace tprt

#endif // TPRT_LIB_EXEC_REPLICAS_H
