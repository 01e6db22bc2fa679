//===- RedistributionSpace.cpp - Placements as lists of atoms -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RedistributionSpace.h"
#include "tp/Dialect/TP/AxisParts.h"
#include "tp/Dialect/TP/Intervals.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::redistribution;

std::string State::getKey() const {
  std::string key(reinterpret_cast<const char *>(&pending), sizeof(pending));
  for (const List *list : dims)
    key.append(reinterpret_cast<const char *>(&list->id), sizeof(list->id));
  return key;
}

/// The bounds of parts of a mesh dimension, ascending, each a multiple of the
/// one before; empty if the mentioned bounds don't nest.
static SmallVector<int64_t>
getBounds(int64_t size, ArrayRef<AxisRefAttr> mentioned, MeshOp mesh) {
  PartBounds bounds(size);
  for (AxisRefAttr axis : mentioned)
    if (!bounds.add(getPartBegin(axis)) || !bounds.add(getPartEnd(mesh, axis)))
      return {};
  return to_vector(bounds.get());
}

SmallVector<int64_t> redistribution::getPrimes(int64_t size) {
  SmallVector<int64_t> primes;
  for (int64_t prime = 2; size > 1;) {
    if (size % prime == 0) {
      primes.push_back(prime);
      size /= prime;
    } else {
      ++prime;
    }
  }
  return primes;
}

SmallVector<AxisRefAttr> Space::getParts(Granularity granularity,
                                         ArrayRef<AxisRefAttr> mentioned,
                                         bool all) {
  MLIRContext *context = meshRef.getContext();
  SmallVector<AxisRefAttr> parts;
  for (size_t i = 0, e = mesh.getNumAxes(); i < e; ++i) {
    int64_t size = mesh.getAxisSizes()[i];
    StringRef name = mesh.getAxisName(i);
    SmallVector<AxisRefAttr> here;
    llvm::copy_if(mentioned, std::back_inserter(here),
                  [&](AxisRefAttr axis) { return axis.getName() == name; });
    if (size == 1 || (here.empty() && !all))
      continue;
    SmallVector<int64_t> bounds;
    if (granularity != Granularity::Mentioned)
      bounds = getBounds(size, here, mesh);
    if (bounds.empty()) {
      llvm::append_range(parts, here);
      if (here.empty())
        parts.push_back(AxisRefAttr::get(context, name));
      continue;
    }
    for (auto [begin, end] : llvm::zip(bounds, ArrayRef(bounds).drop_front())) {
      SmallVector<int64_t> sizes = {end / begin};
      if (granularity != Granularity::Common)
        sizes = getPrimes(end / begin);
      if (granularity == Granularity::LargePrimes)
        std::reverse(sizes.begin(), sizes.end());
      int64_t pre = begin;
      for (int64_t part : sizes) {
        parts.push_back(part == size
                            ? AxisRefAttr::get(context, name)
                            : AxisRefAttr::get(context, name, pre, part));
        pre *= part;
      }
    }
  }
  return parts;
}

Space::Space(MeshOp mesh, ArrayRef<int64_t> shape, ShardingAttr from,
             ShardingAttr to, Granularity granularity, bool all)
    : mesh(mesh), meshRef(from.getMesh()), shape(shape),
      merge(granularity != Granularity::Mentioned) {
  SmallVector<AxisRefAttr> mentioned;
  auto mention = [&](AxisRefAttr axis) {
    if (mesh.getAxisSize(axis) > 1 && !llvm::is_contained(mentioned, axis))
      mentioned.push_back(axis);
  };
  for (ShardingAttr sharding : {from, to}) {
    for (AxisListAttr list : sharding.getDims())
      llvm::for_each(list, mention);
    for (PartialAttr partial : sharding.getPartial())
      mention(partial.getAxis());
  }
  addAtoms(getParts(granularity, mentioned, all));
  addRanks();
  addUnits(mentioned);
  addPartial(from, to);
  addRoots(from);
  faithful = represents(from) && represents(to);
}

