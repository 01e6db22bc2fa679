//===- RedistributionSpace.cpp - Placements as lists of atoms -------------===//

#include "RedistributionSearch.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::redistribution;

std::string State::getKey() const {
  std::string key;
  for (const auto &list : dims) {
    key.append(list.begin(), list.end());
    key.push_back('\xff');
  }
  for (auto [atom, kind] : partial) {
    key.push_back(atom);
    key.push_back(static_cast<char>(kind));
  }
  return key;
}

/// `axis` as the parts of prime size that it consists of.
static SmallVector<AxisRefAttr> getPrimeParts(AxisRefAttr axis, MeshOp mesh) {
  MLIRContext *context = axis.getContext();
  int64_t rest = mesh.getAxisSize(axis);
  int64_t preSize = axis.isWhole() ? 1 : axis.getPreSize();
  SmallVector<AxisRefAttr> parts;
  for (int64_t prime = 2; rest > 1;) {
    if (rest % prime) {
      ++prime;
      continue;
    }
    parts.push_back(AxisRefAttr::get(context, axis.getName(), preSize, prime));
    preSize *= prime;
    rest /= prime;
  }
  return parts;
}

Space::Space(MeshOp mesh, ArrayRef<int64_t> shape, ShardingAttr from,
             ShardingAttr to, bool split, bool all)
    : mesh(mesh), meshRef(from.getMesh()), shape(shape),
      numRanks(mesh.getNumRanks()), split(split) {
  SmallVector<AxisRefAttr> axes;
  auto add = [&](AxisRefAttr axis) {
    if (mesh.getAxisSize(axis) == 1)
      return;
    for (AxisRefAttr part :
         split ? getPrimeParts(axis, mesh) : SmallVector<AxisRefAttr>{axis})
      if (!llvm::is_contained(axes, part))
        axes.push_back(part);
  };
  for (ShardingAttr sharding : {from, to}) {
    for (AxisListAttr list : sharding.getDims())
      llvm::for_each(list, add);
    for (PartialAttr partial : sharding.getPartial())
      add(partial.getAxis());
  }
  for (size_t i = 0; all && i < mesh.getNumAxes(); ++i) {
    auto axis = AxisRefAttr::get(from.getContext(), mesh.getAxisName(i));
    if (llvm::none_of(axes, [&](AxisRefAttr a) { return a.overlaps(axis); }))
      add(axis);
  }
  for (AxisListAttr list : from.getDims()) {
    fixed.push_back(list);
    segments.emplace_back(list.getSegments());
  }
  for (AxisRefAttr axis : axes) {
    Atom atom{axis, mesh.getAxisSize(axis), 0, {}};
    for (int64_t rank = 0; rank < numRanks; ++rank)
      atom.index.push_back(mesh.getIndexAlong(rank, axis));
    for (auto [i, other] : llvm::enumerate(axes))
      if (axis.overlaps(other))
        atom.overlaps |= uint64_t(1) << i;
    atoms.push_back(std::move(atom));
  }
}

State Space::getState(ShardingAttr sharding) const {
  State state;
  auto visit = [&](AxisRefAttr axis, auto add) {
    // An axis is an atom, or a row of its parts.
    for (auto [i, atom] : llvm::enumerate(atoms))
      if (atom.axis == axis) {
        add(static_cast<uint8_t>(i));
        return;
      }
    if (mesh.getAxisSize(axis) == 1)
      return;
    for (AxisRefAttr part : getPrimeParts(axis, mesh))
      for (auto [i, atom] : llvm::enumerate(atoms))
        if (atom.axis == part)
          add(static_cast<uint8_t>(i));
  };
  for (AxisListAttr axes : sharding.getDims()) {
    auto &list = state.dims.emplace_back();
    for (AxisRefAttr axis : axes)
      visit(axis, [&](uint8_t atom) { list.push_back(atom); });
  }
  for (PartialAttr partial : sharding.getPartial())
    visit(partial.getAxis(), [&](uint8_t atom) {
      state.partial.push_back({atom, partial.getKind()});
    });
  return state;
}

