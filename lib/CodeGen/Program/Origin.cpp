//===- Origin.cpp - Source ops of generated code --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Origin.h"
#include "mlir/IR/Builders.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {
#define GEN_PASS_DEF_LOCATEORIGINS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

StringRef Origin::getFqn(tprt::CallOp call) const {
  if (!call || static_cast<size_t>(position) >= call.getOrigins().size())
    return fqn;
  return cast<StringAttr>(call.getOrigins()[position]).getValue();
}

Location tp::getLocationOfAll(Operation *op) {
  llvm::SmallSetVector<Location, 8> locations;
  op->walk([&](Operation *inner) { locations.insert(inner->getLoc()); });
  return FusedLoc::get(op->getContext(), locations.getArrayRef());
}

SmallVector<Origin> tp::getOrigins(Operation *op) {
  llvm::SmallMapVector<int64_t, Origin, 4> origins;
  op->walk([&](Operation *inner) {
    inner->getLoc()->walk([&](Location loc) {
      auto fused = dyn_cast<FusedLocWith<DictionaryAttr>>(loc);
      if (!fused)
        return WalkResult::advance();
      DictionaryAttr entry = fused.getMetadata();
      auto fqn = entry.getAs<StringAttr>("fqn");
      auto name = entry.getAs<StringAttr>("op");
      auto position = entry.getAs<IntegerAttr>("position");
      if (fqn && name && position)
        origins.insert({position.getInt(), {position.getInt(), fqn, name}});
      return WalkResult::advance();
    });
  });
  SmallVector<Origin> sorted;
  for (auto &[position, origin] : origins)
    sorted.push_back(origin);
  llvm::sort(sorted, [](const Origin &x, const Origin &y) {
    return x.position < y.position;
  });
  return sorted;
}

namespace {

class LocateOrigins : public tp::impl::LocateOriginsBase<LocateOrigins> {
  void runOnOperation() override {
    Builder b(&getContext());
    fqnKey = b.getStringAttr("fqn");
    opKey = b.getStringAttr("op");
    positionKey = b.getStringAttr("position");
    noFqn = b.getStringAttr("");
    names.clear();
    for (func::FuncOp program : getEntryPrograms(getOperation())) {
      int64_t position = 0;
      for (Operation &op : program.getOps())
        addOrigin(b, &op, position++);
    }
  }

  /// Adds `op`, at `position` of its program, to its own location.
  void addOrigin(Builder &b, Operation *op, int64_t position) {
    auto fqn = op->getAttrOfType<StringAttr>(kFqnAttr);
    auto origin = DictionaryAttr::getWithSorted(
        &getContext(), {{fqnKey, fqn ? fqn : noFqn},
                        {opKey, getShortName(b, op)},
                        {positionKey, b.getI64IntegerAttr(position)}});
    op->setLoc(FusedLoc::get(&getContext(), {op->getLoc()}, origin));
  }

  StringAttr getShortName(Builder &b, Operation *op) {
    StringAttr &name = names[op->getName()];
    if (!name)
      name = isa_and_present<nn::NNDialect>(op->getDialect())
                 ? b.getStringAttr(op->getName().stripDialect())
                 : op->getName().getIdentifier();
    return name;
  }

  StringAttr fqnKey, opKey, positionKey, noFqn;
  DenseMap<OperationName, StringAttr> names; ///< that origins have
};

} // namespace
