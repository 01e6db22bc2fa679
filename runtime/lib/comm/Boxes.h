//===- Boxes.h - What a rank sends and receives -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The transfers of a collective for backends that move bytes: each rank packs
// the boxes of its operand that others need, sends and receives, and copies
// what it has received to its place in the result.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_COMM_BOXES_H
#define TPRT_LIB_COMM_BOXES_H

#include "support/StridedCopy.h"
#include "tprt/Collective.h"

namespace tprt {

/// A box that a rank sends or receives, and its position in staging memory.
struct Box {
  int64_t peer;        ///< index among the members
  StridedCopy strided; ///< operand to staging, or staging to result
  int64_t offset, bytes;
};

/// The boxes of one rank, those that it sends to itself included, by peer. In
/// staging memory, each follows the one before it. No box is empty.
struct Boxes {
  std::vector<Box> sent, received;
  int64_t sentBytes = 0, receivedBytes = 0;
};

/// The boxes that `rank` exchanges with each of `members`, the ranks of its
/// group in any order.
Boxes makeBoxes(const Collective &collective, int64_t rank,
                const std::vector<int64_t> &members);

} // namespace tprt

#endif // TPRT_LIB_COMM_BOXES_H