SmallVector<AxisRefAttr> Space::getAxes(ArrayRef<uint8_t> list) const {
  SmallVector<AxisRefAttr> axes;
  for (uint8_t atom : list) {
    AxisRefAttr axis = atoms[atom].axis;
    // Neighbouring parts are one part again, all parts the whole dimension.
    // Where sizes don't divide, parts one by one have other blocks than the
    // whole.
    if (split && !axes.empty() && !axis.isWhole() && !axes.back().isWhole() &&
        axes.back().getName() == axis.getName() &&
        axes.back().getPreSize() * axes.back().getSize() == axis.getPreSize()) {
      int64_t size = axes.back().getSize() * axis.getSize();
      axes.back() = AxisRefAttr::get(axis.getContext(), axis.getName(),
                                     axes.back().getPreSize(), size);
    } else {
      axes.push_back(axis);
    }
    AxisRefAttr last = axes.back();
    if (split && !last.isWhole() &&
        last.getSize() == mesh.getAxisSize(AxisRefAttr::get(last.getContext(),
                                                            last.getName())))
      axes.back() = AxisRefAttr::get(last.getContext(), last.getName());
  }
  return axes;
}

ShardingAttr Space::getSharding(const State &state) const {
  MLIRContext *context = meshRef.getContext();
  SmallVector<AxisListAttr> lists;
  for (auto [dim, list] : llvm::enumerate(state.dims))
    lists.push_back(AxisListAttr::get(context, getAxes(list), segments[dim]));
  SmallVector<PartialAttr> partial;
  SmallVector<uint8_t> run;
  for (auto [i, entry] : llvm::enumerate(state.partial)) {
    run.push_back(entry.first);
    bool last = i + 1 == state.partial.size() ||
                state.partial[i + 1].second != entry.second;
    if (!last)
      continue;
    for (AxisRefAttr axis : getAxes(run))
      partial.push_back(PartialAttr::get(context, axis, entry.second));
    run.clear();
  }
  return ShardingAttr::get(context, meshRef, lists, partial);
}

bool Space::isFree(const State &state, uint8_t atom) const {
  uint64_t taken = 0;
  for (const auto &list : state.dims)
    for (uint8_t other : list)
      taken |= uint64_t(1) << other;
  for (auto [other, kind] : state.partial)
    taken |= uint64_t(1) << other;
  return !(taken & atoms[atom].overlaps);
}

bool Space::hasOverlaps() const {
  return llvm::any_of(llvm::enumerate(atoms), [](auto item) {
    return item.value().overlaps != uint64_t(1) << item.index();
  });
}

int64_t Space::getNumBlocks(ArrayRef<uint8_t> list) const {
  int64_t blocks = 1;
  for (uint8_t atom : list)
    blocks *= atoms[atom].size;
  return blocks;
}

Interval Space::computeInterval(ArrayRef<uint8_t> list, int64_t dim,
                                int64_t rank) const {
  // Only the size of a dimension with segments matters: it stays as it is.
  if (isFrozen(dim)) {
    Interval whole;
    for (Interval part : getDimBlock(shape[dim], fixed[dim], mesh, rank))
      whole.size += part.size;
    return whole;
  }
  Interval interval{0, shape[dim]};
  for (uint8_t atom : list)
    interval = getChunk(interval, atoms[atom].size, atoms[atom].index[rank]);
  return interval;
}

ArrayRef<Interval> Space::getIntervals(const State &state, int64_t dim) const {
  ArrayRef<uint8_t> list = state.dims[dim];
  std::string key(1, static_cast<char>(dim));
  key.append(list.begin(), list.end());
  auto [it, isNew] = intervals.try_emplace(key);
  if (isNew)
    for (int64_t rank = 0; rank < numRanks; ++rank)
      it->second.push_back(computeInterval(list, dim, rank));
  return it->second;
}

SmallVector<int64_t> Space::getSizes(const State &state) const {
  SmallVector<int64_t> sizes(numRanks, 1);
  for (int64_t dim = 0; dim < getRank(); ++dim)
    for (auto [size, interval] :
         llvm::zip_equal(sizes, getIntervals(state, dim)))
      size *= interval.size;
  return sizes;
}

