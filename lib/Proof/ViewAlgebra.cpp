//===- ViewAlgebra.cpp - Data movement in other shapes --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ViewAlgebra.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "tp/Dialect/TP/Reductions.h"
#include "tp/Interfaces/ShapeOpInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::tp;

/// `axes` in parts of prime size, major to minor, such that each of `cuts`
/// consists of whole parts.
static SmallVector<AxisRefAttr>
getParts(MeshOp mesh, ArrayRef<AxisRefAttr> axes, ArrayRef<AxisRefAttr> cuts) {
  return getPrimeParts(mesh, cutParts(mesh, axes, cuts)).front();
}

static DimBlocks getIndices(MeshOp mesh, AxisRefAttr axis) {
  DimBlocks held;
  for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
    held.push_back({Interval{mesh.getIndexAlong(rank, axis), 1}});
  return held;
}

View::View(BlockAlgebra &algebra, MeshOp mesh, RankedTensorType global,
           ShardingAttr sharding, ArrayRef<AxisRefAttr> cuts)
    : algebra(&algebra), mesh(mesh), global(global), from(sharding),
      cuts(cuts) {
  SmallVector<AxisRefAttr> all(cuts);
  for (PartialAttr partial : sharding.getPartial())
    all.push_back(partial.getAxis());
  partials = getPartials(mesh, sharding, all);
  for (auto [dim, axes] : llvm::enumerate(sharding.getDims())) {
    int64_t size = global.getDimSize(dim);
    ofWhole.emplace_back();
    dims.emplace_back();
    auto add = [&](int64_t factorSize, DimBlocks held) {
      ofWhole[dim].push_back(factors.size());
      factors.push_back(
          {static_cast<int64_t>(dim), factorSize, std::move(held)});
      dims[dim].push_back(factors.size() - 1);
    };
    SmallVector<AxisRefAttr> parts = getParts(mesh, axes.getAxes(), cuts);
    int64_t count = mesh.getAxesSize(axes.getAxes());
    if (!axes.getSegments().empty() || size % count != 0) {
      add(size, algebra.getBlocks(size, axes));
      continue;
    }
    for (AxisRefAttr part : parts)
      if (mesh.getAxisSize(part) > 1)
        add(mesh.getAxisSize(part), getIndices(mesh, part));
    if (size / count != 1 || ofWhole[dim].empty())
      add(size / count, DimBlocks(getNumRanks(), {Interval{0, size / count}}));
  }
}

bool View::isFollowed(Operation *op) {
  return BlockAlgebra::isMovement(op) ||
         isa<ReshapeOpInterface, TransposeOpInterface>(op);
}

View::Groups View::getGroups(AxisListAttr axes) const {
  Groups groups;
  for (int64_t rank = 0; rank < getNumRanks(); ++rank)
    groups.push_back(mesh.getGroupOf(rank, axes.getAxes()));
  return groups;
}

/// Each rank keeps its part of dimension `dim`.
LogicalResult View::slice(int64_t dim, AxisListAttr axes) {
  if (elements) {
    elements->slice(dim, axes, mesh);
    return success();
  }
  SmallVector<AxisRefAttr> parts = getParts(mesh, axes.getAxes(), cuts);
  llvm::erase_if(parts,
                 [&](AxisRefAttr part) { return mesh.getAxisSize(part) == 1; });
  // If the slice is even, each rank keeps one index of the major factors.
  View even = *this;
  bool isEven = axes.getSegments().empty();
  for (AxisRefAttr part : parts) {
    SmallVector<unsigned> own = even.getMoved(dim);
    int64_t size = mesh.getAxisSize(part);
    isEven &= !own.empty() && even.factors[own.front()].isWhole() &&
              even.factors[own.front()].size % size == 0;
    if (!isEven)
      break;
    if (even.factors[own.front()].size != size)
      even.split(own.front(), size);
    even.factors[even.getMoved(dim).front()].held = getIndices(mesh, part);
  }
  if (isEven) {
    *this = std::move(even);
    return success();
  }
  SmallVector<unsigned> own = getMoved(dim);
  if (own.empty())
    own = dims[dim];
  if (own.size() > 1 && failed(merge(own)))
    return failure();
  if (own.empty())
    return failure();
  Factor &only = factors[own.front()];
  for (int64_t rank = 0; rank < getNumRanks(); ++rank)
    only.held[rank] = select(only.held[rank],
                             getDimBlock(only.getSize(rank), axes, mesh, rank));
  return success();
}

