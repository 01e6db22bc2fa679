//===- TimeObjective.cpp - Seconds of ranks as a search's cost ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Propagation/TimeObjective.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Sharding/Cost/CostModel.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;

TimeObjective::TimeObjective(const Machine &machine, MeshOp mesh,
                             double bandwidth, double holding)
    : mesh(mesh), numRanks(mesh.getNumRanks()),
      model(std::make_unique<CostModel>(machine, mesh)), bandwidth(bandwidth),
      holding(holding) {}
TimeObjective::~TimeObjective() = default;

/// The bytes of the first rank's blocks, which are the largest, and of the
/// whole tensors.
static std::pair<int64_t, int64_t>
countBytes(TypeRange types, ArrayRef<ShardingAttr> shardings, MeshOp mesh) {
  int64_t local = 0, whole = 0;
  for (auto [type, sharding] : llvm::zip(types, shardings)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() ||
        !tensor.getElementType().isIntOrIndexOrFloat() || !sharding)
      continue;
    local += getTensorBytes(getLocalType(tensor, sharding, mesh, 0));
    whole += getTensorBytes(tensor);
  }
  return {local, whole};
}

/// The share of the arithmetic that falls to the first rank.
static double getShare(const ShardingRule &rule, const OpSplit &split,
                       MeshOp mesh) {
  double share = 1;
  for (auto [factor, axes] : llvm::zip(rule.factors, split.factorAxes))
    if (factor.size > 0)
      share *= static_cast<double>(
                   llvm::divideCeil(factor.size, mesh.getAxesSize(axes))) /
               factor.size;
  return share;
}

/// Far below CommunicationCost::infinite(), so that sums stay below it.
static int64_t toVolume(double bytes) {
  constexpr double kMax = int64_t(1) << 45;
  return static_cast<int64_t>(std::min(bytes, kMax));
}

int64_t TimeObjective::getVolume(Operation *op,
                                 const Strategy &strategy) const {
  if (!op)
    return 0;
  auto [operands, wholeOperands] =
      countBytes(op->getOperandTypes(), strategy.operands, mesh);
  auto [results, wholeResults] =
      countBytes(op->getResultTypes(), strategy.results, mesh);
  if (isa<ParameterOpInterface>(op))
    return toVolume(holding * results * numRanks);
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface)
    return 0;
  OpWork work = getWork(op);
  double share = getShare(interface.getShardingRule(), strategy.split, mesh);
  work.flops *= share;
  work.elements *= share;
  if (int64_t whole = wholeOperands + wholeResults)
    work.bytes = static_cast<int64_t>(static_cast<double>(work.bytes) *
                                      (operands + results) / whole);
  return toVolume(model->getSeconds(work) * bandwidth * numRanks);
}