SmallVector<int64_t> Space::getShared(const State &from,
                                      const State &to) const {
  SmallVector<int64_t> sizes(numRanks, 1);
  for (int64_t dim = 0; dim < getRank(); ++dim)
    for (auto [size, a, b] : llvm::zip_equal(sizes, getIntervals(from, dim),
                                             getIntervals(to, dim))) {
      int64_t begin = std::max(a.offset, b.offset);
      int64_t end = std::min(a.offset + a.size, b.offset + b.size);
      size *= std::max<int64_t>(end - begin, 0);
    }
  return sizes;
}

bool Space::isSame(const State &from, int64_t holder, const State &to,
                   int64_t rank) const {
  bool sameSizes = true, sameOffsets = true, empty = false;
  for (int64_t dim = 0; dim < getRank(); ++dim) {
    Interval a = getIntervals(from, dim)[holder];
    Interval b = getIntervals(to, dim)[rank];
    sameSizes &= a.size == b.size;
    sameOffsets &= a.offset == b.offset;
    empty |= b.size == 0;
  }
  return sameSizes && (sameOffsets || empty);
}

bool Space::isPermutation(const State &from, const State &to) const {
  bool even = true;
  for (int64_t dim = 0; dim < getRank(); ++dim) {
    ArrayRef<Interval> have = getIntervals(from, dim);
    for (auto [a, b] : llvm::zip_equal(have, getIntervals(to, dim))) {
      if (a.size != b.size)
        return false;
      even &= a.size == have.front().size;
    }
  }
  if (even)
    return true;
  // Blocks of equal sizes needn't be the same blocks.
  auto ranks = llvm::seq<int64_t>(numRanks);
  return llvm::all_of(ranks, [&](int64_t rank) {
    return llvm::any_of(
        ranks, [&](int64_t holder) { return isSame(from, holder, to, rank); });
  });
}

SmallVector<int64_t> Space::getReceived(const State &from,
                                        const Move &move) const {
  SmallVector<int64_t> received(numRanks, 0);
  int64_t n = getNumBlocks(move.atoms);
  SmallVector<int64_t> after = getSizes(move.result);
  switch (move.kind) {
  case RedistributionStep::LocalSlice:
    break;
  case RedistributionStep::ReduceScatter:
    for (int64_t rank = 0; rank < numRanks; ++rank)
      received[rank] = (n - 1) * after[rank];
    break;
  case RedistributionStep::AllReduce:
    for (int64_t rank = 0; rank < numRanks; ++rank) {
      int64_t index = 0;
      for (uint8_t atom : move.atoms)
        index = index * atoms[atom].size + atoms[atom].index[rank];
      int64_t own = getChunk({0, after[rank]}, n, index).size;
      received[rank] = own * (n - 1) + after[rank] - own;
    }
    break;
  case RedistributionStep::Permute:
    for (int64_t rank = 0; rank < numRanks; ++rank)
      received[rank] = isSame(from, rank, move.result, rank) ? 0 : after[rank];
    break;
  case RedistributionStep::AllGather:
  case RedistributionStep::AllToAll:
  case RedistributionStep::Exchange: {
    SmallVector<int64_t> shared = getShared(from, move.result);
    for (int64_t rank = 0; rank < numRanks; ++rank)
      received[rank] = after[rank] - shared[rank];
    break;
  }
  }
  return received;
}

SmallVector<int64_t> Space::getSources(const State &from, const State &to,
                                       ArrayRef<AxisRefAttr> axes) const {
  SmallVector<int64_t> group = mesh.getGroupOf(mesh.getRank(0), axes);
  SmallVector<int64_t> sources;
  for (auto [position, rank] : llvm::enumerate(group)) {
    // Whoever holds the block already keeps it; of several holders the next one
    // after the position sends, so that all send alike.
    int64_t source = -1;
    for (size_t i = 0; i < group.size() && source < 0; ++i)
      if (size_t other = (position + i) % group.size();
          isSame(from, group[other], to, rank))
        source = other;
    sources.push_back(source);
  }
  return sources;
}
