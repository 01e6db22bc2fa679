//===- ElementTracking.h - Data movement, element by element ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which elements of a value each rank's tensor consists of, one by one. What is
// followed so is exact: data movement doesn't depend on what it moves. It costs
// as much as the movement itself, so that it is for small values that neither
// blocks nor factors describe on the way.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_ELEMENTTRACKING_H
#define TP_LIB_PROOF_ELEMENTTRACKING_H

#include "BlockAlgebra.h"

namespace mlir::tp {

/// The next `numFrom` dimensions, of which a reshape makes the next `numTo`.
struct ReshapeGroup {
  size_t numFrom, numTo;
};
/// The smallest such groups that all dimensions are in; nullopt where shapes
/// have different numbers of elements.
std::optional<SmallVector<ReshapeGroup>>
getReshapeGroups(ArrayRef<int64_t> from, ArrayRef<int64_t> to);

class Elements {
public:
  /// How many elements all ranks may hold together.
  static constexpr int64_t kMaxElements = int64_t(1) << 21;

  /// Row-major; `ids` are places in the whole value, row-major as well.
  struct Tensor {
    SmallVector<int64_t> shape;
    std::vector<int32_t> ids;
  };

  /// By rank, at most `kMaxElements`.
  explicit Elements(std::vector<Tensor> ranks) : ranks(std::move(ranks)) {}

  int64_t getRank() const { return ranks.front().shape.size(); }
  ArrayRef<int64_t> getShape(int64_t rank) const { return ranks[rank].shape; }

  /// `shape` is what `rank` gets. Fails where it doesn't say what others get.
  LogicalResult reshape(ArrayRef<int64_t> shape, int64_t rank);
  void transpose(ArrayRef<int64_t> permutation);
  /// Each rank keeps its part of dimension `dim`.
  void slice(int64_t dim, AxisListAttr axes, MeshOp mesh);
  /// Puts together along `dim` what each rank's group has.
  LogicalResult gather(int64_t dim, ArrayRef<SmallVector<int64_t>> groups);
  /// Each rank gets what `getSource` says, by places in its group.
  void permute(ArrayRef<SmallVector<int64_t>> groups,
               function_ref<size_t(size_t)> getSource);
  /// Whether all members of each group hold the same.
  bool areAlike(ArrayRef<SmallVector<int64_t>> groups) const;

  /// By dimension of a whole of this shape, what the ranks hold of it. Fails
  /// where a tensor isn't a block of it.
  FailureOr<SmallVector<DimBlocks>> getBlocks(ArrayRef<int64_t> shape) const;

private:
  std::vector<Tensor> ranks;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_ELEMENTTRACKING_H
