//===- Unbundle.h - Joined collectives, one by one --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A collective of several values in one buffer is, element by element, what one
// for each of the values is. The matcher knows values of the reference, of
// which the buffer is none; so before it starts, the buffers are taken apart.
// Nothing is assumed about who joined them: what is cut out of the result must
// be, as its offsets and its order of elements show, what the one value's own
// collective gives.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_UNBUNDLE_H
#define TP_LIB_PROOF_UNBUNDLE_H

#include "tp/Proof/Equivalence.h"

namespace mlir::tp {

/// Replaces each all_reduce, all_gather and reduce_scatter of a concatenation
/// by those of its parts, where all uses of the result cut one part out.
/// Returns, for each collective that the program had, in its order, how many it
/// became. `keepAlike`: buffers of values of one type that are flat already
/// stay, as the partition hook of a loss makes them.
SmallVector<unsigned> unbundle(const Program &program, MeshOp mesh,
                               bool keepAlike);

} // namespace mlir::tp

#endif // TP_LIB_PROOF_UNBUNDLE_H
