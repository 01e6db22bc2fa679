//===- ViewFactors.cpp - The factors of a view's dimensions ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ViewAlgebra.h"

using namespace mlir;
using namespace mlir::tp;

bool View::Factor::isIndex() const {
  return llvm::all_of(held, [](const Intervals &list) {
    return list.size() == 1 && list.front().size == 1;
  });
}

bool View::Factor::isWhole() const {
  return llvm::all_of(held, [&](const Intervals &list) {
    return list.size() == 1 && list.front().offset == 0 &&
           list.front().size == size;
  });
}

/// Splits a factor that every rank holds completely into two. `factor` becomes
/// the minor one; the new major one is inserted before it everywhere.
void View::split(unsigned factor, int64_t major) {
  unsigned added = factors.size();
  int64_t minor = factors[factor].size / major;
  factors.push_back({factors[factor].dim, major,
                     DimBlocks(getNumRanks(), {Interval{0, major}})});
  factors[factor].size = minor;
  factors[factor].held = DimBlocks(getNumRanks(), {Interval{0, minor}});
  for (auto *lists : {&ofWhole, &dims})
    for (SmallVector<unsigned> &list : *lists)
      if (auto *it = llvm::find(list, factor); it != list.end())
        list.insert(it, added);
}

/// The part of a product of factors that a rank holds, given its parts of the
/// major ones and of the minor one.
FailureOr<Intervals> View::compose(const Intervals &major, const Factor &minor,
                                   int64_t rank) {
  constexpr int64_t kMaxIntervals = 1 << 14;
  const Intervals &held = minor.held[rank];
  Intervals result;
  if (tp::getSize(held) == minor.size && held.size() == 1) {
    for (Interval each : major)
      append(result, {each.offset * minor.size, each.size * minor.size});
    return result;
  }
  if (tp::getSize(major) * static_cast<int64_t>(held.size()) > kMaxIntervals)
    return failure();
  for (Interval each : major)
    for (int64_t i = each.offset; i < each.offset + each.size; ++i)
      for (Interval interval : held)
        append(result, {i * minor.size + interval.offset, interval.size});
  return result;
}

/// Merges factors that follow one another, major to minor, in a global
/// dimension and in a dimension of the ranks' tensors.
LogicalResult View::merge(ArrayRef<unsigned> several) {
  Factor &first = factors[several.front()];
  SmallVector<unsigned> &whole = ofWhole[first.dim];
  auto *begin = llvm::find(whole, several.front());
  if (whole.end() - begin < static_cast<int64_t>(several.size()) ||
      !llvm::equal(several, ArrayRef(begin, several.size())))
    return failure();
  for (unsigned index : several.drop_front()) {
    Factor &minor = factors[index];
    for (int64_t rank = 0; rank < getNumRanks(); ++rank) {
      FailureOr<Intervals> held = compose(first.held[rank], minor, rank);
      if (failed(held))
        return failure();
      first.held[rank] = std::move(*held);
    }
    first.size *= minor.size;
    minor.size = 1;
    minor.held = DimBlocks(getNumRanks(), {Interval{0, 1}});
    for (SmallVector<unsigned> &list : dims)
      llvm::erase(list, index);
    llvm::erase(whole, index);
  }
  return success();
}

/// `shape` is the new shape on `rank`, which decides the factors of each
/// dimension.
LogicalResult View::reshape(ArrayRef<int64_t> shape, int64_t rank) {
  if (elements)
    return elements->reshape(shape, rank);
  if (llvm::is_contained(shape, 0))
    return failure();
  auto groups = getReshapeGroups(getLocalShape(rank), shape);
  if (!groups)
    return failure();
  // Concatenate the dimensions of each group.
  auto before = std::exchange(dims, {});
  for (size_t next = 0; ReshapeGroup group : *groups) {
    dims.emplace_back();
    for (size_t i = 0; i < group.numFrom; ++i)
      llvm::append_range(dims.back(), before[next++]);
  }
  SmallVector<SmallVector<unsigned>> result;
  for (auto [index, group] : llvm::enumerate(*groups)) {
    if (group.numTo == 0 && result.empty())
      return failure();
    if (group.numTo == 1) {
      result.push_back(dims[index]);
    } else if (failed(reshapeGroup(index, shape.take_front(group.numTo), rank,
                                   result))) {
      return failure();
    }
    shape = shape.drop_front(group.numTo);
  }
  dims = std::move(result);
  return success();
}

/// Adds to `result` the factors of the dimensions `shape`, into which dimension
/// `dim` is reshaped.
LogicalResult
View::reshapeGroup(size_t dim, ArrayRef<int64_t> shape, int64_t rank,
                   SmallVectorImpl<SmallVector<unsigned>> &result) {
  const SmallVector<unsigned> &all = dims[dim];
  size_t next = 0;
  for (int64_t size : shape) {
    result.emplace_back();
    int64_t own = 1;
    while (next < all.size()) {
      int64_t held = factors[all[next]].getSize(rank);
      if (own == size && (held != 1 || size != 1 || !result.back().empty()))
        break;
      if (own * held <= size ? size % (own * held) != 0
                             : size % own != 0 || held % (size / own) != 0 ||
                                   !factors[all[next]].isWhole())
        return failure();
      if (own * held > size) {
        split(all[next], size / own);
        held = size / own;
      }
      own *= held;
      result.back().push_back(all[next++]);
    }
    if (own != size)
      return failure();
  }
  for (; next < all.size(); ++next) {
    if (factors[all[next]].getSize(rank) != 1)
      return failure();
    result.back().push_back(all[next]);
  }
  return success();
}

/// The factors of a dimension of the ranks' tensors, without those of which
/// each rank holds one index.
SmallVector<unsigned> View::getMoved(int64_t dim) const {
  return llvm::filter_to_vector(
      dims[dim], [&](unsigned factor) { return !factors[factor].isIndex(); });
}

/// Makes `major` the major factors of dimension `dim` of the ranks' tensors.
void View::moveTo(int64_t dim, ArrayRef<unsigned> major) {
  for (SmallVector<unsigned> &list : dims)
    llvm::erase_if(list, [&](unsigned factor) {
      return llvm::is_contained(major, factor);
    });
  dims[dim].insert(dims[dim].begin(), major.begin(), major.end());
}