/// The first rank in `group` that has elements; its first rank if none has any.
int64_t View::getHolder(ArrayRef<int64_t> group) const {
  const int64_t *holder =
      llvm::find_if(group, [&](int64_t rank) { return !isEmpty(rank); });
  return holder == group.end() ? group.front() : *holder;
}

/// Whether the rank has no element.
bool View::isEmpty(int64_t rank) const {
  return llvm::any_of(
      factors, [&](const Factor &factor) { return factor.held[rank].empty(); });
}

/// The factors of which the members of a group hold different parts. For a rank
/// without elements, only the size of its part counts.
SmallVector<unsigned> View::getDifferent(const Groups &groups) const {
  SmallVector<unsigned> different;
  for (auto [index, factor] : llvm::enumerate(factors)) {
    const DimBlocks &held = factor.held;
    bool isAlike = llvm::all_of(groups, [&](ArrayRef<int64_t> group) {
      int64_t holder = getHolder(group);
      return llvm::all_of(group, [&](int64_t rank) {
        return factor.getSize(rank) == factor.getSize(holder) &&
               (isEmpty(rank) ||
                isEqual(ArrayRef(held[rank]), ArrayRef(held[holder])));
      });
    });
    if (!isAlike)
      different.push_back(index);
  }
  return different;
}

/// Concatenates the tensors of each group's members along `dim`.
LogicalResult View::gather(int64_t dim, const Groups &groups) {
  if (elements)
    return elements->gather(dim, groups);
  SmallVector<unsigned> different = getDifferent(groups);
  if (different.empty())
    return success(groups.front().size() == 1);
  for (auto [index, factor] : llvm::enumerate(factors)) {
    if (llvm::is_contained(different, index))
      continue;
    DimBlocks before = factor.held;
    for (auto [rank, group] : llvm::enumerate(groups))
      factor.held[rank] = before[getHolder(group)];
  }
  if (different.size() == 1)
    return gatherOne(dim, different.front(), groups);
  // Ranks without elements contribute nothing.
  Groups giving = groups;
  for (SmallVector<int64_t> &group : giving)
    llvm::erase_if(group, [&](int64_t rank) { return isEmpty(rank); });
  auto isIndex = [&](unsigned factor) {
    return llvm::all_of(llvm::seq(getNumRanks()), [&](int64_t rank) {
      int64_t size = factors[factor].getSize(rank);
      return size == 1 || (size == 0 && llvm::is_contained(dims[dim], factor));
    });
  };
  constexpr size_t kMaxIndices = 6;
  if (different.size() > kMaxIndices || !llvm::all_of(different, isIndex))
    return failure();
  do {
    if (gatherIndices(dim, different, giving))
      return success();
  } while (std::next_permutation(different.begin(), different.end()));
  return failure();
}

LogicalResult View::gatherOne(int64_t dim, unsigned factor,
                              const Groups &groups) {
  Factor &own = factors[factor];
  SmallVector<unsigned> moved = getMoved(dim);
  if (own.isIndex())
    moveTo(dim, factor);
  else if (moved.empty() || moved.front() != factor)
    return failure();
  DimBlocks before = std::exchange(own.held, {});
  for (ArrayRef<int64_t> group : groups) {
    own.held.emplace_back();
    for (int64_t rank : group)
      for (Interval interval : before[rank])
        append(own.held.back(), interval);
  }
  return success();
}

/// If the members of each group enumerate the indices of `major`, the last
/// factor fastest, makes these the major factors of `dim` and returns true.
bool View::gatherIndices(int64_t dim, ArrayRef<unsigned> major,
                         const Groups &groups) {
  auto getIndex = [&](unsigned factor, int64_t rank) {
    return factors[factor].held[rank].front().offset;
  };
  SmallVector<DimBlocks> gathered(major.size());
  for (ArrayRef<int64_t> group : groups) {
    if (group.empty())
      return false;
    SmallVector<SmallVector<int64_t>> indices(major.size());
    for (auto [factor, list] : llvm::zip_equal(major, indices))
      for (int64_t rank : group)
        if (!llvm::is_contained(list, getIndex(factor, rank)))
          list.push_back(getIndex(factor, rank));
    for (auto [position, rank] : llvm::enumerate(group)) {
      size_t rest = position;
      for (size_t i = major.size(); i-- > 0;) {
        size_t count = indices[i].size();
        if (indices[i][rest % count] != getIndex(major[i], rank))
          return false;
        rest /= count;
      }
      if (rest != 0)
        return false;
    }
    size_t count = 1;
    for (auto [blocks, list] : llvm::zip_equal(gathered, indices)) {
      count *= list.size();
      blocks.emplace_back();
      for (int64_t index : list)
        append(blocks.back(), {index, 1});
    }
    if (count != group.size())
      return false;
  }
  for (auto [factor, blocks] : llvm::zip_equal(major, gathered))
    factors[factor].held = std::move(blocks);
  moveTo(dim, major);
  return true;
}