void Space::addAtoms(ArrayRef<AxisRefAttr> parts) {
  for (AxisRefAttr axis : parts) {
    Atom atom{axis, mesh.getAxisSize(axis)};
    for (auto [i, other] : llvm::enumerate(parts))
      if (axis.overlaps(other)) {
        atom.overlaps |= uint64_t(1) << (i % 64);
        overlapping |= axis != other;
      }
    atoms.push_back(std::move(atom));
  }
}

/// Ranks with the same index in every atom have the same blocks.
void Space::addRanks() {
  int64_t numRanks = mesh.getNumRanks();
  llvm::DenseMap<int64_t, int64_t> known;
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    SmallVector<int64_t> coordinates;
    int64_t key = 0;
    for (const Atom &atom : atoms) {
      coordinates.push_back(mesh.getIndexAlong(rank, atom.axis));
      key = key * atom.size + coordinates.back();
    }
    if (overlapping)
      key = rank;
    auto [it, isNew] = known.try_emplace(key, ranks.size());
    position.push_back(it->second);
    if (!isNew)
      continue;
    ranks.push_back(rank);
    for (auto [atom, index] : llvm::zip_equal(atoms, coordinates))
      atom.index.push_back(index);
  }
  alike = numRanks / ranks.size();
}

SmallVector<uint8_t, 4> Space::getRun(AxisRefAttr axis) const {
  SmallVector<uint8_t, 4> run;
  int64_t begin = getPartBegin(axis), end = getPartEnd(mesh, axis);
  for (auto [i, atom] : llvm::enumerate(atoms)) {
    if (atom.axis == axis)
      return {static_cast<uint8_t>(i)};
    if (!merge || atom.axis.getName() != axis.getName() ||
        getPartBegin(atom.axis) != begin || getPartEnd(mesh, atom.axis) > end)
      continue;
    run.push_back(i);
    begin = getPartEnd(mesh, atom.axis);
  }
  return run;
}

void Space::addUnits(ArrayRef<AxisRefAttr> mentioned) {
  for (AxisRefAttr axis : mentioned)
    units.push_back(getRun(axis));
  for (auto [i, size] : llvm::enumerate(mesh.getAxisSizes())) {
    SmallVector<uint8_t, 4> run =
        getRun(AxisRefAttr::get(meshRef.getContext(), mesh.getAxisName(i)));
    if (size > 1 && getNumBlocks(run) == size &&
        !llvm::is_contained(units, run))
      units.push_back(run);
  }
}

void Space::addPartial(ShardingAttr from, ShardingAttr to) {
  for (PartialAttr partial : from.getPartial()) {
    bool stays = llvm::is_contained(to.getPartial(), partial);
    if (stays)
      kept.push_back(partial);
    for (uint8_t atom : getRun(partial.getAxis())) {
      atoms[atom].reduction = partial.getKind();
      if (stays)
        keptAtoms |= uint64_t(1) << atom;
    }
  }
}

void Space::addRoots(ShardingAttr from) {
  for (auto [dim, list] : llvm::enumerate(from.getDims())) {
    segments.emplace_back(list.getSegments());
    lists.push_back(List());
    List &root = lists.back();
    root.id = lists.size();
    root.longer.resize(atoms.size());
    // For a dimension with segments, only the size matters: no step changes it.
    for (int64_t rank : ranks) {
      Interval whole{0, shape[dim]};
      if (isFrozen(dim))
        whole.size = getSize(getDimBlock(shape[dim], list, mesh, rank));
      root.intervals.push_back(whole);
      root.even &= whole.size == root.intervals.front().size;
    }
    roots.push_back(&root);
  }
}

/// A state merges neighboring parts, which may have had different blocks.
bool Space::represents(ShardingAttr sharding) const {
  State state = getState(sharding);
  for (auto [dim, list] : llvm::enumerate(sharding.getDims())) {
    if (isFrozen(dim))
      continue;
    if (!list.getSegments().empty())
      return false;
    for (auto [rank, mine] :
         llvm::zip_equal(ranks, state.dims[dim]->intervals)) {
      Interval block = getDimBlock(shape[dim], list, mesh, rank)[0];
      if (mine.size != block.size ||
          (mine.offset != block.offset && mine.size != 0))
        return false;
    }
  }
  return true;
}

