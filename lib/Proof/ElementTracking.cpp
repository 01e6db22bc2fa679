//===- ElementTracking.cpp - Data movement, element by element ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ElementTracking.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::tp;

/// The elements at `indices` of dimension `dim`, in this order.
static Elements::Tensor take(const Elements::Tensor &tensor, int64_t dim,
                             ArrayRef<Interval> indices) {
  Elements::Tensor result{tensor.shape, {}};
  result.shape[dim] = getSize(indices);
  int64_t inner = llvm::product_of(ArrayRef(tensor.shape).drop_front(dim + 1));
  int64_t outer = llvm::product_of(ArrayRef(tensor.shape).take_front(dim));
  for (int64_t i = 0; i < outer; ++i)
    for (Interval interval : indices) {
      auto begin = tensor.ids.begin() +
                   (i * tensor.shape[dim] + interval.offset) * inner;
      result.ids.insert(result.ids.end(), begin, begin + interval.size * inner);
    }
  return result;
}

std::optional<SmallVector<ReshapeGroup>>
tp::getReshapeGroups(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<ReshapeGroup> groups;
  for (size_t i = 0, j = 0; i < from.size() || j < to.size();) {
    size_t firstFrom = i, firstTo = j;
    int64_t own = i < from.size() ? from[i++] : 1;
    int64_t made = j < to.size() ? to[j++] : 1;
    while (own != made) {
      bool isOwnNext = own < made;
      if (isOwnNext ? i == from.size() : j == to.size())
        return std::nullopt;
      (isOwnNext ? own : made) *= isOwnNext ? from[i++] : to[j++];
    }
    groups.push_back({i - firstFrom, j - firstTo});
  }
  return groups;
}

/// The shape that a reshape from `from` to `to` gives `other`. Dimensions in
/// which `other` differs from `from` must become one dimension.
static std::optional<SmallVector<int64_t>>
reshapeLike(ArrayRef<int64_t> from, ArrayRef<int64_t> to,
            ArrayRef<int64_t> other) {
  auto groups = getReshapeGroups(from, to);
  if (!groups)
    return std::nullopt;
  SmallVector<int64_t> result;
  for (ReshapeGroup group : *groups) {
    ArrayRef<int64_t> others = other.take_front(group.numFrom);
    ArrayRef<int64_t> parts = to.take_front(group.numTo);
    if (others == from.take_front(group.numFrom))
      llvm::append_range(result, parts);
    else if (parts.size() == 1)
      result.push_back(llvm::product_of(others));
    else
      return std::nullopt;
    from = from.drop_front(group.numFrom);
    to = to.drop_front(group.numTo);
    other = other.drop_front(group.numFrom);
  }
  return result;
}

LogicalResult Elements::reshape(ArrayRef<int64_t> shape, int64_t rank) {
  SmallVector<int64_t> from = ranks[rank].shape;
  if (llvm::product_of(from) != llvm::product_of(shape))
    return failure();
  for (Tensor &tensor : ranks) {
    auto own = reshapeLike(from, shape, tensor.shape);
    if (!own || llvm::product_of(*own) != llvm::product_of(tensor.shape))
      return failure();
    tensor.shape = std::move(*own);
  }
  return success();
}

void Elements::transpose(ArrayRef<int64_t> permutation) {
  for (Tensor &tensor : ranks) {
    SmallVector<int64_t> strides =
        applyPermutation(computeStrides(tensor.shape), permutation);
    tensor.shape = applyPermutation(ArrayRef(tensor.shape), permutation);
    SmallVector<int64_t> perPlace = computeStrides(tensor.shape);
    std::vector<int32_t> ids(tensor.ids.size());
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = tensor.ids[linearize(delinearize(i, perPlace), strides)];
    tensor.ids = std::move(ids);
  }
}

void Elements::slice(int64_t dim, AxisListAttr axes, MeshOp mesh) {
  for (auto [rank, tensor] : llvm::enumerate(ranks))
    tensor =
        take(tensor, dim, getDimBlock(tensor.shape[dim], axes, mesh, rank));
}

LogicalResult Elements::gather(int64_t dim,
                               ArrayRef<SmallVector<int64_t>> groups) {
  std::vector<Tensor> gathered;
  int64_t total = 0;
  for (ArrayRef<int64_t> group : groups) {
    Tensor result{ranks[group.front()].shape, {}};
    result.shape[dim] = 0;
    for (int64_t member : group) {
      SmallVector<int64_t> shape = ranks[member].shape;
      result.shape[dim] += std::exchange(shape[dim], 0);
      SmallVector<int64_t> others = result.shape;
      others[dim] = 0;
      if (shape != others)
        return failure();
    }
    total += llvm::product_of(result.shape);
    if (total > kMaxElements)
      return failure();
    int64_t outer = llvm::product_of(ArrayRef(result.shape).take_front(dim));
    for (int64_t i = 0; i < outer; ++i)
      for (int64_t member : group) {
        const std::vector<int32_t> &ids = ranks[member].ids;
        int64_t size = ids.size() / outer;
        result.ids.insert(result.ids.end(), ids.begin() + i * size,
                          ids.begin() + (i + 1) * size);
      }
    gathered.push_back(std::move(result));
  }
  ranks = std::move(gathered);
  return success();
}

void Elements::permute(ArrayRef<SmallVector<int64_t>> groups,
                       function_ref<size_t(size_t)> getSource) {
  std::vector<Tensor> permuted;
  for (auto [rank, group] : llvm::enumerate(groups)) {
    size_t mine = std::distance(group.begin(),
                                llvm::find(group, static_cast<int64_t>(rank)));
    permuted.push_back(ranks[group[getSource(mine)]]);
  }
  ranks = std::move(permuted);
}

bool Elements::areAlike(ArrayRef<SmallVector<int64_t>> groups) const {
  return llvm::all_of(groups, [&](ArrayRef<int64_t> group) {
    const Tensor &first = ranks[group.front()];
    return llvm::all_of(group, [&](int64_t member) {
      return ranks[member].shape == first.shape &&
             ranks[member].ids == first.ids;
    });
  });
}

FailureOr<SmallVector<DimBlocks>>
Elements::getBlocks(ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> strides = computeStrides(shape);
  SmallVector<DimBlocks> blocks(shape.size());
  for (const Tensor &tensor : ranks) {
    // For a tensor without elements, only the size counts.
    SmallVector<SmallVector<int64_t>> coordinates(shape.size());
    SmallVector<int64_t> own = computeStrides(tensor.shape);
    for (auto [dim, list] : llvm::enumerate(coordinates)) {
      blocks[dim].emplace_back();
      for (int64_t i = 0; i < tensor.shape[dim]; ++i) {
        int64_t id = tensor.ids.empty() ? i : tensor.ids[i * own[dim]];
        list.push_back(tensor.ids.empty() ? i : id / strides[dim] % shape[dim]);
        append(blocks[dim].back(), {list.back(), 1});
      }
    }
    for (auto [place, id] : llvm::enumerate(tensor.ids)) {
      int64_t expected = 0;
      for (auto [dim, at] : llvm::enumerate(delinearize(place, own)))
        expected += coordinates[dim][at] * strides[dim];
      if (id != expected)
        return failure();
    }
  }
  return blocks;
}