LogicalResult View::permute(const Groups &groups,
                            function_ref<size_t(size_t)> getSource) {
  if (elements) {
    elements->permute(groups, getSource);
    return success();
  }
  for (Factor &factor : factors) {
    DimBlocks before = factor.held;
    for (int64_t rank = 0; rank < getNumRanks(); ++rank) {
      ArrayRef<int64_t> group = groups[rank];
      size_t mine = std::distance(group.begin(), llvm::find(group, rank));
      factor.held[rank] = before[group[getSource(mine)]];
    }
  }
  return success();
}

LogicalResult View::reduce(AxisListAttr axes, ReductionKind kind) {
  Groups groups = getGroups(axes);
  if (elements ? !elements->areAlike(groups) : !getDifferent(groups).empty())
    return failure();
  SmallVector<AxisRefAttr> all(cuts);
  for (PartialAttr partial : partials)
    all.push_back(partial.getAxis());
  for (AxisRefAttr axis : cutParts(mesh, axes.getAxes(), all)) {
    if (mesh.getAxisSize(axis) == 1)
      continue;
    auto *it =
        llvm::find(partials, PartialAttr::get(mesh.getContext(), axis, kind));
    if (it == partials.end())
      return failure();
    partials.erase(it);
  }
  return success(llvm::all_of(partials, [&](PartialAttr partial) {
    return commute(partial.getKind(), kind);
  }));
}

/// Fails if the value is Partial over `axes`: it must be reduced before it is
/// moved between these ranks.
LogicalResult View::checkNotPartial(AxisListAttr axes) const {
  for (PartialAttr partial : partials)
    for (AxisRefAttr axis : axes)
      if (axis.overlaps(partial.getAxis()))
        return failure();
  return success();
}

/// The elements that the factors describe, if there aren't too many.
std::optional<Elements> View::getElements() const {
  // The distance in the global tensor between neighboring indices of a factor.
  SmallVector<int64_t> strides(factors.size());
  int64_t stride = 1;
  for (ArrayRef<unsigned> list : llvm::reverse(ofWhole))
    for (unsigned factor : llvm::reverse(list)) {
      strides[factor] = stride;
      stride *= factors[factor].size;
    }
  std::vector<Elements::Tensor> tensors;
  int64_t total = 0;
  for (int64_t rank = 0; rank < getNumRanks(); ++rank) {
    Elements::Tensor tensor{getLocalShape(rank), {}};
    total += ShapedType::getNumElements(tensor.shape);
    if (total > Elements::kMaxElements)
      return std::nullopt;
    tensor.ids = {0};
    for (ArrayRef<unsigned> dim : dims)
      for (unsigned factor : dim) {
        std::vector<int32_t> ids;
        for (int32_t id : tensor.ids)
          for (Interval interval : factors[factor].held[rank])
            for (int64_t i = 0; i < interval.size; ++i)
              ids.push_back(id + (interval.offset + i) * strides[factor]);
        tensor.ids = std::move(ids);
      }
    tensors.push_back(std::move(tensor));
  }
  return Elements(std::move(tensors));
}

LogicalResult View::apply(Operation *op, int64_t rank) {
  // Elements are only tracked if their global indices fit in 32 bits.
  if (elements || global.getNumElements() > INT32_MAX)
    return follow(op, rank);
  View before = *this;
  if (succeeded(follow(op, rank)))
    return success();
  *this = std::move(before);
  elements = getElements();
  return success(elements && succeeded(follow(op, rank)));
}

LogicalResult View::follow(const Dataflow &flow, AxisListAttr axes) {
  Groups groups = getGroups(axes);
  if ((!flow.reduction && failed(checkNotPartial(axes))) ||
      (flow.cut && flow.cut == flow.joined))
    return failure();
  if (flow.getSource(0) &&
      failed(permute(groups, [&](size_t i) { return *flow.getSource(i); })))
    return failure();
  if (flow.reduction && failed(reduce(axes, *flow.reduction)))
    return failure();
  // The members agree along the dimension that is cut, so it can be cut after
  // the others are joined.
  if (flow.joined && failed(gather(*flow.joined, groups)))
    return failure();
  return flow.cut ? slice(*flow.cut, axes) : success();
}