State Space::getState(ShardingAttr sharding) const {
  State state;
  auto visit = [&](AxisRefAttr axis, auto add) {
    for (auto [i, atom] : llvm::enumerate(atoms))
      if (atom.axis == axis) {
        add(static_cast<uint8_t>(i));
        return;
      }
    int64_t begin = getPartBegin(axis), end = begin * mesh.getAxisSize(axis);
    for (auto [i, atom] : llvm::enumerate(atoms)) {
      int64_t pre = getPartBegin(atom.axis);
      if (merge && atom.axis.getName() == axis.getName() && pre >= begin &&
          pre * atom.size <= end)
        add(static_cast<uint8_t>(i));
    }
  };
  for (auto [dim, axes] : llvm::enumerate(sharding.getDims())) {
    SmallVector<uint8_t> list;
    for (AxisRefAttr axis : axes)
      visit(axis, [&](uint8_t atom) { list.push_back(atom); });
    state.dims.push_back(append(roots[dim], dim, list));
  }
  for (PartialAttr partial : sharding.getPartial())
    visit(partial.getAxis(), [&](uint8_t atom) {
      if (!(keptAtoms >> atom & 1))
        state.pending |= uint64_t(1) << atom;
    });
  return state;
}

SmallVector<AxisRefAttr> Space::getAxes(ArrayRef<uint8_t> list) const {
  SmallVector<AxisRefAttr> axes;
  for (uint8_t atom : list)
    axes.push_back(atoms[atom].axis);
  return merge ? mergeParts(mesh, axes) : axes;
}

ShardingAttr Space::getSharding(const State &state) const {
  MLIRContext *context = meshRef.getContext();
  SmallVector<AxisListAttr> dims;
  for (auto [dim, list] : llvm::enumerate(state.dims))
    dims.push_back(
        AxisListAttr::get(context, getAxes(list->atoms), segments[dim]));
  SmallVector<PartialAttr> partial(kept);
  SmallVector<uint8_t> run;
  for (uint8_t atom = 0; atom < atoms.size(); ++atom) {
    if (!(state.pending >> atom & 1))
      continue;
    run.push_back(atom);
    bool last = true;
    for (uint8_t next = atom + 1; next < atoms.size(); ++next)
      if (state.pending >> next & 1) {
        last = atoms[next].reduction != atoms[atom].reduction;
        break;
      }
    if (!last)
      continue;
    for (AxisRefAttr axis : getAxes(run))
      partial.push_back(
          PartialAttr::get(context, axis, *atoms[atom].reduction));
    run.clear();
  }
  return ShardingAttr::get(context, meshRef, dims, partial);
}

uint64_t Space::getTaken(const State &state) const {
  uint64_t taken = state.pending | keptAtoms;
  for (const List *list : state.dims)
    taken |= list->mask;
  return taken;
}

int64_t Space::getNumBlocks(ArrayRef<uint8_t> list) const {
  int64_t blocks = 1;
  for (uint8_t atom : list)
    blocks *= atoms[atom].size;
  return blocks;
}

int64_t Space::getNumElements() const {
  int64_t elements = llvm::product_of(shape);
  for (size_t atom = 0; atom < atoms.size(); ++atom)
    if (keptAtoms >> atom & 1)
      elements *= atoms[atom].size;
  return elements;
}

int64_t Space::getNumPending(const State &state) const {
  int64_t parts = 1;
  for (size_t atom = 0; atom < atoms.size(); ++atom)
    if (state.pending >> atom & 1)
      parts *= atoms[atom].size;
  return parts;
}

/// Cuts by the atoms of `list` from `begin` on; cuts by neighboring parts at
/// once.
Interval Space::cut(Interval interval, ArrayRef<uint8_t> list, size_t begin,
                    size_t rank) const {
  for (size_t i = begin; i < list.size();) {
    const Atom &first = atoms[list[i]];
    int64_t size = first.size, index = first.index[rank];
    int64_t end = getPartBegin(first.axis) * first.size;
    for (++i; merge && i < list.size(); ++i) {
      const Atom &next = atoms[list[i]];
      if (next.axis.getName() != first.axis.getName() ||
          getPartBegin(next.axis) != end)
        break;
      size *= next.size;
      index = index * next.size + next.index[rank];
      end *= next.size;
    }
    interval = getChunk(interval, size, index);
  }
  return interval;
}

