//===- TimeObjective.h - Seconds of ranks as a search's cost ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By default, a propagation looks for the least communication, and what ranks
// compute decides only between equals: the placements of parameters are given,
// and leaving ops whole costs nothing. A search that places parameters itself
// must weigh both. This objective adds, to the bytes that a strategy moves, the
// bytes that the ranks could receive in the time that they compute, and a price
// for the parameters that they hold. What is computed in loops counts once.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_PROPAGATION_TIMEOBJECTIVE_H
#define TP_SHARDING_PROPAGATION_TIMEOBJECTIVE_H

#include "tp/Dialect/TP/TP.h"
#include "tp/Sharding/Cost/MachineModel.h"
#include "tp/Sharding/Strategies.h"
#include <memory>

namespace mlir::tp {

class CostModel;

class TimeObjective {
public:
  /// `bandwidth` is in bytes per second that a rank receives. Holding a byte of
  /// a parameter costs as much as receiving `holding` bytes in each run.
  /// `machine` outlives the objective.
  TimeObjective(const Machine &machine, MeshOp mesh, double bandwidth,
                double holding);
  ~TimeObjective();

  /// What all ranks together could receive, in bytes, while they run `op` by
  /// `strategy`, and for holding the parameter if `op` is one.
  int64_t getVolume(Operation *op, const Strategy &strategy) const;

private:
  MeshOp mesh;
  int64_t numRanks;
  std::unique_ptr<CostModel> model;
  double bandwidth, holding;
};

} // namespace mlir::tp

#endif // TP_SHARDING_PROPAGATION_TIMEOBJECTIVE_H
