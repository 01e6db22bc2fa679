//===- RedistributionSearch.h - The planner's search ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Placements as lists of small integers, and a search over them from both ends.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_REDISTRIBUTION_REDISTRIBUTIONSEARCH_H
#define TP_LIB_SHARDING_REDISTRIBUTION_REDISTRIBUTIONSEARCH_H

#include "tp/Dialect/TP/Blocks.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringMap.h"
#include <deque>
#include <optional>
#include <string>

namespace mlir::tp::redistribution {

/// A mesh dimension, or a part of one, that the search moves as a whole.
struct Atom {
  AxisRefAttr axis;
  int64_t size;
  /// The atoms that share ranks' coordinates with this one (itself included).
  uint64_t overlaps = 0;
  /// How it is reduced where the source is Partial over it.
  std::optional<ReductionKind> reduction = std::nullopt;
  /// Each rank's index along the axis.
  SmallVector<int64_t, 0> index = {};
};

/// A list of atoms that split one dimension, major to minor: a node of a tree
/// whose root is the empty list. Each list exists once, so that equal lists are
/// equal pointers.
struct List {
  /// The list without its last atom; null of the empty list.
  const List *parent = nullptr;
  SmallVector<uint8_t, 4> atoms;
  uint64_t mask = 0;
  /// Different for different lists of a dimension.
  uint32_t id = 0;
  /// The blocks that it makes, and whether all have the same size.
  int64_t blocks = 1;
  bool even = true;
  /// What each rank has.
  std::vector<Interval> intervals;
  /// By the atom that is appended.
  mutable SmallVector<const List *, 0> longer;
};

/// What the steps change: the list on each dimension, and the atoms over which
/// the tensor is still Partial though the target isn't.
struct State {
  SmallVector<const List *, 4> dims;
  uint64_t pending = 0;

  bool operator==(const State &other) const {
    return dims == other.dims && pending == other.pending;
  }
  std::string getKey() const;
};

/// One way from a state to another.
struct Move {
  RedistributionStep::Kind kind = RedistributionStep::LocalSlice;
  SmallVector<uint8_t, 4> atoms = {};
  int64_t dim = 0, concatDim = 0;
  ReductionKind reduction = ReductionKind::Sum;
  /// Of an all-to-all between several pairs of dimensions, `dim` and
  /// `concatDim` by atom.
  SmallVector<std::pair<int64_t, int64_t>, 0> pairs = {};
  /// The state before it, in a search from the target, or after it.
  State result = {};
};

/// What the atoms of a space are.
enum class Granularity {
  /// The axes that the placements mention, as they are.
  Mentioned,
  /// The coarsest parts of mesh dimensions of which these consist.
  Common,
  /// The parts of prime size of these, small primes first or last.
  SmallPrimes,
  LargePrimes
};

/// The prime factors of `size`, ascending.
SmallVector<int64_t> getPrimes(int64_t size);

/// The tensor, the mesh, the atoms: what all states have in common.
class Space {
public:
  /// With `all`, the atoms include the mesh dimensions that neither placement
  /// mentions.
  Space(MeshOp mesh, ArrayRef<int64_t> shape, ShardingAttr from,
        ShardingAttr to, Granularity granularity, bool all = false);
  Space(const Space &) = delete;

  /// Whether states say exactly what the placements say. Where sizes don't
  /// divide, neighbouring parts of a mesh dimension have other blocks than the
  /// whole, for which states take them.
  bool isFaithful() const { return faithful; }
  bool hasOverlaps() const { return overlapping; }
  size_t getNumAtoms() const { return atoms.size(); }
  const Atom &getAtom(uint8_t atom) const { return atoms[atom]; }
  /// Runs of atoms that are an axis of a placement or a whole mesh dimension.
  ArrayRef<SmallVector<uint8_t, 4>> getUnits() const { return units; }
  State getState(ShardingAttr sharding) const;
  /// `state` with the part of the source's Partial that stays.
  ShardingAttr getSharding(const State &state) const;
  SmallVector<AxisRefAttr> getAxes(ArrayRef<uint8_t> list) const;
  /// The atoms that split or are partial in a state.
  uint64_t getTaken(const State &state) const;
  bool isFree(uint64_t taken, uint8_t atom) const {
    return !(taken & atoms[atom].overlaps);
  }
  /// A dimension with segments, which no step but an exchange touches.
  bool isFrozen(int64_t dim) const { return !segments[dim].empty(); }
  int64_t getRank() const { return shape.size(); }
  /// The product of the sizes of atoms.
  int64_t getNumBlocks(ArrayRef<uint8_t> list) const;
  /// How many parts each element of a state is the sum of; and elements, as
  /// often as the Partial that stays has parts.
  int64_t getNumPending(const State &state) const;
  int64_t getNumElements() const;

