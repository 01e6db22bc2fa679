//===- RedistributionSpace.h - Placements as lists of atoms -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_SHARDING_REDISTRIBUTION_REDISTRIBUTIONSPACE_H
#define TP_LIB_SHARDING_REDISTRIBUTION_REDISTRIBUTIONSPACE_H

#include "tp/Dialect/TP/Blocks.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include "llvm/ADT/DenseMap.h"
#include <deque>
#include <optional>
#include <string>

namespace mlir::tp::redistribution {

/// A mesh dimension, or a part of one, that the search moves as a unit.
struct Atom {
  AxisRefAttr axis;
  int64_t size;
  /// The atoms that overlap this one along its mesh dimension, itself included.
  uint64_t overlaps = 0;
  /// How it is reduced, if the source is Partial over it.
  std::optional<ReductionKind> reduction = std::nullopt;
  /// Each rank's index along the axis.
  SmallVector<int64_t, 0> index = {};
};

/// A list of atoms that split one dimension, major to minor. It is a node of a
/// tree whose root is the empty list. Each list exists once, so equal lists are
/// equal pointers.
struct List {
  /// The list without its last atom; null for the empty list.
  const List *parent = nullptr;
  SmallVector<uint8_t, 4> atoms;
  uint64_t mask = 0;
  /// Unique for each list.
  uint32_t id = 0;
  /// The number of blocks, and whether all have the same size.
  int64_t blocks = 1;
  bool even = true;
  /// Each rank's block.
  std::vector<Interval> intervals;
  /// The lists with one more atom, by that atom.
  mutable SmallVector<const List *, 0> longer;
};

/// The part of a placement that steps change: the list of each dimension, and
/// the atoms over which the tensor is still Partial although the target isn't.
struct State {
  SmallVector<const List *, 4> dims;
  uint64_t pending = 0;

  bool operator==(const State &other) const {
    return dims == other.dims && pending == other.pending;
  }
  std::string getKey() const;
};

/// A step from one state to another.
struct Move {
  RedistributionStep::Kind kind = RedistributionStep::LocalSlice;
  SmallVector<uint8_t, 4> atoms = {};
  int64_t dim = 0, concatDim = 0;
  ReductionKind reduction = ReductionKind::Sum;
  /// For an all-to-all between several pairs of dimensions, `dim` and
  /// `concatDim` by atom.
  SmallVector<std::pair<int64_t, int64_t>, 0> pairs = {};
  /// The state after the step, also in the search from the target.
  State result = {};
};

/// How fine the atoms of a space are.
enum class Granularity {
  /// The axes that the placements mention, uncut.
  Mentioned,
  /// The coarsest parts of mesh dimensions that make up all of these axes.
  Common,
  /// The parts of prime size that make up these, with small primes first or
  /// last.
  SmallPrimes,
  LargePrimes
};

/// The prime factors of `size`, ascending.
SmallVector<int64_t> getPrimes(int64_t size);

/// What all states have in common: the tensor, the mesh and the atoms.
class Space {
public:
  /// With `all`, the atoms include the mesh dimensions that neither placement
  /// mentions.
  Space(MeshOp mesh, ArrayRef<int64_t> shape, ShardingAttr from,
        ShardingAttr to, Granularity granularity, bool all = false);
  Space(const Space &) = delete;

  /// Whether states represent the two placements exactly. States treat
  /// neighboring parts of a mesh dimension as one axis; if sizes don't divide,
  /// the parts may have different blocks than that axis.
  bool isFaithful() const { return faithful; }
  bool hasOverlaps() const { return overlapping; }
  size_t getNumAtoms() const { return atoms.size(); }
  const Atom &getAtom(uint8_t atom) const { return atoms[atom]; }
  /// Runs of atoms that make up an axis of a placement or a whole mesh
  /// dimension.
  ArrayRef<SmallVector<uint8_t, 4>> getUnits() const { return units; }
  State getState(ShardingAttr sharding) const;
  /// The placement of `state`, including the part of the source's Partial that
  /// stays.
  ShardingAttr getSharding(const State &state) const;
  SmallVector<AxisRefAttr> getAxes(ArrayRef<uint8_t> list) const;
  /// The atoms that split a dimension or are partial in a state.
  uint64_t getTaken(const State &state) const;
  bool isFree(uint64_t taken, uint8_t atom) const {
    return !(taken & atoms[atom].overlaps);
  }
  /// Whether `dim` has segments; no step except an exchange changes it.
  bool isFrozen(int64_t dim) const { return !segments[dim].empty(); }
  int64_t getRank() const { return shape.size(); }
  /// The product of the sizes of atoms.
  int64_t getNumBlocks(ArrayRef<uint8_t> list) const;
  /// The number of pending parts that each element of a state is the sum of;
  /// and the tensor's elements times the number of parts of the Partial that
  /// stays.
  int64_t getNumPending(const State &state) const;
  int64_t getNumElements() const;