const List *Space::append(const List *list, int64_t dim,
                          ArrayRef<uint8_t> added) const {
  for (uint8_t atom : added) {
    const List *&longer = list->longer[atom];
    if (!longer) {
      List next;
      next.parent = list;
      next.atoms = list->atoms;
      next.atoms.push_back(atom);
      next.mask = list->mask | uint64_t(1) << atom;
      next.id = lists.size() + 1;
      next.blocks = list->blocks * atoms[atom].size;
      next.longer.resize(atoms.size());
      if (isFrozen(dim)) {
        next.intervals = list->intervals;
        next.even = list->even;
      } else {
        next.even = shape[dim] % next.blocks == 0;
        next.intervals.reserve(ranks.size());
        // If all sizes divide, each part cuts the block that the parts before
        // it leave.
        const Atom &last = atoms[atom];
        for (size_t rank = 0; rank < ranks.size(); ++rank)
          next.intervals.push_back(
              next.even
                  ? getChunk(list->intervals[rank], last.size, last.index[rank])
                  : cut({0, shape[dim]}, next.atoms, 0, rank));
      }
      lists.push_back(std::move(next));
      longer = &lists.back();
    }
    list = longer;
  }
  return list;
}

bool Space::refines(const List *longer, int64_t dim, size_t count) const {
  if (longer->even)
    return true;
  const List *shorter = longer;
  for (size_t i = 0; i < count; ++i)
    shorter = shorter->parent;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    Interval chunk = cut(shorter->intervals[rank], longer->atoms,
                         shorter->atoms.size(), rank);
    Interval block = longer->intervals[rank];
    if (chunk.size != block.size ||
        (chunk.size != 0 && chunk.offset != block.offset))
      return false;
  }
  return true;
}

SmallVector<int64_t> Space::getSizes(const State &state) const {
  SmallVector<int64_t> sizes(ranks.size(), 1);
  for (const List *list : state.dims)
    for (auto [size, interval] : llvm::zip_equal(sizes, list->intervals))
      size *= interval.size;
  return sizes;
}

SmallVector<int64_t> Space::getShared(const State &from,
                                      const State &to) const {
  SmallVector<int64_t> sizes(ranks.size(), 1);
  for (auto [have, want] : llvm::zip_equal(from.dims, to.dims))
    for (auto [size, a, b] :
         llvm::zip_equal(sizes, have->intervals, want->intervals)) {
      int64_t begin = std::max(a.offset, b.offset);
      int64_t end = std::min(a.offset + a.size, b.offset + b.size);
      size *= std::max<int64_t>(end - begin, 0);
    }
  return sizes;
}

static int64_t getFirstSize(const State &state) {
  int64_t size = 1;
  for (const List *list : state.dims)
    size *= list->intervals.front().size;
  return size;
}

int64_t Space::getTotal(const State &state) const {
  if (isEven(state))
    return alike * ranks.size() * getFirstSize(state);
  return alike * llvm::sum_of(getSizes(state));
}

int64_t Space::getPeak(const State &state) const {
  if (isEven(state))
    return getFirstSize(state);
  return *llvm::max_element(getSizes(state));
}

ArrayRef<double> Space::getOverlaps(const List *a, const List *b) const {
  auto [it, isNew] = overlaps.try_emplace({a->id, b->id});
  std::vector<double> &common = it->second;
  if (!isNew)
    return common;
  for (auto [x, y] : llvm::zip_equal(a->intervals, b->intervals)) {
    int64_t begin = std::max(x.offset, y.offset);
    int64_t end = std::min(x.offset + x.size, y.offset + y.size);
    common.push_back(std::max<int64_t>(end - begin, 0));
  }
  if (llvm::all_equal(common))
    common.resize(1);
  return common;
}

