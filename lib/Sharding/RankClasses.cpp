//===- RankClasses.cpp - Ranks that are alike -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/RankClasses.h"
#include "tp/Dialect/TP/Blocks.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp;

DictionaryAttr tp::getMeaning(CollectiveOpInterface op) {
  NamedAttrList attrs(op->getDiscardableAttrDictionary());
  if (auto all =
          dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    attrs.append(all.begin(), all.end());
  for (StringRef origin : {StringRef("fqn"), StringRef("reason"),
                           StringRef("bytes"), StringRef(kFqnAttr)})
    attrs.erase(origin);
  return attrs.getDictionary(op.getContext());
}

AxisListAttr tp::getAxesOf(CollectiveOpInterface op) {
  llvm::SmallSetVector<AxisRefAttr, 4> axes(llvm::from_range,
                                            op.getAxes().getAxes());
  getMeaning(op).walk([&](AxisRefAttr axis) { axes.insert(axis); });
  return AxisListAttr::get(op.getContext(), axes.getArrayRef());
}

std::pair<unsigned, bool> CollectiveInterner::insert(CollectiveOpInterface op) {
  WordList list = {toWord(op->getName().getAsOpaquePointer())};
  list.push_back(toWord(getMeaning(op).getAsOpaquePointer()));
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      list.push_back(toWord(type.getAsOpaquePointer()));
  return interner.insert(list);
}

RankClasses::RankClasses(MeshOp mesh)
    : mesh(mesh), classOf(mesh.getNumRanks(), 0), first(1, 0), indices(mesh) {}

SmallVector<SmallVector<int64_t>> RankClasses::getRanks() const {
  SmallVector<SmallVector<int64_t>> ranks(size());
  for (auto [rank, index] : llvm::enumerate(classOf))
    ranks[index].push_back(rank);
  return ranks;
}

void RankClasses::split(ArrayRef<int64_t> keys) {
  bool isUniform = llvm::all_of(llvm::enumerate(keys), [&](auto entry) {
    return entry.value() == keys[first[classOf[entry.index()]]];
  });
  if (isUniform)
    return;
  first.clear();
  DenseMap<std::pair<unsigned, int64_t>, unsigned> numbers;
  for (auto [rank, key] : llvm::enumerate(keys)) {
    auto [it, isNew] = numbers.try_emplace({classOf[rank], key}, first.size());
    if (isNew)
      first.push_back(rank);
    classOf[rank] = it->second;
  }
}

void RankClasses::split(ArrayRef<int64_t> ranks, ArrayRef<int64_t> kinds,
                        function_ref<int64_t(int64_t)> getKey) {
  // Keys of any value, and one for other ranks: numbered.
  SmallVector<int64_t> keys(classOf.size(), 0);
  DenseMap<std::pair<unsigned, int64_t>, int64_t> known;
  ListInterner interner;
  for (int64_t rank : ranks) {
    auto [it, isNew] = known.try_emplace({classOf[rank], kinds[rank]});
    if (isNew)
      it->second = 1 + interner.insert({static_cast<Word>(getKey(rank))}).first;
    keys[rank] = it->second;
  }
  split(keys);
}

void RankClasses::splitByProgram(ArrayRef<func::FuncOp> programs) {
  SmallVector<int64_t> keys(classOf.size(), 0);
  for (auto [i, program] : llvm::enumerate(programs))
    if (auto ranks = program->getAttrOfType<DenseI64ArrayAttr>(kRanksAttr))
      for (int64_t rank : ranks.asArrayRef())
        keys[rank] = i;
  split(keys);
}

void RankClasses::splitByBlock(int64_t size, AxisListAttr axes) {
  if (axes.empty() || !blocks.insert({size, axes}).second)
    return;
  ListInterner sizes;
  split(llvm::to_vector(llvm::seq<int64_t>(classOf.size())), getIndices(axes),
        [&](int64_t rank) -> int64_t {
          WordList list;
          for (Interval interval : getDimBlock(size, axes, mesh, rank))
            list.push_back(interval.size);
          return sizes.insert(list).first;
        });
}

void RankClasses::splitByBlock(ArrayRef<int64_t> shape, ShardingAttr sharding) {
  if (isEven(shape, sharding, mesh))
    return;
  for (auto [size, axes] : llvm::zip_equal(shape, sharding.getDims()))
    splitByBlock(size, axes);
}

void RankClasses::splitByReceivedBytes(CollectiveOpInterface op,
                                       ArrayRef<int64_t> ranks) {
  split(ranks, getIndices(getAxesOf(op)),
        [&](int64_t rank) { return op.getReceivedBytes(rank, mesh); });
}

void RankClasses::splitByPeers(ArrayRef<Peers> peers) {
  DenseMap<AxisListAttr, SmallVector<SmallVector<int64_t>>> groups;
  for (const Peers &each : peers)
    if (!groups.contains(each.axes))
      groups[each.axes] = mesh.getGroups(each.axes.getAxes());
  SmallVector<int64_t> keys(classOf.size());
  for (size_t before = 0; before != size();) {
    before = size();
    for (const Peers &each : peers) {
      ListInterner interner;
      for (ArrayRef<int64_t> group : groups[each.axes]) {
        WordList met;
        for (int64_t position : each.positions)
          met.push_back(classOf[group[position]]);
        if (each.positions.empty()) {
          for (int64_t rank : group)
            met.push_back(classOf[rank]);
          llvm::sort(met);
          met.erase(llvm::unique(met), met.end());
        }
        int64_t key = interner.insert(met).first;
        for (int64_t rank : group)
          keys[rank] = key;
      }
      split(keys);
    }
  }
}