  const List *append(const List *list, int64_t dim,
                     ArrayRef<uint8_t> added) const;
  /// Whether each block of `longer` is the chunk that its last `count` atoms
  /// cut of the block without them.
  bool refines(const List *longer, int64_t dim, size_t count) const;

  /// The ranks that differ in an atom: all others have what one of these has.
  ArrayRef<int64_t> getRanks() const { return ranks; }
  /// How many ranks have what one of `getRanks` has.
  int64_t getNumAlike() const { return alike; }

  /// Elements of the ranks' blocks, and those that blocks of `from` and of `to`
  /// share, by rank in `getRanks`.
  SmallVector<int64_t> getSizes(const State &state) const;
  SmallVector<int64_t> getShared(const State &from, const State &to) const;
  /// Elements of all ranks' blocks; and the largest block.
  int64_t getTotal(const State &state) const;
  int64_t getPeak(const State &state) const;
  /// Elements that ranks need of `to` and don't have in `from`.
  int64_t getMissing(const State &from, const State &to) const;
  bool isEven(const State &state) const {
    return llvm::all_of(state.dims, [](const List *l) { return l->even; });
  }
  /// Whether each rank's blocks of the two states are the same. Empty blocks of
  /// different shapes aren't.
  bool isSame(const State &from, const State &to) const;
  /// Whether all ranks' blocks of `to` are some ranks' blocks of `from`.
  bool isPermutation(const State &from, const State &to) const;
  /// Elements that move when blocks of one state become those of another that
  /// is a permutation of it.
  int64_t getPermuted(const State &from, const State &to) const;
  /// Elements that each rank of the mesh receives in `move` from `from`.
  SmallVector<int64_t> getReceived(const State &from, const Move &move) const;
  /// From which position of its group along `axes` each position receives.
  SmallVector<int64_t> getSources(const State &from, const State &to,
                                  ArrayRef<AxisRefAttr> axes) const;

private:
  SmallVector<AxisRefAttr> getParts(Granularity granularity,
                                    ArrayRef<AxisRefAttr> mentioned, bool all);
  ArrayRef<double> getOverlaps(const List *a, const List *b) const;
  Interval cut(Interval interval, ArrayRef<uint8_t> list, size_t begin,
               size_t rank) const;
  List makeList(const List *parent, int64_t dim, ArrayRef<uint8_t> list) const;
  bool isSame(const State &from, size_t holder, const State &to,
              size_t rank) const;

  mutable MeshOp mesh; // an op's accessors aren't const
  FlatSymbolRefAttr meshRef;
  SmallVector<int64_t> shape;
  SmallVector<SmallVector<int64_t>> segments;
  /// Whether neighbouring parts are one.
  bool merge;
  bool faithful = true, overlapping = false;
  std::vector<Atom> atoms;
  SmallVector<SmallVector<uint8_t, 4>> units;
  /// The Partial of the source that the target keeps.
  SmallVector<PartialAttr> kept;
  uint64_t keptAtoms = 0;
  SmallVector<int64_t> ranks;
  /// Where each rank of the mesh is in `ranks`.
  SmallVector<int64_t> position;
  int64_t alike = 1;
  mutable std::deque<List> lists;
  /// What blocks of a dimension have in common, by rank; one entry where all
  /// ranks' have as much. By the lists' numbers.
  mutable llvm::DenseMap<std::pair<uint32_t, uint32_t>, std::vector<double>>
      overlaps;
  SmallVector<const List *, 4> roots;
};

struct SearchOptions {
  bool exchange = true;
  /// The elements that a block on the way may have; negative: any number.
  int64_t maxPeak = -1;
  /// Order plans by collectives first, then by bytes.
  bool fewestCollectives = false;
  /// Only plans that receive less are of interest; negative: all.
  int64_t below = -1;
  /// Leave out placements that cut a dimension unevenly, but for what the
  /// source or the target begin a dimension with.
  bool mostlyEven = false;
  /// The states that are looked at before the search gives up.
  int64_t maxStates = 4000;
};

/// The best moves from `from` to `to`; nullopt where the moves don't suffice,
/// or the search grew beyond its limit before it found any. Adds the states
/// that it looks at to `numStates`.
std::optional<SmallVector<Move>> search(const Space &space, const State &from,
                                        const State &to,
                                        const SearchOptions &options,
                                        uint64_t &numStates);

} // namespace mlir::tp::redistribution

#endif // TP_LIB_SHARDING_REDISTRIBUTION_REDISTRIBUTIONSEARCH_H
