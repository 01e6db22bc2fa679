//===- OwnCollectives.h - What an op itself communicates --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An op that is split along a collective factor reduces along it: softmax its
// maxima and sums, a loss its logits. How often, and how much, its partition
// hook knows, and nobody else; so it is asked to build the op, and what it
// built is counted.
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
  /// What each rank receives by all of them.
  SmallVector<int64_t> bytesByRank;
};

/// The collectives of `op` where its operands and results are placed so; none
/// unless a collective factor is split. Fails, with an error, where the op
/// can't be placed so.
FailureOr<OwnCollectives> getOwnCollectives(ShardingRuleOpInterface op,
                                            MeshOp mesh,
                                            ArrayRef<ShardingAttr> operands,
                                            ArrayRef<ShardingAttr> results);

} // namespace mlir::tp

#endif // TP_LIB_SHARDING_OWNCOLLECTIVES_H
