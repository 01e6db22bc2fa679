//===- ParseCollective.h - The collectives of a manifest --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_PROGRAM_PARSECOLLECTIVE_H
#define TPRT_LIB_PROGRAM_PARSECOLLECTIVE_H

#include "program/ManifestNode.h"
#include "tprt/Collective.h"

namespace tprt {

/// A COLLECTIVE of docs/Artifact.md. Throws an input error unless its shapes,
/// groups and bytes fit together.
Collective parseCollective(const ManifestNode &node, int64_t worldSize);

} // namespace tprt

#endif // TPRT_LIB_PROGRAM_PARSECOLLECTIVE_H
