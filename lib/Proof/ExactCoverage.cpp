//===- ExactCoverage.cpp - Code that the inputs have reached --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExactCheck.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/Shardings.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::exact;

/// Whether constants among its operands keep `op` from ever running `region`.
static bool isNeverEntered(RegionBranchOpInterface op, Region &region) {
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op.getOperation()))
    if (std::optional<APInt> count = loop.getStaticTripCount())
      return count->isZero();
  auto isEntered = [&](ArrayRef<Attribute> operands) {
    SmallVector<RegionSuccessor> successors;
    op.getEntrySuccessorRegions(operands, successors);
    return llvm::any_of(successors, [&](RegionSuccessor successor) {
      return successor.getSuccessor() == &region;
    });
  };
  SmallVector<Attribute> operands(op->getNumOperands());
  if (!isEntered(operands))
    return false; // another of its regions leads there
  for (auto [operand, value] : llvm::zip_equal(op->getOperands(), operands))
    matchPattern(operand, m_Constant(&value));
  return !isEntered(operands);
}

Operation *ExactCheck::findNotEntered() {
  SetVector<Operation *> functions;
  functions.insert(reference);
  for (func::FuncOp function : byRank)
    functions.insert(function);
  Operation *found = nullptr;
  for (size_t i = 0; i < functions.size() && !found; ++i)
    functions[i]->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto call = dyn_cast<CallOpInterface>(op))
        if (Operation *callee = call.resolveCallable())
          functions.insert(callee);
      auto branch = dyn_cast<RegionBranchOpInterface>(op);
      if (!branch || !session.entered.contains(op->getBlock()))
        return WalkResult::advance();
      for (Region &region : op->getRegions())
        if (!region.empty() && !session.entered.contains(&region.front()) &&
            !isNeverEntered(branch, region)) {
          found = op;
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
  return found;
}

void ExactCheck::addBoundaries() {
  if (session.meaning.usesRounding)
    for (double whole : {0.0, 1.0, 2.0})
      for (double number : {whole, whole + 0.5, -whole - 0.5})
        inputs.addBoundary(number);
  for (const auto &site : session.meaning.getSites())
    for (const Site::Values &values : site->values)
      if (values.areConstant())
        for (uint64_t bits : values.bits)
          inputs.addBoundary(llvm::bit_cast<double>(bits));
}

void ExactCheck::addBlockBoundaries() {
  auto add = [&](ShardingAttr sharding, TypeAttr type) {
    auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : nullptr;
    if (!sharding || !tensor || sharding.getRank() != tensor.getRank())
      return;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      for (const auto &intervals :
           getBlock(tensor.getShape(), sharding, mesh, rank))
        for (Interval interval : intervals)
          if (interval.offset)
            inputs.addBoundary(interval.offset);
  };
  for (func::FuncOp function : byRank) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      add(getArgSharding(function, i),
          function.getArgAttrOfType<TypeAttr>(i, kGlobalTypeAttr));
    function.walk([&](nn::ParameterOp op) {
      add(op->getAttrOfType<ShardingAttr>(kShardingAttr),
          op->getAttrOfType<TypeAttr>(kGlobalTypeAttr));
    });
  }
}

const Site *ExactCheck::findUntested() {
  const Interpretation &meaning = session.meaning;
  DenseSet<uint64_t> keys[2];
  for (const auto &site : meaning.getSites())
    for (uint64_t key : site->keys)
      if (meaning.isSampled(key))
        keys[site->isOfReference].insert(key);
  for (const auto &site : meaning.getSites()) {
    if (!meaning.isVarying(*site))
      continue;
    bool isAlone = llvm::any_of(site->keys, [&](uint64_t key) {
      return meaning.isSampled(key) &&
             !keys[!site->isOfReference].contains(key);
    });
    bool isTested = true;
    switch (site->kind) {
    case Site::Kind::Floats:
      break;
    case Site::Kind::Integers:
      // A comparison inside an op's lowering is part of the op's meaning.
      if (site->isPartOf &&
          !getElementTypeOrSelf(site->op->getResult(0)).isInteger(1))
        break;
      // An index never is the number of rows, so its neighbor is enough.
      isTested = isAlone ? site->sawEqual ||
                               (site->sawNeighbors && inputs.hadBoundaries())
                         : site->sawTrue && site->sawFalse;
      break;
    case Site::Kind::IntegerExtremum:
      isTested = !isAlone || (site->sawLess && site->sawGreater);
      break;
    }
    if (!isTested)
      return site.get();
  }
  return nullptr;
}
