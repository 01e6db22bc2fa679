//===- LocalSlices.h - Slices instead of communication ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_REDISTRIBUTION_LOCALSLICES_H
#define TP_LIB_SHARDING_REDISTRIBUTION_LOCALSLICES_H

#include "tp/Sharding/Redistribution/Redistribution.h"
#include <optional>

namespace mlir::tp::redistribution {

/// The slices that give every rank its block of `to` from its block of `from`,
/// one per dimension; empty if all blocks stay the same. Nullopt if a rank
/// lacks an element, or if sizes that don't divide give ranks pieces that no
/// slice describes.
std::optional<SmallVector<RedistributionStep>>
findLocalSlices(MeshOp mesh, ArrayRef<int64_t> shape, ShardingAttr from,
                ShardingAttr to);

} // namespace mlir::tp::redistribution

#endif // TP_LIB_SHARDING_REDISTRIBUTION_LOCALSLICES_H
