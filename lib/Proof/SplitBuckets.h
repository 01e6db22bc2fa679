//===- SplitBuckets.h - Splitting buckets of collectives --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A collective of several values in one buffer, a bucket, computes, element by
// element, the same as one collective per value. The matcher only knows values
// of the reference, and the buffer isn't one, so buckets are split before it
// starts. Nothing is assumed about how they were filled: the offsets and the
// element order of each part that is cut out of the result must be those of the
// result of one value's own collective.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_SPLITBUCKETS_H
#define TP_LIB_PROOF_SPLITBUCKETS_H

#include "tp/Proof/Equivalence.h"

namespace mlir::tp {

/// Replaces each all_reduce, all_gather and reduce_scatter of a concatenation
/// by one collective per part, if each use of the result cuts one part out.
/// Returns, for each original collective in program order, how many it became.
/// `keepAlike`: keeps buffers of values that are already flat and have one
/// type, because the partition hook of a loss builds such buffers.
SmallVector<unsigned> splitBuckets(const Program &program, MeshOp mesh,
                                   bool keepAlike);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_SPLITBUCKETS_H
