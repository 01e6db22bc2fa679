//===- RecordedWork.h - Ops and collectives in a recording ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_PROFILE_RECORDEDWORK_H
#define TPRT_LIB_PROFILE_RECORDEDWORK_H

#include "tprt/Recording.h"

namespace tprt {

/// An op or a collective as the manifest describes it.
struct RecordedWork {
  std::string fqn;
  std::string op;   ///< the model's ops, "add+rms_norm"; none for collectives
  std::string kind; ///< "kernel", "gemm", "all_reduce", …
  int64_t flops = 0;
  int64_t bytes = 0;          ///< touched by an op, received in a collective
  std::optional<Dtype> dtype; ///< of products
};

/// The work of `slice`, which must not be a run.
RecordedWork getWork(const Manifest &manifest, const Slice &slice);

/// Throws an execution error if a slice isn't of this program.
void checkRecording(const Manifest &manifest, const Recording &recording);

} // namespace tprt

#endif // TPRT_LIB_PROFILE_RECORDEDWORK_H