LogicalResult View::follow(Operation *op, int64_t rank) {
  auto rankOf = [](Operation *op) {
    return cast<RankedTensorType>(op->getOperand(0).getType()).getRank();
  };
  auto isDim = [&](int64_t dim) { return dim >= 0 && dim < rankOf(op); };
  int64_t ownRank = elements ? elements->getRank() : dims.size();
  if (rankOf(op) != ownRank || global.getNumElements() == 0)
    return failure();
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ReshapeOpInterface op) {
        return reshape(op.getType().getShape(), rank);
      })
      .Case([&](TransposeOpInterface op) {
        if (elements)
          elements->transpose(op.getPermutation());
        else
          dims = applyPermutation(ArrayRef(dims), op.getPermutation());
        return success();
      })
      .Case([&](LocalSliceOp op) {
        return success(succeeded(checkNotPartial(op.getAxes())) &&
                       isDim(op.getDim()) &&
                       succeeded(slice(op.getDim(), op.getAxes())));
      })
      .Case([&](CollectiveOpInterface op) {
        std::optional<Dataflow> flow = op.getDataflow();
        return success(flow && (!flow->cut || isDim(*flow->cut)) &&
                       (!flow->joined || isDim(*flow->joined)) &&
                       succeeded(follow(*flow, op.getAxes())));
      })
      .Default(failure());
}

SmallVector<int64_t> View::getLocalShape(int64_t rank) const {
  if (elements)
    return to_vector(elements->getShape(rank));
  SmallVector<int64_t> shape;
  for (ArrayRef<unsigned> dim : dims) {
    shape.push_back(1);
    for (unsigned factor : dim)
      shape.back() *= factors[factor].getSize(rank);
  }
  return shape;
}

RankedTensorType View::getLocalType(ArrayRef<int64_t> ranks) const {
  SmallVector<int64_t> shape = getLocalShape(ranks.front());
  bool isSame = llvm::all_of(
      ranks, [&](int64_t rank) { return getLocalShape(rank) == shape; });
  return isSame ? global.clone(shape) : RankedTensorType();
}

/// The parts of a global dimension that the ranks hold.
FailureOr<DimBlocks> View::getBlocks(int64_t dim) const {
  DimBlocks blocks;
  for (int64_t rank = 0; rank < getNumRanks(); ++rank) {
    FailureOr<Intervals> own = Intervals{Interval{0, 1}};
    for (unsigned factor : ofWhole[dim]) {
      own = compose(*own, factors[factor], rank);
      if (failed(own))
        return failure();
    }
    blocks.push_back(std::move(*own));
  }
  return blocks;
}

/// The same for all dimensions. Fails unless each dimension of the ranks'
/// tensors has the factors of the global one, in order.
FailureOr<SmallVector<DimBlocks>> View::getFactorBlocks() const {
  SmallVector<DimBlocks> blocks;
  for (int64_t dim = 0; dim < global.getRank(); ++dim) {
    auto inOrder = llvm::make_filter_range(
        ofWhole[dim], [&](unsigned f) { return !factors[f].isIndex(); });
    if (!llvm::equal(inOrder, getMoved(dim)))
      return failure();
    FailureOr<DimBlocks> held = getBlocks(dim);
    if (failed(held))
      return failure();
    blocks.push_back(std::move(*held));
  }
  return blocks;
}

FailureOr<ShardingAttr> View::getPlacement() const {
  int64_t rank = elements ? elements->getRank() : dims.size();
  if (rank != global.getRank())
    return failure();
  auto find = [&](FailureOr<SmallVector<DimBlocks>> blocks) {
    return failed(blocks) ? FailureOr<ShardingAttr>(failure())
                          : algebra->findPlacement(global, from, partials,
                                                   std::move(*blocks));
  };
  if (elements)
    return find(elements->getBlocks(global.getShape()));
  FailureOr<ShardingAttr> found = find(getFactorBlocks());
  if (succeeded(found) || global.getNumElements() > INT32_MAX)
    return found;
  std::optional<Elements> all = getElements();
  return all ? find(all->getBlocks(global.getShape())) : found;
}
