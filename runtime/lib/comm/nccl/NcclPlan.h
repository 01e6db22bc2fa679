//===- NcclPlan.h - Execution of a collective by NCCL -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// - An all-reduce and a broadcast are NCCL's own.
// - An all-gather of blocks of one shape is NCCL's own. If the blocks aren't
//   contiguous in the result, it goes to staging memory, from which the blocks
//   are copied.
// - A reduce-scatter to blocks of one shape is NCCL's own, after the blocks are
//   packed if they aren't contiguous in the operand. For blocks of different
//   shapes, each is packed, and reduced by a call of its own.
// - All else (an all-gather of blocks of different shapes, an all-to-all, a
//   permute, an exchange) is sends and receives of boxes: each rank packs the
//   boxes of its operand that others need, sends and receives, and copies what
//   it has received to its place in the result.
// - A transfer between stages of a pipeline is the same within pairs of sender
//   and receiver.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_LIB_COMM_NCCL_NCCLPLAN_H
#define TPRT_LIB_COMM_NCCL_NCCLPLAN_H

#include "comm/Boxes.h"
#include "comm/nccl/Nccl.h"
#include "tprt/Manifest.h"

#include <optional>

namespace tprt::cuda {

/// Disjoint lists of ranks. A rank in a list has its position there as its
/// number.
using Groups = std::vector<std::vector<int64_t>>;

/// How one rank runs one collective.
struct NcclPlan : Boxes {
  /// The groups whose members communicate; those of transfers are channels.
  Groups groups;
  bool isMember = false; ///< of a group of the collective
  ncclComm_t comm =
      nullptr;          ///< of its group among `groups`; null: it is in none
  int64_t position = 0; ///< in that group
  int64_t operandElements = 0, resultElements = 0;
  bool isDense = false; ///< NCCL's own collective needs no staging
  bool isEven = false;  ///< the members' blocks have one shape
  bool sendsBoxes = false;
  int64_t countedBytes =
      0; ///< received from others, as docs/Artifact.md counts
};

/// The plan of rank `rank` for collective `id` of the manifest, without a
/// communicator. Throws an execution error if NCCL doesn't have the reduction,
/// or a rank is in several pairs of a transfer.
NcclPlan makeNcclPlan(const Manifest &manifest, int64_t id, int64_t rank);

/// NCCL's type for a reduction's elements; nullopt if it has none.
std::optional<ncclDataType_t> toNccl(Dtype dtype);
ncclRedOp_t toNccl(Reduction reduction);

} // namespace tprt::cuda

#endif // TPRT_LIB_COMM_NCCL_NCCLPLAN_H
