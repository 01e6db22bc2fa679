//===- OwnCollectives.h - Collectives inside partition hooks ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An op that is split along a collective factor reduces along it: for example,
// softmax reduces its maxima and sums. Only the op's partition hook knows how
// many reductions that takes, and of what sizes. So the hook builds the op, and
// the collectives that it built are counted.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_OWNCOLLECTIVES_H
#define TP_LIB_SHARDING_OWNCOLLECTIVES_H

#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include <string>
#include <vector>

namespace mlir::tp {

struct OwnCollectives {
  /// "all_reduce over {tp}", ….
  std::vector<std::string> descriptions;
  /// The bytes that each rank receives in all of them.
  SmallVector<int64_t> bytesByRank;
};

/// The collectives of `op` with these placements; none unless a collective
/// factor is split. Fails, with an error, if the op can't have these
/// placements.
FailureOr<OwnCollectives> getOwnCollectives(ShardingRuleOpInterface op,
                                            MeshOp mesh,
                                            ArrayRef<ShardingAttr> operands,
                                            ArrayRef<ShardingAttr> results);

} // namespace mlir::tp

#endif // TP_LIB_SHARDING_OWNCOLLECTIVES_H
