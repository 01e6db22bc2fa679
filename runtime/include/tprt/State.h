//===- State.h - Files of a session's state ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state of a session is the values of the parameters that its programs
// update, such as the cache of a language model. A file of it is a safetensors
// file with exactly these tensors, global.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_STATE_H
#define TPRT_STATE_H

#include "tprt/Session.h"
#include "tprt/Weights.h"

namespace tprt {

/// Returns the sources to write a program's parameters from, those that
/// `isWanted`. `manifest` and `getParameter` must outlive them.
TPRT_API std::vector<TensorSource>
collectSources(const Manifest &manifest, const GetParameter &getParameter,
               const std::function<bool(const TensorInfo &)> &isWanted);

/// Writes the state to `path`.
TPRT_API void writeState(const std::string &path, const Manifest &manifest,
                         const GetParameter &getParameter);

/// Reads a state, to be set with Session::setParameters(). The session may have
/// another mesh and other placements than the one whose state was written.
/// Throws an input error that lists the tensors that are missing (even if the
/// parameter has an initial value), surplus, or of another type.
TPRT_API TensorMap readState(const std::string &path, const Manifest &manifest);

} // namespace tprt

#endif // TPRT_STATE_H
