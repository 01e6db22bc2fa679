//===- PlacementFaults.cpp - Wrong words about where values live ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Faults.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "tp/Dialect/NN/NN.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::test;

namespace {

/// Placements that differ from `sharding` in one thing: a dimension's axes,
/// their order or segments, which dimension they split, what is Partial.
SmallVector<ShardingAttr> getOthers(ShardingAttr sharding, Type type,
                                    MeshOp mesh) {
  MLIRContext *context = mesh.getContext();
  llvm::SetVector<ShardingAttr> others;
  ArrayRef<AxisListAttr> dims = sharding.getDims();
  auto add = [&](ArrayRef<AxisListAttr> lists) {
    others.insert(ShardingAttr::get(context, sharding.getMesh(), lists,
                                    sharding.getPartial()));
  };
  for (size_t i = 0; i < dims.size(); ++i) {
    SmallVector<AxisListAttr> lists(dims);
    for (size_t j = i + 1; j < dims.size(); ++j) {
      std::swap(lists[i], lists[j]);
      add(lists);
      std::swap(lists[i], lists[j]);
    }
    auto set = [&](ArrayRef<AxisRefAttr> axes, ArrayRef<int64_t> segments) {
      lists[i] = AxisListAttr::get(context, axes, segments);
      add(lists);
    };
    set({}, {});
    for (size_t axis = 0; axis < mesh.getNumAxes(); ++axis)
      set(AxisRefAttr::get(context, mesh.getAxisName(axis)), {});
    ArrayRef<AxisRefAttr> axes = dims[i].getAxes();
    set(SmallVector<AxisRefAttr>(llvm::reverse(axes)), dims[i].getSegments());
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && !axes.empty())
      for (int64_t first : {int64_t(1), tensor.getDimSize(i) / 2})
        if (first > 0 && first < tensor.getDimSize(i))
          set(axes, {first, tensor.getDimSize(i) - first});
  }
  for (size_t axis = 0; axis < mesh.getNumAxes(); ++axis)
    for (ReductionKind kind : {ReductionKind::Sum, ReductionKind::Max})
      others.insert(sharding.withPartial(
          AxisRefAttr::get(context, mesh.getAxisName(axis)), kind));
  others.insert(sharding.withoutPartial());
  others.remove(sharding);
  return others.takeVector();
}

/// A type of one element more or less along one dimension.
SmallVector<Type> getOtherTypes(Type type) {
  SmallVector<Type> others;
  auto tensor = dyn_cast<RankedTensorType>(type);
  for (int64_t dim = 0; tensor && dim < tensor.getRank(); ++dim)
    for (int64_t by : {-1, 1}) {
      SmallVector<int64_t> shape(tensor.getShape());
      if ((shape[dim] += by) > 0)
        others.push_back(tensor.clone(shape));
    }
  return others;
}

/// Faults of what `attributes` say of an argument, a result or a parameter;
/// `set` changes one of them.
void addFaults(StringRef what, DictionaryAttr attributes, MeshOp mesh,
               std::vector<Fault> &faults,
               std::function<void(Operation *, StringRef, Attribute)> set) {
  auto type = attributes.getAs<TypeAttr>(kGlobalTypeAttr);
  auto sharding = attributes.getAs<ShardingAttr>(kShardingAttr);
  if (!type || !sharding)
    return;
  for (ShardingAttr other : getOthers(sharding, type.getValue(), mesh))
    faults.push_back({("placement of " + what).str(),
                      [=](Operation *op) { set(op, kShardingAttr, other); }});
  for (Type other : getOtherTypes(type.getValue()))
    faults.push_back({("global type of " + what).str(), [=](Operation *op) {
                        set(op, kGlobalTypeAttr, TypeAttr::get(other));
                      }});
}

} // namespace