int64_t Space::getMissing(const State &from, const State &to) const {
  // Up to 2^53, products of whole numbers are exact.
  double constant = 1;
  SmallVector<ArrayRef<double>, 4> varying;
  for (auto [have, want] : llvm::zip_equal(from.dims, to.dims)) {
    ArrayRef<double> common = getOverlaps(have, want);
    if (common.size() == 1 && ranks.size() > 1)
      constant *= common.front();
    else
      varying.push_back(common);
  }
  double shared = varying.empty() ? ranks.size() : 0;
  if (!varying.empty()) {
    SmallVector<double, 0> products(varying.front());
    for (ArrayRef<double> factors : ArrayRef(varying).drop_front())
      for (size_t rank = 0; rank < ranks.size(); ++rank)
        products[rank] *= factors[rank];
    shared = llvm::sum_of(products, 0.0);
  }
  return getTotal(to) - alike * static_cast<int64_t>(shared * constant);
}

bool Space::isSame(const State &from, size_t holder, const State &to,
                   size_t rank) const {
  bool sameSizes = true, sameOffsets = true, empty = false;
  for (auto [have, want] : llvm::zip_equal(from.dims, to.dims)) {
    Interval a = have->intervals[holder], b = want->intervals[rank];
    sameSizes &= a.size == b.size;
    sameOffsets &= a.offset == b.offset;
    empty |= b.size == 0;
  }
  return sameSizes && (sameOffsets || empty);
}

bool Space::isSame(const State &from, const State &to) const {
  return llvm::all_of(llvm::seq<size_t>(0, ranks.size()), [&](size_t rank) {
    return isSame(from, rank, to, rank);
  });
}

bool Space::isPermutation(const State &from, const State &to) const {
  if (isEven(from) && isEven(to))
    return llvm::all_of(llvm::zip_equal(from.dims, to.dims), [](auto pair) {
      auto [a, b] = pair;
      return a->blocks == b->blocks;
    });
  auto all = llvm::seq<size_t>(0, ranks.size());
  return llvm::all_of(all, [&](size_t rank) {
    return llvm::any_of(
        all, [&](size_t holder) { return isSame(from, holder, to, rank); });
  });
}

int64_t Space::getPermuted(const State &from, const State &to) const {
  int64_t moved = 0;
  SmallVector<int64_t> sizes = getSizes(to);
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (!isSame(from, rank, to, rank))
      moved += sizes[rank];
  return alike * moved;
}

SmallVector<int64_t> Space::getReceived(const State &from,
                                        const Move &move) const {
  SmallVector<int64_t> received(ranks.size(), 0);
  int64_t n = getNumBlocks(move.atoms);
  SmallVector<int64_t> after = getSizes(move.result);
  switch (move.kind) {
  case RedistributionStep::LocalSlice:
    break;
  case RedistributionStep::ReduceScatter:
    for (auto [sum, size] : llvm::zip_equal(received, after))
      sum = (n - 1) * size;
    break;
  case RedistributionStep::AllReduce:
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      int64_t index = 0;
      for (uint8_t atom : move.atoms)
        index = index * atoms[atom].size + atoms[atom].index[rank];
      int64_t own = getChunk({0, after[rank]}, n, index).size;
      received[rank] = own * (n - 1) + after[rank] - own;
    }
    break;
  case RedistributionStep::Permute:
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      received[rank] = isSame(from, rank, move.result, rank) ? 0 : after[rank];
    break;
  case RedistributionStep::AllGather:
  case RedistributionStep::AllToAll:
  case RedistributionStep::Exchange: {
    SmallVector<int64_t> shared = getShared(from, move.result);
    for (auto [sum, size, own] : llvm::zip_equal(received, after, shared))
      sum = size - own;
    break;
  }
  }
  SmallVector<int64_t> byRank;
  for (int64_t at : position)
    byRank.push_back(received[at]);
  return byRank;
}

SmallVector<int64_t> Space::getSources(const State &from, const State &to,
                                       ArrayRef<AxisRefAttr> axes) const {
  SmallVector<int64_t> group = mesh.getGroupOf(mesh.getRank(0), axes);
  SmallVector<int64_t> sources;
  for (auto [index, rank] : llvm::enumerate(group)) {
    // A rank that already holds the block keeps it. If several ranks hold it,
    // the next one after the position sends, which spreads the sends evenly.
    int64_t source = -1;
    for (size_t i = 0; i < group.size() && source < 0; ++i)
      if (size_t other = (index + i) % group.size();
          isSame(from, position[group[other]], to, position[rank]))
        source = other;
    sources.push_back(source);
  }
  return sources;
}
