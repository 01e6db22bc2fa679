//===- ViewAlgebra.h - Data movement in other shapes ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows data movements that block algebra doesn't: a rank's block is reshaped
// so that each mesh dimension that splits a global dimension has a dimension of
// its own, is moved in that shape, and is reshaped back.
//
// Each global dimension is a product of factors, major to minor. A rank holds
// one index of a factor that a mesh dimension splits, and all of a factor that
// nothing splits. A dimension that isn't split evenly is one factor, of which a
// rank holds any list of intervals. The dimensions of a rank's tensor are
// products of factors, too, of any global dimensions. If each rank holds one
// index of a factor, the factor's position in the tensor doesn't matter until
// the ranks gather their indices.
//
// Values that factors don't describe either are followed element by element, if
// they are small.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_VIEWALGEBRA_H
#define TP_LIB_PROOF_VIEWALGEBRA_H

#include "BlockAlgebra.h"
#include "ElementTracking.h"
#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

/// How the ranks hold a value.
class View {
public:
  /// As `sharding` says. Mesh dimensions are divided into parts as `cuts` needs
  /// them.
  View(BlockAlgebra &algebra, MeshOp mesh, RankedTensorType global,
       ShardingAttr sharding, ArrayRef<AxisRefAttr> cuts);

  /// Whether `op` is one that `apply` knows.
  static bool isFollowed(Operation *op);

  /// Follows `op` of a program that `rank` runs. Fails if factors don't
  /// describe the result and it has too many elements.
  LogicalResult apply(Operation *op, int64_t rank);

  /// The type of the tensors of `ranks`; null if they have different types.
  RankedTensorType getLocalType(ArrayRef<int64_t> ranks) const;

  /// The placement of the value, if the tensors are blocks of it.
  FailureOr<ShardingAttr> getPlacement() const;

private:
  struct Factor {
    int64_t dim; // of the global tensor
    int64_t size;
    DimBlocks held;

    /// Whether each rank holds one index of it.
    bool isIndex() const;
    /// Whether each rank holds all of it.
    bool isWhole() const;
    int64_t getSize(int64_t rank) const { return tp::getSize(held[rank]); }
  };
  using Groups = SmallVector<SmallVector<int64_t>>;

  int64_t getNumRanks() const { return mesh.getNumRanks(); }
  LogicalResult follow(Operation *op, int64_t rank);
  LogicalResult follow(const Dataflow &flow, AxisListAttr axes);
  std::optional<Elements> getElements() const;
  void split(unsigned factor, int64_t major);
  LogicalResult merge(ArrayRef<unsigned> several);
  static FailureOr<Intervals> compose(const Intervals &major,
                                      const Factor &minor, int64_t rank);
  SmallVector<int64_t> getLocalShape(int64_t rank) const;
  LogicalResult reshape(ArrayRef<int64_t> shape, int64_t rank);
  LogicalResult reshapeGroup(size_t dim, ArrayRef<int64_t> shape, int64_t rank,
                             SmallVectorImpl<SmallVector<unsigned>> &result);
  LogicalResult slice(int64_t dim, AxisListAttr axes);
  LogicalResult gather(int64_t dim, const Groups &groups);
  LogicalResult gatherOne(int64_t dim, unsigned factor, const Groups &groups);
  bool gatherIndices(int64_t dim, ArrayRef<unsigned> major,
                     const Groups &groups);
  SmallVector<unsigned> getMoved(int64_t dim) const;
  void moveTo(int64_t dim, ArrayRef<unsigned> major);
  LogicalResult permute(const Groups &groups,
                        function_ref<size_t(size_t)> getSource);
  LogicalResult reduce(AxisListAttr axes, ReductionKind kind);
  bool isEmpty(int64_t rank) const;
  int64_t getHolder(ArrayRef<int64_t> group) const;
  SmallVector<unsigned> getDifferent(const Groups &groups) const;
  Groups getGroups(AxisListAttr axes) const;
  LogicalResult checkNotPartial(AxisListAttr axes) const;
  FailureOr<DimBlocks> getBlocks(int64_t dim) const;
  FailureOr<SmallVector<DimBlocks>> getFactorBlocks() const;

  BlockAlgebra *algebra;
  mutable MeshOp mesh;
  RankedTensorType global;
  ShardingAttr from;
  SmallVector<AxisRefAttr> cuts;
  SmallVector<PartialAttr> partials;
  SmallVector<Factor> factors;
  /// The factors of each global dimension, major to minor, and those of each
  /// dimension of the ranks' tensors.
  SmallVector<SmallVector<unsigned>> ofWhole, dims;
  /// Used instead of factors once those don't describe what the ranks hold.
  std::optional<Elements> elements;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_VIEWALGEBRA_H
