//===- StridedSet.h - Sets of numbers in few words --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ranks of a mesh that are alike, such as the first twelve along a
// dimension, follow a pattern. A set of numbers is written as disjoint parts,
// each in the terms of a memref's strided layout:
//
//     {0 … 11, 16 … 27, 32 … 43}   offset 0, sizes [3, 12], strides [16, 1]
//
//===----------------------------------------------------------------------===//

#ifndef TP_SUPPORT_STRIDEDSET_H
#define TP_SUPPORT_STRIDEDSET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"
#include <cstdint>

namespace mlir::tp {

/// The numbers `offset + sum of i[k] * strides[k]`, for all
/// `0 <= i[k] < sizes[k]`; `offset` alone if there are no sizes. Strides are
/// positive, the largest first.
struct StridedPart {
  int64_t offset = 0;
  llvm::SmallVector<int64_t, 2> sizes, strides;
};

/// Disjoint parts that make up the set of `numbers`, which are in ascending
/// order without repetition. Sets that repeat at a distance take few parts;
/// the fewest possible aren't searched for.
llvm::SmallVector<StridedPart> getStridedParts(llvm::ArrayRef<int64_t> numbers);

/// `[{"offset": 0, "sizes": [3, 12], "strides": [16, 1]}, …]`.
llvm::json::Array toJSON(llvm::ArrayRef<StridedPart> parts);

} // namespace mlir::tp

#endif // TP_SUPPORT_STRIDEDSET_H
