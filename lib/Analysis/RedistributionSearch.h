//===- RedistributionSearch.h - The planner's search ------------*- C++ -*-===//
//
// Placements as lists of small integers, and an A* search over them.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_ANALYSIS_REDISTRIBUTIONSEARCH_H
#define TP_LIB_ANALYSIS_REDISTRIBUTIONSEARCH_H

#include "tp/Analysis/Redistribution.h"
#include "tp/Dialect/TP/Blocks.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace mlir::tp::redistribution {

/// A mesh dimension, or a part of one, that the search moves as a whole.
struct Atom {
  AxisRefAttr axis;
  int64_t size;
  /// The atoms that share ranks' coordinates with this one (itself included).
  uint64_t overlaps;
  /// Each rank's index along the axis.
  SmallVector<int64_t> index;
};

/// What the steps change: per dimension the atoms that split it, major to
/// minor, and the atoms that are partial, in order.
struct State {
  SmallVector<SmallVector<uint8_t, 4>, 4> dims;
  SmallVector<std::pair<uint8_t, ReductionKind>, 2> partial;

  bool operator==(const State &other) const {
    return dims == other.dims && partial == other.partial;
  }
  std::string getKey() const;
};

/// One way from a state to another.
struct Move {
  RedistributionStep::Kind kind;
  SmallVector<uint8_t, 4> atoms;
  int64_t dim = 0, concatDim = 0;
  ReductionKind reduction = ReductionKind::Sum;
  State result;
};

/// The tensor, the mesh, the atoms: what all states have in common.
class Space {
public:
  /// Atoms are the axes that `from` and `to` mention; with `split`, their parts
  /// of prime size, which needs sizes that divide; with `all`, the mesh's other
  /// dimensions too.
  Space(MeshOp mesh, ArrayRef<int64_t> shape, ShardingAttr from,
        ShardingAttr to, bool split, bool all = false);

  size_t getNumAtoms() const { return atoms.size(); }
  const Atom &getAtom(uint8_t atom) const { return atoms[atom]; }
  SmallVector<uint8_t> getAllAtoms() const {
    return llvm::to_vector(llvm::seq<uint8_t>(0, atoms.size()));
  }
  State getState(ShardingAttr sharding) const;
  ShardingAttr getSharding(const State &state) const;
  SmallVector<AxisRefAttr> getAxes(ArrayRef<uint8_t> list) const;

  /// Whether `atom` may be added to `state`.
  bool isFree(const State &state, uint8_t atom) const;
  /// Whether two atoms of the whole list overlap: they have no common grid.
  bool hasOverlaps() const;
  /// A dimension with segments, which no step but an exchange touches.
  bool isFrozen(int64_t dim) const { return !segments[dim].empty(); }
  int64_t getRank() const { return shape.size(); }
  int64_t getNumRanks() const { return numRanks; }
  /// The product of the sizes of the atoms on a dimension.
  int64_t getNumBlocks(ArrayRef<uint8_t> list) const;

  /// Elements of the ranks' blocks of `state`, and those that blocks of `from`
  /// and of `to` share, by rank.
  SmallVector<int64_t> getSizes(const State &state) const;
  SmallVector<int64_t> getShared(const State &from, const State &to) const;
  /// Whether all ranks' blocks of the two states are the same up to the rank.
  bool isPermutation(const State &from, const State &to) const;
  /// Whether `holder`'s block of `from` is `rank`'s block of `to`.
  bool isSame(const State &from, int64_t holder, const State &to,
              int64_t rank) const;
  /// Elements that each rank receives in `move` from `from`.
  SmallVector<int64_t> getReceived(const State &from, const Move &move) const;
  /// From which position of its group along `axes` each position receives.
  SmallVector<int64_t> getSources(const State &from, const State &to,
                                  ArrayRef<AxisRefAttr> axes) const;

private:
  Interval computeInterval(ArrayRef<uint8_t> list, int64_t dim,
                           int64_t rank) const;
  /// What each rank has of a dimension, by rank: computed once for each list of
  /// atoms on it.
  ArrayRef<Interval> getIntervals(const State &state, int64_t dim) const;

  mutable MeshOp mesh; // an op's accessors aren't const
  FlatSymbolRefAttr meshRef;
  SmallVector<int64_t> shape;
  /// Of dimensions with segments: what both placements have there.
  SmallVector<AxisListAttr> fixed;
  SmallVector<SmallVector<int64_t>> segments;
  int64_t numRanks;
  /// Whether the atoms are parts that stand for whole dimensions.
  bool split;
  std::vector<Atom> atoms;
  mutable llvm::StringMap<std::vector<Interval>> intervals;
};

struct SearchOptions {
  bool exchange = true;
  bool memory = false;
  /// Order plans by collectives first, then by bytes.
  bool fewestCollectives = false;
};

/// The best moves from `from` to `to`; nullopt where the moves don't suffice,
/// or the search grew beyond its limit.
std::optional<SmallVector<Move>> search(const Space &space, const State &from,
                                        const State &to,
                                        const SearchOptions &options);

} // namespace mlir::tp::redistribution

#endif // TP_LIB_ANALYSIS_REDISTRIBUTIONSEARCH_H
