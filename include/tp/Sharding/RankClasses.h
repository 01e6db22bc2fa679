//===- RankClasses.h - Ranks that are alike ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program for thousands of ranks has few kinds of ranks: those that hold
// blocks of other shapes, or that receive another number of bytes, or that wait
// longer. Whatever is computed for each rank is computed for one rank of each
// class, and written once.
//
// Classes begin as one and are split by what differs. On tp = 4, three heads
// give the ranks 0 to 2 one head each, and rank 3 none:
//
//     RankClasses classes(mesh);            // {0, 1, 2, 3}
//     classes.splitByBlock(3, {tp});        // {0, 1, 2}, {3}
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_RANKCLASSES_H
#define TP_SHARDING_RANKCLASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tp/Dialect/TP/RankIndices.h"
#include "tp/Support/ListInterner.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::tp {

/// The attributes that say what `op` does; origins may differ.
DictionaryAttr getMeaning(CollectiveOpInterface op);

/// The axes by which the ranks of one program can differ in what `op` does on
/// them: those of its group, and those that its attributes name.
AxisListAttr getAxesOf(CollectiveOpInterface op);

/// Numbers collectives: those that do the same on each rank, whatever asked for
/// them, have the same number.
class CollectiveInterner {
public:
  /// The number of `op`, from 0 on, and whether it is new.
  std::pair<unsigned, bool> insert(CollectiveOpInterface op);

private:
  ListInterner interner;
};

/// The ranks that a rank of a group over `axes` depends on: the members at
/// `positions` in the group, each in its role, or all members alike.
struct Peers {
  AxisListAttr axes;
  SmallVector<int64_t> positions;
};

/// A partition of the ranks of a mesh. Classes are numbered by their first
/// ranks.
class RankClasses {
public:
  /// All ranks in one class.
  explicit RankClasses(MeshOp mesh);

  size_t size() const { return first.size(); }
  int64_t getNumRanks() const { return classOf.size(); }
  unsigned getClass(int64_t rank) const { return classOf[rank]; }
  /// The first rank of a class, which stands for all of them.
  int64_t getFirst(unsigned index) const { return first[index]; }
  /// The ranks of each class, in order.
  SmallVector<SmallVector<int64_t>> getRanks() const;

  /// Splits the classes of `ranks` by `getKey(rank)`, which depends only on the
  /// rank's class and its entry in `kinds`, a list for all ranks of the mesh: it
  /// is asked for once for each of them.
  void split(ArrayRef<int64_t> ranks, ArrayRef<int64_t> kinds,
             function_ref<int64_t(int64_t)> getKey);
  /// Splits by the function that a rank runs; `programs` are those of one
  /// function, or of the stages of a pipeline.
  void splitByProgram(ArrayRef<func::FuncOp> programs);
  /// Splits by the sizes of a rank's block of a dimension of `size` elements.
  void splitByBlock(int64_t size, AxisListAttr axes);
  /// The same for all dimensions of a tensor.
  void splitByBlock(ArrayRef<int64_t> shape, ShardingAttr sharding);
  /// Splits the classes of `ranks`, which run the program that `op` is in, by
  /// the bytes that they receive in it.
  void splitByReceivedBytes(CollectiveOpInterface op, ArrayRef<int64_t> ranks);
  /// Splits until ranks of one class have peers of the same classes.
  void splitByPeers(ArrayRef<Peers> peers);

  /// By rank: its index along `axes`.
  ArrayRef<int64_t> getIndices(AxisListAttr axes) { return indices.get(axes); }

private:
  /// Splits each class by the keys of its ranks.
  void split(ArrayRef<int64_t> keys);

  MeshOp mesh;
  SmallVector<unsigned> classOf;
  SmallVector<int64_t> first;
  RankIndices indices;
  /// The blocks that the classes are split by.
  DenseSet<std::pair<int64_t, AxisListAttr>> blocks;
};

} // namespace mlir::tp

#endif // TP_SHARDING_RANKCLASSES_H
