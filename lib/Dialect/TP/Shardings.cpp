//===- Shardings.cpp - Shardings that the IR gives to values --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Dialect/TP/Shardings.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tp;

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

StringRef tp::getFqn(Operation *op) {
  if (auto redistribute = dyn_cast<RedistributeOp>(op))
    return redistribute.getFqn().value_or("");
  auto fqn = op->getAttrOfType<StringAttr>(kFqnAttr);
  return fqn ? fqn.getValue() : StringRef();
}
