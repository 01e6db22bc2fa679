//===- GatherBlocks.h - Global values from blocks of processes --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TPRT_LIB_EXEC_GATHERBLOCKS_H
#define TPRT_LIB_EXEC_GATHERBLOCKS_H

#include "tprt/Communicator.h"

#include <span>

namespace tprt {

/// Whether `rank` contributes its block, dense, to the global value of a tensor.
/// If not, another rank contributes the same elements.
bool contributes(const TensorInfo &info, int64_t rank);

/// The size in bytes of the largest contribution.
size_t getLargestBlock(const TensorInfo &info);

/// The global value of a tensor of which each rank has given its contribution.
/// Throws an execution error if one of them isn't a block of the tensor.
Tensor unpackBlocks(const TensorInfo &info,
                    const std::vector<std::string> &blocks);

/// The global value of a tensor of which this rank holds `block`. All ranks
/// call it.
Tensor gatherBlocks(Communicator &communicator, const TensorInfo &info,
                    std::span<const std::byte> block);

} // namespace tprt

#endif // TPRT_LIB_EXEC_GATHERBLOCKS_H
