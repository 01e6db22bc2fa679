//===- ElementTracking.h - Data movement, element by element ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tracks, element by element, which elements of a value each rank's tensor
// holds. This is exact, because data movement doesn't depend on the values that
// it moves. It costs as much as the movement itself, so it is only for small
// values that neither blocks nor factors describe.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_ELEMENTTRACKING_H
#define TP_LIB_PROOF_ELEMENTTRACKING_H

#include "BlockAlgebra.h"

namespace mlir::tp {

/// A reshape turns the next `numFrom` dimensions into the next `numTo`.
struct ReshapeGroup {
  size_t numFrom, numTo;
};
/// Divides all dimensions into the smallest such groups; nullopt if the shapes
/// have different numbers of elements.
std::optional<SmallVector<ReshapeGroup>>
getReshapeGroups(ArrayRef<int64_t> from, ArrayRef<int64_t> to);

class Elements {
public:
  /// The most elements that all ranks together may hold.
  static constexpr int64_t kMaxElements = int64_t(1) << 21;

  /// Row-major; `ids` are row-major indices into the global value.
  struct Tensor {
    SmallVector<int64_t> shape;
    std::vector<int32_t> ids;
  };

  /// By rank, at most `kMaxElements`.
  explicit Elements(std::vector<Tensor> ranks) : ranks(std::move(ranks)) {}

  int64_t getRank() const { return ranks.front().shape.size(); }
  ArrayRef<int64_t> getShape(int64_t rank) const { return ranks[rank].shape; }

  /// Reshapes all tensors. `shape` is the new shape on `rank`; fails if the
  /// other ranks' shapes don't follow from it.
  LogicalResult reshape(ArrayRef<int64_t> shape, int64_t rank);
  void transpose(ArrayRef<int64_t> permutation);
  /// Each rank keeps its part of dimension `dim`.
  void slice(int64_t dim, AxisListAttr axes, MeshOp mesh);
  /// Concatenates the tensors of each rank's group along `dim`.
  LogicalResult gather(int64_t dim, ArrayRef<SmallVector<int64_t>> groups);
  /// Each rank gets the tensor of another member of its group; `getSource` maps
  /// a rank's position in the group to that member's position.
  void permute(ArrayRef<SmallVector<int64_t>> groups,
               function_ref<size_t(size_t)> getSource);
  /// Whether all members of each group hold the same elements.
  bool areAlike(ArrayRef<SmallVector<int64_t>> groups) const;

  /// The parts that the ranks hold of each dimension of a global tensor of this
  /// shape. Fails if a rank's tensor isn't a block of it.
  FailureOr<SmallVector<DimBlocks>> getBlocks(ArrayRef<int64_t> shape) const;

private:
  std::vector<Tensor> ranks;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_ELEMENTTRACKING_H
