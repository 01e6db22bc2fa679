//===- ValueNumbering.cpp - Equal numbers for equal computations ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ValueNumbering.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/ShapeOpInterfaces.h"

using namespace mlir;
using namespace mlir::tp;

/// The axes of a reduction in a canonical order. Any order joins the same
/// ranks, and theirs doesn't matter in a reduction.
static AxisListAttr sortAxes(AxisListAttr axes) {
  SmallVector<AxisRefAttr> sorted(axes.getAxes());
  llvm::sort(sorted, [](AxisRefAttr a, AxisRefAttr b) {
    return std::pair(a.getName(), a.getPreSize()) <
           std::pair(b.getName(), b.getPreSize());
  });
  return AxisListAttr::get(axes.getContext(), sorted);
}

Attribute tp::getMeaning(Operation *op) {
  Attribute inherent = op->getPropertiesAsAttribute();
  NamedAttrList kept;
  if (auto dictionary = dyn_cast_or_null<DictionaryAttr>(inherent))
    kept = NamedAttrList(dictionary);
  else if (!inherent)
    kept = NamedAttrList(op->getAttrDictionary());
  if (isa<CollectiveOpInterface>(op))
    for (StringRef name : {"fqn", "reason", "bytes"})
      kept.erase(name);
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    kept.set(reduce.getAxesAttrName(), sortAxes(reduce.getAxes()));
  for (StringRef name : {kShardingAttr, kGlobalTypeAttr, kFqnAttr})
    kept.erase(name);
  if (op->hasAttr(kGlobalTypeAttr))
    for (StringRef name : {kShardingAttr, kGlobalTypeAttr})
      if (Attribute value = op->getDiscardableAttr(name))
        kept.set(name, value);
  if (Attribute bound = op->getDiscardableAttr(kIndexBoundAttr))
    kept.set(kIndexBoundAttr, bound);
  return kept.getDictionary(op->getContext());
}

bool tp::isDraw(Operation *op) {
  auto isDropout = [](nn::DropoutOp) { return WalkResult::interrupt(); };
  return op->walk(isDropout).wasInterrupted();
}

SmallVector<Value> ValueNumbering::getCaptured(Operation *op) {
  llvm::SetVector<Value> captured;
  if (op->getNumRegions())
    getUsedValuesDefinedAbove(op->getRegions(), captured);
  return captured.takeVector();
}

/// Whether the regions compute the same, given that their captured values have
/// the same numbers.
static bool haveSameRegions(Operation *a, Operation *b) {
  if (a == b)
    return true;
  DenseMap<Value, Value> same;
  SmallVector<Value> ofA = ValueNumbering::getCaptured(a);
  SmallVector<Value> ofB = ValueNumbering::getCaptured(b);
  if (ofA.size() != ofB.size() || a->getNumRegions() != b->getNumRegions())
    return false;
  for (auto [x, y] : llvm::zip_equal(ofA, ofB))
    same[x] = y;
  for (auto [x, y] : llvm::zip_equal(a->getRegions(), b->getRegions()))
    if (!OperationEquivalence::isRegionEquivalentTo(
            &x, &y,
            [&](Value l, Value r) { return success(same.lookup(l) == r); },
            [&](Value l, Value r) { same[l] = r; },
            OperationEquivalence::IgnoreLocations))
      return false;
  return true;
}

ValueNumbering::Number ValueNumbering::intern(Entry entry,
                                              unsigned numResults) {
  llvm::hash_code hash = llvm::hash_combine(
      entry.name, entry.op ? entry.op->getAsOpaquePointer() : nullptr,
      entry.draw, llvm::hash_combine_range(entry.operands),
      llvm::hash_combine_range(entry.types));
  SmallVector<unsigned, 1> &same = byHash[static_cast<size_t>(hash)];
  for (unsigned index : same) {
    const Entry &other = entries[index];
    if (other.name == entry.name && other.op == entry.op &&
        other.operands == entry.operands && other.types == entry.types &&
        other.draw == entry.draw &&
        (!entry.regions || haveSameRegions(other.regions, entry.regions)))
      return other.first;
  }
  same.push_back(entries.size());
  entry.first = next;
  next += numResults;
  entries.push_back(std::move(entry));
  return entries.back().first;
}

ValueNumbering::Number ValueNumbering::getSource(Attribute name, Type type) {
  Entry entry;
  entry.name = name;
  entry.types.push_back(type);
  return intern(std::move(entry), 1);
}

ValueNumbering::Number ValueNumbering::get(Operation *op,
                                           ArrayRef<Number> operands,
                                           TypeRange types, unsigned draw) {
  Entry entry;
  // Each dialect has its own ops for these.
  if (isa<ReshapeOpInterface, TransposeOpInterface>(op)) {
    Builder b(op->getContext());
    if (auto transpose = dyn_cast<TransposeOpInterface>(op))
      entry.name = b.getDenseI64ArrayAttr(transpose.getPermutation());
    entry.operands.push_back(operands.front());
    entry.types.assign(types.begin(), types.end());
    return intern(std::move(entry), 1);
  }
  entry.draw = draw;
  entry.name = getMeaning(op);
  entry.op = op->getName();
  entry.operands.assign(operands.begin(), operands.end());
  if (op->hasTrait<OpTrait::IsCommutative>())
    llvm::sort(entry.operands);
  entry.types.assign(types.begin(), types.end());
  if (op->getNumRegions())
    entry.regions = op;
  return intern(std::move(entry), op->getNumResults());
}
