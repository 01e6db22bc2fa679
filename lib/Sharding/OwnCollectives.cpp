//===- OwnCollectives.cpp - Collectives inside partition hooks ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OwnCollectives.h"
#include "mlir/IR/Builders.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Sharding/SplitInference.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tp;

static SmallVector<Type> getLocalTypes(TypeRange types,
                                       ArrayRef<ShardingAttr> shardings,
                                       MeshOp mesh, int64_t rank) {
  return llvm::map_to_vector(
      llvm::zip_equal(types, shardings), [&](auto entry) -> Type {
        auto [type, sharding] = entry;
        auto tensor = dyn_cast<RankedTensorType>(type);
        return tensor ? getLocalType(tensor, sharding, mesh, rank) : type;
      });
}

static std::string describe(CollectiveOpInterface op) {
  std::string text = op.getCollectiveKind().str() + " over {";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(op.getAxes(), os,
                        [&](AxisRefAttr axis) { axis.printAxis(os); });
  return text + "}";
}

FailureOr<OwnCollectives>
tp::getOwnCollectives(ShardingRuleOpInterface op, MeshOp mesh,
                      ArrayRef<ShardingAttr> operands,
                      ArrayRef<ShardingAttr> results) {
  OwnCollectives own;
  own.bytesByRank.assign(mesh.getNumRanks(), 0);
  ShardingRule rule = op.getShardingRule();
  auto isCollective = [](const Factor &factor) {
    return factor.kind == FactorKind::Collective ||
           factor.kind == FactorKind::Halo;
  };
  if (llvm::none_of(rule.factors, isCollective))
    return own;
  FailureOr<OpSplit> split = inferSplit(op, mesh, 0, operands, results);
  if (failed(split))
    return failure();
  if (llvm::none_of(llvm::zip_equal(rule.factors, split->factorAxes),
                    [&](auto entry) {
                      auto [factor, axes] = entry;
                      return isCollective(factor) && mesh.getAxesSize(axes) > 1;
                    }))
    return own;

  // Ranks whose blocks have the same shapes share what is built.
  Block block;
  SmallVector<Type> from, to;
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank) {
    SmallVector<Type> rankFrom =
        getLocalTypes(op->getOperandTypes(), operands, mesh, rank);
    SmallVector<Type> rankTo =
        getLocalTypes(op->getResultTypes(), results, mesh, rank);
    if (rank == 0 || rankFrom != from || rankTo != to) {
      from = std::move(rankFrom), to = std::move(rankTo);
      block.clear();
      block.eraseArguments([](BlockArgument) { return true; });
      block.addArguments(from,
                         SmallVector<Location>(from.size(), op->getLoc()));
      split->rank = rank;
      OpBuilder builder(op->getContext());
      builder.setInsertionPointToEnd(&block);
      if (failed(op.partition(builder, block.getArguments(), to, *split)))
        return op->emitError("can't be partitioned");
    }
    for (Operation &inner : block)
      if (auto collective = dyn_cast<CollectiveOpInterface>(inner)) {
        own.bytesByRank[rank] += collective.getReceivedBytes(rank, mesh);
        if (rank == 0)
          own.descriptions.push_back(describe(collective));
      }
  }
  return own;
}
