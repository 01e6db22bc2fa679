//===- BlockAlgebra.cpp - Effect of data movement on blocks ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BlockAlgebra.h"
#include "tp/Dialect/TP/Reductions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::tp;

//===----------------------------------------------------------------------===//
// Lists of intervals
//===----------------------------------------------------------------------===//

static std::string print(ArrayRef<Interval> list) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (list.empty())
    return "no elements";
  os << "elements ";
  llvm::interleave(
      list, os,
      [&](Interval i) { os << i.offset << " to " << i.offset + i.size - 1; },
      ", ");
  return text;
}

static std::string print(AxisRefAttr axis) {
  std::string text;
  llvm::raw_string_ostream os(text);
  axis.printAxis(os);
  return text;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

const DimBlocks &BlockAlgebra::getBlocks(int64_t size, AxisListAttr axes) {
  std::unique_ptr<DimBlocks> &blocks = cache[{size, axes}];
  if (!blocks) {
    blocks = std::make_unique<DimBlocks>();
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      blocks->push_back(mergeNeighbors(getDimBlock(size, axes, mesh, rank)));
  }
  return *blocks;
}

SmallVector<PartialAttr> tp::getPartials(MeshOp mesh, ShardingAttr sharding,
                                         ArrayRef<AxisRefAttr> cuts) {
  SmallVector<PartialAttr> partials;
  for (PartialAttr partial : sharding.getPartial())
    for (AxisRefAttr part : cutParts(mesh, partial.getAxis(), cuts))
      if (mesh.getAxisSize(part) > 1)
        partials.push_back(
            PartialAttr::get(mesh.getContext(), part, partial.getKind()));
  return partials;
}

static SmallVector<AxisRefAttr> getAxes(ArrayRef<PartialAttr> partials) {
  return llvm::map_to_vector(partials,
                             [](PartialAttr p) { return p.getAxis(); });
}

bool BlockAlgebra::isSame(RankedTensorType global, ShardingAttr a,
                          ShardingAttr b) {
  if (a == b)
    return true;
  // If the value has no elements, blocks only need the same shape.
  bool isEmpty = global.getNumElements() == 0;
  for (auto [size, x, y] :
       llvm::zip_equal(global.getShape(), a.getDims(), b.getDims())) {
    if (x == y)
      continue;
    auto hasSameSize = [](ArrayRef<Interval> mine, ArrayRef<Interval> theirs) {
      return getSize(mine) == getSize(theirs);
    };
    const DimBlocks &blocks = getBlocks(size, x), &others = getBlocks(size, y);
    if (!(isEmpty ? llvm::equal(blocks, others, hasSameSize)
                  : isEqual(blocks, others)))
      return false;
  }
  auto ofA = getPartials(mesh, a, getAxes(b.getPartial()));
  auto ofB = getPartials(mesh, b, getAxes(a.getPartial()));
  return ofA.size() == ofB.size() && llvm::all_of(ofA, [&](PartialAttr p) {
           return llvm::is_contained(ofB, p);
         });
}

RankedTensorType BlockAlgebra::getLocalType(RankedTensorType global,
                                            ShardingAttr sharding,
                                            ArrayRef<int64_t> ranks) {
  SmallVector<int64_t> shape;
  for (auto [size, axes] :
       llvm::zip_equal(global.getShape(), sharding.getDims())) {
    if (axes.empty()) {
      shape.push_back(size);
      continue;
    }
    const DimBlocks &blocks = getBlocks(size, axes);
    shape.push_back(getSize(blocks[ranks.front()]));
    // A rank's form of an op may depend on its number of elements in each
    // segment.
    SmallVector<Interval> pieces;
    if (!axes.getSegments().empty())
      pieces = getDimBlock(size, axes, mesh, ranks.front());
    auto hasSameSize = [](Interval a, Interval b) { return a.size == b.size; };
    for (int64_t rank : ranks)
      if (getSize(blocks[rank]) != shape.back() ||
          (!pieces.empty() &&
           !llvm::equal(pieces, getDimBlock(size, axes, mesh, rank),
                        hasSameSize)))
        return {};
  }
  return global.clone(shape);
}

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

/// One op, and the parts of the value that each rank holds before and after it.
struct BlockAlgebra::Move {
  Move(BlockAlgebra &algebra, RankedTensorType global, ShardingAttr from,
       AxisListAttr axes, std::string &reason)
      : algebra(algebra), mesh(algebra.mesh), global(global), from(from),
        axes(axes), reason(reason),
        partials(getPartials(mesh, from, axes.getAxes())) {
    for (auto [size, dimAxes] :
         llvm::zip_equal(global.getShape(), from.getDims()))
      held.push_back(algebra.getBlocks(size, dimAxes));
    result = held;
    for (int64_t rank = 0; rank < mesh.getNumRanks(); ++rank)
      groups.push_back(mesh.getGroupOf(rank, axes.getAxes()));
  }

  int64_t getNumRanks() { return mesh.getNumRanks(); }
  std::string getAxesText() {
    std::string text;
    llvm::raw_string_ostream os(text);
    axes.printAxes(os);
    return text;
  }
  LogicalResult fail(const Twine &text) {
    reason = text.str();
    return failure();
  }

  /// Fails if the value is Partial over the op's axes: it must be reduced
  /// before it is moved between these ranks.
  LogicalResult checkNotPartial() {
    for (PartialAttr partial : partials)
      for (AxisRefAttr axis : axes)
        if (axis.overlaps(partial.getAxis()))
          return fail("the operand is " + printPlacements(from, mesh) +
                      ": it has to be reduced over " + getAxesText() +
                      " before it is moved between these ranks");
    return success();
  }

  /// All members of a group hold the same part of dimension `dim`.
  LogicalResult checkAlike(int64_t dim) {
    for (int64_t rank = 0; rank < getNumRanks(); ++rank)
      for (int64_t other : groups[rank])
        if (!isEqual(held[dim][rank], held[dim][other]))
          return fail("in the group over " + getAxesText() + ", rank " +
                      Twine(rank) + " has " + print(held[dim][rank]) +
                      " of dimension " + Twine(dim) + " and rank " +
                      Twine(other) + " has " + print(held[dim][other]));
    return success();
  }
  LogicalResult checkAlikeBut(ArrayRef<int64_t> dims) {
    for (int64_t dim = 0; dim < global.getRank(); ++dim)
      if (!llvm::is_contained(dims, dim) && failed(checkAlike(dim)))
        return failure();
    return success();
  }
  LogicalResult checkDim(int64_t dim) {
    if (dim < 0 || dim >= global.getRank())
      return fail("it has no dimension " + Twine(dim));
    return success();
  }

  void concat(int64_t dim, const DimBlocks &parts) {
    for (int64_t rank = 0; rank < getNumRanks(); ++rank) {
      result[dim][rank].clear();
      for (int64_t other : groups[rank])
        for (Interval interval : parts[other])
          append(result[dim][rank], interval);
    }
  }
  void slice(int64_t dim) {
    for (int64_t rank = 0; rank < getNumRanks(); ++rank)
      result[dim][rank] =
          select(result[dim][rank],
                 getDimBlock(getSize(result[dim][rank]), axes, mesh, rank));
  }
  LogicalResult reduce(ReductionKind kind);
  void permute(const Dataflow &flow);
  LogicalResult follow(const Dataflow &flow);
  LogicalResult exchange(ExchangeOp op);

  /// Whether `axes` give each rank the part of dimension `dim` that it holds.
  /// For a rank without elements, only the size has to match.
  bool isPlacedBy(int64_t dim, AxisListAttr axes) {
    const DimBlocks &blocks = algebra.getBlocks(global.getDimSize(dim), axes);
    for (int64_t rank = 0; rank < getNumRanks(); ++rank) {
      ArrayRef<Interval> own = result[dim][rank];
      bool isEmpty = llvm::any_of(
          result, [&](const DimBlocks &each) { return each[rank].empty(); });
      if (isEmpty ? getSize(own) != getSize(blocks[rank])
                  : !isEqual(own, blocks[rank]))
        return false;
    }
    return true;
  }
  FailureOr<AxisListAttr> findAxes(int64_t dim);
  FailureOr<ShardingAttr> finish();

  BlockAlgebra &algebra;
  MeshOp mesh;
  RankedTensorType global;
  ShardingAttr from;
  AxisListAttr axes;
  std::string &reason;
  SmallVector<PartialAttr> partials;
  SmallVector<DimBlocks> held, result;
  SmallVector<SmallVector<int64_t>> groups;
  /// The axes of the result's dimensions, if the op states them.
  SmallVector<AxisListAttr> known;
};

LogicalResult BlockAlgebra::Move::reduce(ReductionKind kind) {
  for (AxisRefAttr axis :
       cutParts(mesh, axes.getAxes(), getAxes(from.getPartial()))) {
    if (mesh.getAxisSize(axis) == 1)
      continue;
    auto it = llvm::find_if(partials,
                            [&](PartialAttr p) { return p.getAxis() == axis; });
    if (it == partials.end())
      return fail("the operand is " + printPlacements(from, mesh) +
                  ": there is nothing to reduce over '" + print(axis) + "'");
    if (it->getKind() != kind)
      return fail("the operand is " + printPlacements(from, mesh) +
                  ": its parts don't combine by " + stringifyEnum(kind));
    partials.erase(it);
  }
  for (PartialAttr partial : partials)
    if (!commute(partial.getKind(), kind))
      return fail("the operand is " + printPlacements(from, mesh) +
                  ": its reductions don't commute");
  return success();
}

void BlockAlgebra::Move::permute(const Dataflow &flow) {
  for (int64_t rank = 0; rank < getNumRanks(); ++rank) {
    ArrayRef<int64_t> group = groups[rank];
    size_t mine = std::distance(group.begin(), llvm::find(group, rank));
    int64_t source = group[*flow.getSource(mine)];
    for (int64_t dim = 0; dim < global.getRank(); ++dim)
      result[dim][rank] = held[dim][source];
  }
}

LogicalResult BlockAlgebra::Move::follow(const Dataflow &flow) {
  if (!flow.reduction && failed(checkNotPartial()))
    return failure();
  SmallVector<int64_t> joined;
  if (flow.joined)
    joined.push_back(*flow.joined);
  if ((flow.cut && failed(checkDim(*flow.cut))) ||
      (flow.joined && failed(checkDim(*flow.joined))))
    return failure();
  if (flow.getSource(0))
    permute(flow);
  else if (failed(checkAlikeBut(joined)))
    return failure();
  if (flow.cut && flow.cut == flow.joined)
    return fail("it splits and concatenates one dimension");
  if (flow.reduction && failed(reduce(*flow.reduction)))
    return failure();
  if (flow.cut)
    slice(*flow.cut);
  if (flow.joined)
    concat(*flow.joined, held[*flow.joined]);
  return success();
}

/// The ranks must hold the blocks that the op declares, and their groups must
/// have all elements of the blocks that they get.
LogicalResult BlockAlgebra::Move::exchange(ExchangeOp op) {
  if (op.getShape() != global.getShape())
    return fail("it exchanges blocks of another shape than " +
                printPlacements(from, mesh) + " has");
  for (int64_t dim = 0; dim < global.getRank(); ++dim) {
    int64_t size = global.getDimSize(dim);
    if (!isEqual(held[dim],
                 algebra.getBlocks(size, op.getFrom().getDims()[dim])))
      return fail("the operand is " + printPlacements(from, mesh) +
                  ", and is taken for " + printPlacements(op.getFrom(), mesh));
    AxisListAttr to = op.getTo().getDims()[dim];
    result[dim] = algebra.getBlocks(size, to);
    known.push_back(to);
  }
  for (int64_t rank = 0; rank < getNumRanks(); ++rank) {
    TensorBlock wanted = getBlock(global.getShape(), op.getTo(), mesh, rank);
    int64_t found = 0;
    SmallVector<TensorBlock> sources;
    for (int64_t source : groups[rank]) {
      TensorBlock block =
          getBlock(global.getShape(), op.getFrom(), mesh, source);
      if (llvm::any_of(sources, [&](const TensorBlock &other) {
            return getNumShared(block, other) > 0;
          }))
        continue;
      sources.push_back(block);
      found += getNumShared(block, wanted);
    }
    if (found != getNumElements(wanted))
      return fail("rank " + Twine(rank) + " finds only " + Twine(found) +
                  " of the " + Twine(getNumElements(wanted)) +
                  " elements of its block in its group");
  }
  return success();
}

SmallVector<SmallVector<AxisRefAttr>>
tp::getPrimeParts(MeshOp mesh, ArrayRef<AxisRefAttr> axes) {
  SmallVector<SmallVector<AxisRefAttr>> all = {{}};
  for (AxisRefAttr axis : axes) {
    SmallVector<int64_t> primes;
    for (int64_t rest = mesh.getAxisSize(axis), p = 2; rest > 1; ++p)
      for (; rest % p == 0; rest /= p)
        primes.push_back(p);
    SmallVector<SmallVector<AxisRefAttr>> next;
    do {
      SmallVector<AxisRefAttr> parts;
      int64_t begin = getPartBegin(axis);
      for (int64_t p : primes) {
        parts.push_back(getPart(mesh, axis.getName(), begin, begin * p));
        begin *= p;
      }
      for (const auto &before : all) {
        next.push_back(before);
        llvm::append_range(next.back(), parts);
      }
    } while (std::next_permutation(primes.begin(), primes.end()));
    all = std::move(next);
  }
  return all;
}

/// Finds axes that give the ranks the parts of dimension `dim` that they hold
/// now.
FailureOr<AxisListAttr> BlockAlgebra::Move::findAxes(int64_t dim) {
  if (!known.empty())
    return known[dim];
  MLIRContext *context = mesh.getContext();
  int64_t size = global.getDimSize(dim);
  AxisListAttr before = from.getDims()[dim];
  if (isPlacedBy(dim, before))
    return before;
  SmallVector<SmallVector<int64_t>> segments = {{}};
  auto mention = [&](AxisListAttr list) {
    if (!list.getSegments().empty() && llvm::sum_of(list.getSegments()) == size)
      segments.emplace_back(list.getSegments());
  };
  llvm::for_each(from.getDims(), mention);
  mention(axes);
  AxisListAttr found;
  auto fits = [&](ArrayRef<AxisRefAttr> chosen) {
    for (ArrayRef<int64_t> list : segments) {
      if (!list.empty() && chosen.empty())
        continue;
      // If blocks are uneven, splitting by one part after the other gives
      // different blocks than splitting by the merged axis.
      SmallVector<AxisRefAttr> merged = mergeParts(mesh, chosen);
      for (ArrayRef<AxisRefAttr> form : {ArrayRef(merged), chosen}) {
        found = AxisListAttr::get(context, form, list);
        if (isPlacedBy(dim, found))
          return true;
      }
    }
    return false;
  };
  // Usually the op removes its own axes and keeps the others.
  SmallVector<AxisRefAttr> own =
      cutParts(mesh, axes.getAxes(), before.getAxes());
  SmallVector<AxisRefAttr> pool =
      cutParts(mesh, before.getAxes(), axes.getAxes());
  SmallVector<AxisRefAttr> kept = pool;
  llvm::erase_if(
      kept, [&](AxisRefAttr axis) { return llvm::is_contained(own, axis); });
  if (fits(kept))
    return found;
  for (AxisRefAttr axis : own)
    if (!llvm::is_contained(pool, axis))
      pool.push_back(axis);
  SmallVector<AxisRefAttr> chosen;
  auto search = [&](auto &&search, ArrayRef<AxisRefAttr> pool) -> bool {
    if (fits(chosen))
      return true;
    for (AxisRefAttr axis : pool) {
      if (llvm::is_contained(chosen, axis))
        continue;
      chosen.push_back(axis);
      if (search(search, pool))
        return true;
      chosen.pop_back();
    }
    return false;
  };
  if (search(search, pool))
    return found;
  for (ArrayRef<AxisRefAttr> parts : getPrimeParts(mesh, pool))
    if (parts.size() <= 6 && search(search, parts))
      return found;
  for (int64_t rank = 0; rank < getNumRanks(); ++rank)
    if (!isEqual(result[dim][rank], held[dim][rank])) {
      (void)fail(
          "rank " + Twine(rank) + " gets " + print(result[dim][rank]) +
          " of dimension " + Twine(dim) +
          " in this order, and no placement gives the ranks such blocks");
      break;
    }
  return failure();
}

FailureOr<ShardingAttr> BlockAlgebra::Move::finish() {
  SmallVector<AxisListAttr> dims;
  for (int64_t dim = 0; dim < global.getRank(); ++dim) {
    FailureOr<AxisListAttr> found = findAxes(dim);
    if (failed(found))
      return failure();
    dims.push_back(*found);
  }
  // A Partial of which all parts remain isn't divided into parts.
  SmallVector<PartialAttr> remaining;
  for (PartialAttr partial : from.getPartial()) {
    bool stays =
        llvm::all_of(cutParts(mesh, partial.getAxis(), axes.getAxes()),
                     [&](AxisRefAttr part) {
                       return mesh.getAxisSize(part) == 1 ||
                              llvm::is_contained(getAxes(partials), part);
                     });
    if (stays)
      remaining.push_back(partial);
    else
      for (AxisRefAttr part : cutParts(mesh, partial.getAxis(), axes.getAxes()))
        if (llvm::is_contained(getAxes(partials), part))
          remaining.push_back(
              PartialAttr::get(mesh.getContext(), part, partial.getKind()));
  }
  return ShardingAttr::get(mesh.getContext(), from.getMesh(), dims, remaining);
}

FailureOr<ShardingAttr>
BlockAlgebra::findPlacement(RankedTensorType global, ShardingAttr from,
                            ArrayRef<PartialAttr> partials,
                            SmallVector<DimBlocks> blocks) {
  SmallVector<AxisRefAttr> all;
  for (size_t i = 0; i < mesh.getNumAxes(); ++i)
    all.push_back(AxisRefAttr::get(mesh.getContext(), mesh.getAxisName(i)));
  std::string reason;
  Move move(*this, global, from, AxisListAttr::get(mesh.getContext(), all),
            reason);
  move.result = std::move(blocks);
  SmallVector<AxisListAttr> dims;
  for (int64_t dim = 0; dim < global.getRank(); ++dim) {
    FailureOr<AxisListAttr> found = move.findAxes(dim);
    if (failed(found))
      return failure();
    dims.push_back(*found);
  }
  return ShardingAttr::get(mesh.getContext(), from.getMesh(), dims, partials);
}

bool BlockAlgebra::isMovement(Operation *op) {
  return isa<LocalSliceOp, CollectiveOpInterface>(op);
}

FailureOr<ShardingAttr> BlockAlgebra::apply(Operation *op,
                                            RankedTensorType global,
                                            ShardingAttr from,
                                            std::string &reason) {
  auto slice = dyn_cast<LocalSliceOp>(op);
  AxisListAttr axes =
      slice ? slice.getAxes() : cast<CollectiveOpInterface>(op).getAxes();
  Move move(*this, global, from, axes, reason);
  if (slice) {
    if (failed(move.checkNotPartial()) || failed(move.checkDim(slice.getDim())))
      return failure();
    move.slice(slice.getDim());
    return move.finish();
  }
  std::optional<Dataflow> flow = cast<CollectiveOpInterface>(op).getDataflow();
  if (!flow) {
    auto exchange = dyn_cast<ExchangeOp>(op);
    if (!exchange)
      return move.fail("ranks get elements beyond their blocks, which only the "
                       "windows of one op read");
    if (failed(move.checkNotPartial()) || failed(move.exchange(exchange)))
      return failure();
    return move.finish();
  }
  if (failed(move.follow(*flow)))
    return failure();
  return move.finish();
}