std::vector<Fault> mlir::tp::test::getPlacementFaults(Operation *op,
                                                      MeshOp mesh) {
  std::vector<Fault> faults;
  if (auto function = dyn_cast<func::FuncOp>(op)) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      addFaults("an argument", function.getArgAttrDict(i), mesh, faults,
                [i](Operation *op, StringRef name, Attribute value) {
                  cast<func::FuncOp>(op).setArgAttr(i, name, value);
                });
    auto results = function.getAllResultAttrs();
    for (unsigned i = 0; results && i < function.getNumResults(); ++i)
      addFaults("a result", cast<DictionaryAttr>(results[i]), mesh, faults,
                [i](Operation *op, StringRef name, Attribute value) {
                  cast<func::FuncOp>(op).setResultAttr(i, name, value);
                });
    return faults;
  }
  if (isa<nn::ParameterOp>(op))
    addFaults("a parameter", op->getDiscardableAttrDictionary(), mesh, faults,
              [](Operation *op, StringRef name, Attribute value) {
                op->setDiscardableAttr(name, value);
              });
  return faults;
}

std::vector<Fault> mlir::tp::test::getBlockFaults(Operation *op, MeshOp mesh) {
  std::vector<Fault> faults;
  if (auto exchange = dyn_cast<ExchangeOp>(op)) {
    // In all programs, so that the ranks still agree.
    auto add = [&](ShardingAttr from, ShardingAttr to) {
      ShardingAttr ownFrom = exchange.getFrom(), ownTo = exchange.getTo();
      faults.push_back(
          {"placement of what is exchanged", [=](Operation *op) {
             op->getParentOfType<ModuleOp>().walk([&](ExchangeOp each) {
               if (each.getFrom() != ownFrom || each.getTo() != ownTo)
                 return;
               each.setFromAttr(from);
               each.setToAttr(to);
             });
           }});
    };
    for (ShardingAttr other :
         getOthers(exchange.getFrom(), exchange.getInput().getType(), mesh))
      add(other, exchange.getTo());
    for (ShardingAttr other :
         getOthers(exchange.getTo(), exchange.getType(), mesh))
      add(exchange.getFrom(), other);
  }
  // One rank's elements begin elsewhere, in all programs.
  if (auto halo = dyn_cast<HaloOp>(op))
    for (size_t i = 0; i < halo.getBegin().size(); ++i)
      for (int64_t by : {-1, 1}) {
        DenseI64ArrayAttr own = halo.getBeginAttr();
        SmallVector<int64_t> begin(halo.getBegin());
        begin[i] += by;
        faults.push_back(
            {"beginning of a halo", [=](Operation *op) {
               auto other = DenseI64ArrayAttr::get(op->getContext(), begin);
               op->getParentOfType<ModuleOp>().walk([&](HaloOp each) {
                 if (each.getBeginAttr() == own)
                   each.setBeginAttr(other);
               });
             }});
      }
  // The same elements on all ranks, or ones that begin elsewhere.
  if (auto slice = dyn_cast<LocalSliceOp>(op)) {
    auto from = cast<RankedTensorType>(slice.getInput().getType());
    auto to = cast<RankedTensorType>(slice.getType());
    int64_t dim = slice.getDim();
    for (int64_t start = 0; start + to.getDimSize(dim) <= from.getDimSize(dim);
         ++start)
      faults.push_back({"the same slice on all ranks", [=](Operation *op) {
                          OpBuilder b(op);
                          Value other = nn::SliceOp::create(
                              b, op->getLoc(), to, op->getOperand(0),
                              b.getI64IntegerAttr(dim),
                              b.getI64IntegerAttr(start),
                              b.getI64IntegerAttr(1));
                          op->getResult(0).replaceAllUsesWith(other);
                          op->erase();
                        }});
    for (int64_t first : {int64_t(0), int64_t(1)}) {
      SmallVector<int64_t> segments;
      if (first > 0)
        segments = {first, from.getDimSize(dim) - first};
      faults.push_back(
          {"segments of a slice", [=](Operation *op) {
             auto slice = cast<LocalSliceOp>(op);
             slice.setAxesAttr(AxisListAttr::get(
                 op->getContext(), slice.getAxes().getAxes(), segments));
           }});
    }
  }
  return faults;
}