  const List *append(const List *list, int64_t dim,
                     ArrayRef<uint8_t> added) const;
  /// Whether each block of `longer` is the chunk that its last `count` atoms
  /// cut from the block of the list without these atoms.
  bool refines(const List *longer, int64_t dim, size_t count) const;

  /// Representative ranks, which differ in some atom. Every other rank has the
  /// same blocks as one of these.
  ArrayRef<int64_t> getRanks() const { return ranks; }

  /// The number of elements of the ranks' blocks, and of the elements that
  /// blocks of `from` and of `to` share, by rank in `getRanks`.
  SmallVector<int64_t> getSizes(const State &state) const;
  SmallVector<int64_t> getShared(const State &from, const State &to) const;
  /// The number of elements of all ranks' blocks, and of the largest block.
  int64_t getTotal(const State &state) const;
  int64_t getPeak(const State &state) const;
  /// The number of elements that ranks need for `to` and don't have in `from`.
  int64_t getMissing(const State &from, const State &to) const;
  bool isEven(const State &state) const {
    return llvm::all_of(state.dims, [](const List *l) { return l->even; });
  }
  /// Whether each rank's blocks of the two states are the same. Empty blocks of
  /// different shapes count as different.
  bool isSame(const State &from, const State &to) const;
  /// Whether every rank's block of `to` is some rank's block of `from`.
  bool isPermutation(const State &from, const State &to) const;
  /// The number of elements that move from one state to another that is a
  /// permutation of it.
  int64_t getPermuted(const State &from, const State &to) const;
  /// The number of elements that each rank of the mesh receives in `move` from
  /// `from`.
  SmallVector<int64_t> getReceived(const State &from, const Move &move) const;
  /// For each position of a group along `axes`, the position that it receives
  /// from.
  SmallVector<int64_t> getSources(const State &from, const State &to,
                                  ArrayRef<AxisRefAttr> axes) const;

private:
  SmallVector<AxisRefAttr> getParts(Granularity granularity,
                                    ArrayRef<AxisRefAttr> mentioned, bool all);
  void addAtoms(ArrayRef<AxisRefAttr> parts);
  void addRanks();
  void addUnits(ArrayRef<AxisRefAttr> mentioned);
  void addPartial(ShardingAttr from, ShardingAttr to);
  void addRoots(ShardingAttr from);
  bool represents(ShardingAttr sharding) const;
  /// The atom equal to `axis`, or the atoms that make it up, each starting
  /// where the one before ends.
  SmallVector<uint8_t, 4> getRun(AxisRefAttr axis) const;
  ArrayRef<double> getOverlaps(const List *a, const List *b) const;
  Interval cut(Interval interval, ArrayRef<uint8_t> list, size_t begin,
               size_t rank) const;
  bool isSame(const State &from, size_t holder, const State &to,
              size_t rank) const;

  mutable MeshOp mesh; // an op's accessors aren't const
  FlatSymbolRefAttr meshRef;
  SmallVector<int64_t> shape;
  SmallVector<SmallVector<int64_t>> segments;
  /// Whether neighboring parts are treated as one axis.
  bool merge;
  bool faithful = true, overlapping = false;
  std::vector<Atom> atoms;
  SmallVector<SmallVector<uint8_t, 4>> units;
  /// The Partial of the source that the target keeps.
  SmallVector<PartialAttr> kept;
  uint64_t keptAtoms = 0;
  SmallVector<int64_t> ranks;
  /// For each rank of the mesh, the index of its representative in `ranks`.
  SmallVector<int64_t> position;
  int64_t alike = 1;
  mutable std::deque<List> lists;
  /// The number of elements that blocks of a dimension share, by rank; one
  /// entry if it is the same for all ranks. Indexed by the lists' ids.
  mutable llvm::DenseMap<std::pair<uint32_t, uint32_t>, std::vector<double>>
      overlaps;
  SmallVector<const List *, 4> roots;
};

} // namespace mlir::tp::redistribution

#endif // TP_LIB_SHARDING_REDISTRIBUTION_REDISTRIBUTIONSPACE_H
