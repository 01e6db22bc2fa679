//===- Utils.cpp - What several passes need -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Transforms/Utils.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::tp;

static bool isTooLarge(Type type) {
  constexpr int64_t kMaxElements = int64_t(1) << 40;
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasStaticShape() ||
      llvm::is_contained(shaped.getShape(), 0))
    return false;
  int64_t elements = 1;
  for (int64_t size : shaped.getShape()) {
    if (size > kMaxElements / elements)
      return true;
    elements *= size;
  }
  return false;
}

LogicalResult tp::checkSizes(ModuleOp module) {
  auto check = [](Location loc, TypeRange types) {
    auto it = llvm::find_if(types, isTooLarge);
    if (it == types.end())
      return WalkResult::advance();
    emitError(loc) << "a tensor has more than 2^40 elements: " << *it;
    return WalkResult::interrupt();
  };
  WalkResult result = module.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (check(op->getLoc(), block.getArgumentTypes()).wasInterrupted())
          return WalkResult::interrupt();
    return check(op->getLoc(), op->getResultTypes());
  });
  return failure(result.wasInterrupted());
}

FailureOr<MeshOp> tp::getMesh(ModuleOp module) {
  MeshOp mesh;
  for (MeshOp other : module.getOps<MeshOp>()) {
    if (mesh) {
      InFlightDiagnostic diag =
          other.emitError("a program is parallelised over one mesh");
      diag.attachNote(mesh.getLoc()) << "the other one is here";
      return diag;
    }
    mesh = other;
  }
  return mesh;
}

FailureOr<SmallVector<func::FuncOp>> tp::getRoots(ModuleOp module) {
  SymbolTableCollection symbols;
  DenseSet<Operation *> called;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](CallOpInterface call) {
      if (Operation *callee = call.resolveCallableInTable(&symbols))
        called.insert(callee);
    });
  SmallVector<func::FuncOp> roots;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && !called.contains(function))
      roots.push_back(function);
  if (roots.empty() && !module.getOps<func::FuncOp>().empty())
    return module.emitError("every function is called by another; recursion "
                            "can't be parallelised");
  return roots;
}

SmallVector<SmallVector<func::FuncOp>> tp::getPrograms(ModuleOp module) {
  SmallVector<SmallVector<func::FuncOp>> functions;
  llvm::SmallDenseSet<int64_t> seen;
  bool open = false;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    auto ranks = function->getAttrOfType<DenseI64ArrayAttr>(kRanksAttr);
    bool repeats = ranks && llvm::any_of(ranks.asArrayRef(), [&](int64_t rank) {
                     return seen.contains(rank);
                   });
    if (!ranks || !open || repeats) {
      functions.emplace_back();
      seen.clear();
    }
    open = bool(ranks);
    if (ranks)
      seen.insert(ranks.asArrayRef().begin(), ranks.asArrayRef().end());
    functions.back().push_back(function);
  }
  return functions;
}

StringRef tp::getFqn(Operation *op) {
  if (auto redistribute = dyn_cast<RedistributeOp>(op))
    return redistribute.getFqn().value_or("");
  auto fqn = op->getAttrOfType<StringAttr>(kFqnAttr);
  return fqn ? fqn.getValue() : StringRef();
}

ShardingAttr tp::getArgSharding(FunctionOpInterface function, unsigned index) {
  return function.getArgAttrOfType<ShardingAttr>(index, kShardingAttr);
}

ShardingAttr tp::getResultSharding(FunctionOpInterface function,
                                   unsigned index) {
  return function.getResultAttrOfType<ShardingAttr>(index, kShardingAttr);
}

SmallVector<ShardingAttr> tp::getResultShardings(Operation *op) {
  if (auto redistribute = dyn_cast<RedistributeOp>(op))
    return {redistribute.getSharding()};
  if (auto fromLocal = dyn_cast<FromLocalOp>(op))
    return {fromLocal.getSharding()};
  DictionaryAttr attrs = op->getRawDictionaryAttrs();
  if (auto sharding = attrs.getAs<ShardingAttr>(kShardingAttr))
    return {sharding};
  SmallVector<ShardingAttr> shardings;
  if (auto list = attrs.getAs<ArrayAttr>(kShardingsAttr))
    llvm::append_range(shardings, list.getAsRange<ShardingAttr>());
  return shardings;
}

void tp::setResultShardings(Operation *op, ArrayRef<ShardingAttr> shardings) {
  if (shardings.size() == 1) {
    op->setAttr(kShardingAttr, shardings.front());
    return;
  }
  SmallVector<Attribute> list(shardings.begin(), shardings.end());
  op->setAttr(kShardingsAttr, ArrayAttr::get(op->getContext(), list));
}
