//===- SplitBuckets.cpp - Collectives out of buckets ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A collective of several values in one buffer, a bucket, computes, element by
// element, the same as one collective per value. The matcher only knows values
// of the reference, and the buffer isn't one, so buckets are split before it
// starts. Nothing is assumed about how they were filled: the offsets and the
// element order of each part that is cut out of the result must be those of the
// result of one value's own collective.
//
//===----------------------------------------------------------------------===//

#include "ProgramForms.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Interfaces/ShapeOpInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tp;

/// The buffer that a collective of several values communicates; null if it is a
/// collective of one value.
static ConcatOpInterface getBucket(Operation *collective) {
  auto gather = dyn_cast<AllGatherOp>(collective);
  auto scatter = dyn_cast<ReduceScatterOp>(collective);
  auto isPlain = [](auto op) {
    return op && op.getDim() == 0 && op.getAxes().getSegments().empty();
  };
  if (!isa<AllReduceOp>(collective) && !isPlain(gather) && !isPlain(scatter))
    return {};
  auto all = collective->getOperand(0).getDefiningOp<ConcatOpInterface>();
  // In a scatter's buffer, each row is the part of one rank.
  int64_t rank = scatter ? 2 : 1;
  bool isBuffer = all && all.getType().getRank() == rank &&
                  all.getDim() == rank - 1 &&
                  (!scatter || scatter.getType().getDimSize(0) == 1);
  return isBuffer ? all : ConcatOpInterface();
}

/// `value` without the constant that pads it along a dimension, and that
/// dimension; `value` and nullopt if it isn't padded.
static std::pair<Value, std::optional<int64_t>> getUnfilled(Value value) {
  auto all = value.getDefiningOp<ConcatOpInterface>();
  if (!all || all.getInputs().size() != 2 ||
      !matchPattern(all.getInputs()[1], m_Constant()))
    return {value, std::nullopt};
  return {all.getInputs()[0], all.getDim()};
}

namespace {

/// The order of a tensor's elements: each dimension consists of extents of the
/// original value, major to minor. Extents are identified by their index.
class Layout {
public:
  explicit Layout(ArrayRef<int64_t> extents) : extents(extents) {
    for (unsigned i = 0; i < extents.size(); ++i)
      dims.push_back({i});
  }

  /// The layout of a tensor whose dimension `dim` consists of two extents:
  /// `major` blocks, and the elements of each.
  static Layout split(ArrayRef<int64_t> shape, int64_t dim, int64_t major) {
    SmallVector<int64_t> extents(shape);
    extents[dim] /= major;
    extents.insert(extents.begin() + dim, major);
    Layout layout(extents);
    layout.dims[dim].push_back(dim + 1);
    layout.dims.erase(layout.dims.begin() + dim + 1);
    return layout;
  }

  /// Fails if a dimension would hold part of an extent.
  LogicalResult reshape(ArrayRef<int64_t> shape) {
    SmallVector<unsigned> all;
    for (ArrayRef<unsigned> dim : dims)
      llvm::append_range(all, dim);
    dims.clear();
    size_t next = 0;
    for (int64_t size : shape) {
      dims.emplace_back();
      for (int64_t own = 1; own < size;) {
        if (next == all.size())
          return failure();
        own *= extents[all[next]];
        if (extents[all[next]] != 1)
          dims.back().push_back(all[next]);
        ++next;
        if (own > size)
          return failure();
      }
    }
    return success(llvm::all_of(ArrayRef(all).drop_front(next),
                                [&](unsigned i) { return extents[i] == 1; }));
  }

  void transpose(ArrayRef<int64_t> permutation) {
    SmallVector<SmallVector<unsigned, 2>> before = dims;
    for (auto [dim, from] : llvm::zip_equal(dims, permutation))
      dim = before[from];
  }

  /// Whether both have the same elements in the same order.
  bool isSame(const Layout &other) const {
    auto getLong = [&](ArrayRef<unsigned> dim) {
      SmallVector<unsigned, 2> result(dim);
      llvm::erase_if(result, [&](unsigned i) { return extents[i] == 1; });
      return result;
    };
    return extents == other.extents && dims.size() == other.dims.size() &&
           llvm::all_of(llvm::zip(dims, other.dims), [&](auto pair) {
             return getLong(std::get<0>(pair)) == getLong(std::get<1>(pair));
           });
  }

private:
  SmallVector<int64_t> extents;
  SmallVector<SmallVector<unsigned, 2>> dims;
};

/// A value that a part of a buffer may hold.
struct Candidate {
  Value value;
  /// Its type in the buffer, where it may be padded along `dim`.
  RankedTensorType filled;
  /// The dimension that is gathered or scattered; nullopt if it may be any.
  std::optional<int64_t> dim;
};

/// One value of a bucket, and the values that the result of its own collective
/// replaces.
struct Member {
  /// Null if nothing is cut out of it.
  Value value;
  RankedTensorType filled;
  /// The dimension that is gathered or scattered, and the result's size along
  /// it.
  int64_t dim = 0, size = 0;
  SmallVector<Value> results;
};

class Bucket {
public:
  Bucket(Operation *collective, ConcatOpInterface all, MeshOp mesh,
         ArrayRef<int64_t> ownRanks)
      : op(collective), all(all), mesh(mesh), ownRanks(ownRanks) {
    if (auto gather = dyn_cast<AllGatherOp>(op))
      axes = gather.getAxes();
    else if (auto scatter = dyn_cast<ReduceScatterOp>(op))
      axes = scatter.getAxes();
    ranks = axes ? mesh.getAxesSize(axes.getAxes()) : 1;
    numRows = isa<AllGatherOp>(op) ? ranks : 1;
    members.resize(all.getInputs().size());
  }

  /// Finds the parts that are cut out of the result; fails if it has any other
  /// use.
  LogicalResult find() { return followRows(op->getResult(0)); }

  /// Replaces the collective by those of its members.
  void replace() {
    OpBuilder builder(op);
    for (auto [member, part] : llvm::zip_equal(members, all.getInputs())) {
      if (!member.value) {
        member.value = part;
        member.size = getType(part).getDimSize(0);
        if (isa<ReduceScatterOp>(op))
          member.size /= ranks;
        else
          member.size *= ranks;
      }
      Value result = create(builder, member);
      for (Value old : member.results)
        old.replaceAllUsesWith(result);
    }
    eraseUnused(op->getResult(0));
  }

  unsigned getNumMembers() const { return members.size(); }

private:
  static RankedTensorType getType(Value value) {
    return cast<RankedTensorType>(value.getType());
  }

  /// The result consists of rows of the buffer's length. Follows the slices
  /// that cut columns out of it.
  LogicalResult followRows(Value value) {
    int64_t length = getType(all).getShape().back();
    ArrayRef<int64_t> shape = getType(value).getShape();
    bool isRows = shape.back() == length &&
                  (numRows == 1 || (shape.size() == 2 && shape[0] == numRows));
    for (Operation *user : value.getUsers()) {
      if (auto slice = dyn_cast<SliceOpInterface>(user); slice && isRows) {
        if (failed(followSlice(slice)))
          return failure();
        continue;
      }
      auto reshape = dyn_cast<ReshapeOpInterface>(user);
      bool isOther =
          reshape && reshape.getType().getRank() != getType(value).getRank();
      if (!isOther || reshape.getType().getShape().back() != length ||
          failed(followRows(reshape)))
        return failure();
    }
    return success();
  }

  LogicalResult followSlice(SliceOpInterface slice) {
    RankedTensorType type = slice.getType();
    int64_t dim = type.getRank() - 1, offset = 0;
    std::optional<DimRange> range = slice.getRange();
    if (!range || range->dim != dim)
      return failure();
    for (auto [member, part] : llvm::zip_equal(members, all.getInputs())) {
      int64_t size = getType(part).getShape().back();
      if (range->start == offset && type.getDimSize(dim) == size)
        return followMember(slice, part, member);
      offset += size;
    }
    return failure();
  }

  //===--------------------------------------------------------------------===//
  // From a part of the buffer to the value
  //===--------------------------------------------------------------------===//

  /// A part of the buffer is a flattened value, or a value that is flat itself.
  /// Either may be padded.
  SmallVector<Candidate> getCandidates(Value part) {
    if (isa<ReduceScatterOp>(op))
      return getScattered(part);
    SmallVector<Candidate> candidates;
    SmallVector<Value, 2> values = {part};
    if (auto reshape = part.getDefiningOp<ReshapeOpInterface>())
      values.insert(values.begin(), reshape.getInput());
    for (Value value : values) {
      auto [own, dim] = getUnfilled(value);
      if (dim && isa<AllGatherOp>(op))
        candidates.push_back({own, getType(value), dim});
      candidates.push_back({value, getType(value), std::nullopt});
    }
    return candidates;
  }

  /// The same for a scatter: row r of `part` is block r of the value.
  SmallVector<Candidate> getScattered(Value part) {
    SmallVector<Candidate> candidates;
    SmallVector<Operation *> path;
    for (Value value = part;;) {
      auto [own, filledDim] = getUnfilled(value);
      for (int64_t dim = 0; dim < getType(value).getRank(); ++dim) {
        if (!isInRows(getType(value), dim, path))
          continue;
        candidates.push_back({value, getType(value), dim});
        if (filledDim == dim)
          candidates.push_back({own, getType(value), dim});
      }
      Operation *producer = value.getDefiningOp();
      if (!isa_and_nonnull<ReshapeOpInterface, TransposeOpInterface>(producer))
        break;
      path.push_back(producer);
      value = producer->getOperand(0);
    }
    std::reverse(candidates.begin(), candidates.end());
    return candidates;
  }

  /// Whether `path`, last op first, rearranges a tensor so that its blocks
  /// along `dim` become rows, each in the block's own order.
  bool isInRows(RankedTensorType type, int64_t dim,
                ArrayRef<Operation *> path) const {
    if (type.getDimSize(dim) % ranks != 0)
      return false;
    Layout layout = Layout::split(type.getShape(), dim, ranks);
    for (Operation *step : llvm::reverse(path)) {
      if (auto transpose = dyn_cast<TransposeOpInterface>(step))
        layout.transpose(transpose.getPermutation());
      else if (failed(layout.reshape(getType(step->getResult(0)).getShape())))
        return false;
    }
    SmallVector<int64_t> permutation = {dim};
    for (int64_t i = 0; i <= type.getRank(); ++i)
      if (i != dim)
        permutation.push_back(i);
    SmallVector<int64_t> extents(type.getShape());
    extents[dim] /= ranks;
    extents.insert(extents.begin() + dim, ranks);
    Layout wanted(extents);
    wanted.transpose(permutation);
    return succeeded(wanted.reshape({ranks, type.getNumElements() / ranks})) &&
           layout.isSame(wanted);
  }

  //===--------------------------------------------------------------------===//
  // From the result to what the value's own collective gives
  //===--------------------------------------------------------------------===//

  LogicalResult followMember(SliceOpInterface slice, Value part,
                             Member &member) {
    SmallVector<Candidate> candidates = getCandidates(part);
    // All slices of this part must be of the same value.
    if (member.value)
      llvm::erase_if(candidates, [&](const Candidate &candidate) {
        return candidate.value != member.value ||
               candidate.filled != member.filled;
      });
    for (const Candidate &candidate : candidates) {
      SmallVector<int64_t> extents(candidate.filled.getShape());
      if (isa<ReduceScatterOp>(op))
        extents[*candidate.dim] /= ranks;
      else if (ranks > 1)
        extents.insert(extents.begin(), ranks);
      Layout layout(extents);
      Member found = member;
      found.value = candidate.value;
      found.filled = candidate.filled;
      if (failed(layout.reshape(slice.getType().getShape())) ||
          failed(followPart(slice, layout, extents, candidate, found)))
        continue;
      member = std::move(found);
      return success();
    }
    return failure();
  }

  /// Follows rearrangements of `value` up to the result of the member's own
  /// collective. For a reduction, this is the first value with the member's
  /// elements in the member's shape. Otherwise it is the last one, because
  /// extents of 1 can make an earlier value look like the result for another
  /// dimension. There are at most two reshapes; later ops don't belong to the
  /// bucket.
  LogicalResult followPart(Value value, const Layout &layout,
                           ArrayRef<int64_t> extents,
                           const Candidate &candidate, Member &member,
                           unsigned numReshapes = 0) {
    if (isa<AllReduceOp>(op) &&
        succeeded(takeResult(value, layout, extents, candidate, member)))
      return success();
    size_t numResults = member.results.size();
    auto followUser = [&](Operation *user) {
      Layout next = layout;
      if (auto transpose = dyn_cast<TransposeOpInterface>(user)) {
        // A model may have one that moves nothing; a bucket has none.
        if (isIdentityPermutation(transpose.getPermutation()))
          return failure();
        next.transpose(transpose.getPermutation());
        return followPart(transpose, next, extents, candidate, member,
                          numReshapes);
      }
      auto reshape = dyn_cast<ReshapeOpInterface>(user);
      if (!reshape || numReshapes == 2 ||
          failed(next.reshape(reshape.getType().getShape())))
        return failure();
      return followPart(reshape, next, extents, candidate, member,
                        numReshapes + 1);
    };
    if (llvm::all_of(value.getUsers(), [&](Operation *user) {
          return succeeded(followUser(user));
        }))
      return success();
    member.results.truncate(numResults);
    return takeResult(value, layout, extents, candidate, member);
  }

  /// Takes `value` as a result if it is the member reduced, or gathered or
  /// scattered along a dimension, which must be the same for all of the
  /// member's results. If blocks are padded, takes the slices of `value`
  /// instead.
  LogicalResult takeResult(Value value, const Layout &layout,
                           ArrayRef<int64_t> extents,
                           const Candidate &candidate, Member &member) {
    ArrayRef<int64_t> shape = candidate.filled.getShape();
    if (isa<AllReduceOp>(op)) {
      if (getType(value).getShape() != shape || !layout.isSame(Layout(extents)))
        return failure();
      member.results.push_back(value);
      return success();
    }
    for (int64_t dim = 0; dim < candidate.filled.getRank(); ++dim) {
      if (candidate.dim.value_or(dim) != dim ||
          (!member.results.empty() && member.dim != dim))
        continue;
      SmallVector<int64_t> wantedShape(shape), permutation;
      Layout wanted(extents);
      if (isa<ReduceScatterOp>(op)) {
        wantedShape[dim] /= ranks;
      } else {
        wantedShape[dim] *= ranks;
        for (int64_t i = 1; i <= dim; ++i)
          permutation.push_back(i);
        permutation.push_back(0);
        for (int64_t i = dim + 1; i < static_cast<int64_t>(extents.size()); ++i)
          permutation.push_back(i);
        if (ranks > 1)
          wanted.transpose(permutation);
      }
      if (getType(value).getShape() != ArrayRef<int64_t>(wantedShape) ||
          failed(wanted.reshape(wantedShape)) || !layout.isSame(wanted))
        continue;
      if (succeeded(takeCut(value, dim, candidate, member)) ||
          succeeded(take(value, dim, wantedShape[dim], candidate, member)))
        return success();
    }
    return failure();
  }

  /// Takes the slices of `value`, which must all begin at 0 and have one size.
  LogicalResult takeCut(Value value, int64_t dim, const Candidate &candidate,
                        Member &member) {
    std::optional<int64_t> size;
    for (Operation *user : value.getUsers()) {
      auto slice = dyn_cast<SliceOpInterface>(user);
      std::optional<DimRange> range;
      if (slice)
        range = slice.getRange();
      if (!range || range->dim != dim || range->start != 0)
        return failure();
      int64_t own = slice.getType().getDimSize(dim);
      if (size.value_or(own) != own)
        return failure();
      size = own;
    }
    if (!size)
      return failure();
    Member cut = member;
    for (Operation *user : value.getUsers())
      if (failed(take(user->getResult(0), dim, *size, candidate, cut)))
        return failure();
    member = std::move(cut);
    return success();
  }

  /// Takes `value`, of `size` along `dim`, if the block that each rank
  /// contributes to the gathered tensor, or gets of the scattered one, has the
  /// rank's size.
  LogicalResult take(Value value, int64_t dim, int64_t size,
                     const Candidate &candidate, Member &member) {
    int64_t own = getType(candidate.value).getDimSize(dim);
    bool isGather = isa<AllGatherOp>(op);
    int64_t whole = isGather ? size : own, block = isGather ? own : size;
    int64_t filled = candidate.filled.getDimSize(dim) / (isGather ? 1 : ranks);
    // Even blocks are all as large as the first one.
    if ((filled * ranks != whole || block != filled) &&
        (axes.getAxes().size() != 1 ||
         filled != llvm::divideCeilSigned(whole, ranks) ||
         llvm::any_of(ownRanks, [&](int64_t rank) {
           return getDimBlock(whole, axes, mesh, rank).front().size != block;
         })))
      return failure();
    if (!member.results.empty() && member.size != size)
      return failure();
    member.dim = dim;
    member.size = size;
    member.results.push_back(value);
    return success();
  }

  Value create(OpBuilder &builder, const Member &member) {
    Location loc = op->getLoc();
    if (auto reduce = dyn_cast<AllReduceOp>(op))
      return AllReduceOp::create(builder, loc, member.value, reduce.getKind(),
                                 reduce.getMeshAttr(), reduce.getAxes(),
                                 StringAttr(), StringAttr(), IntegerAttr());
    SmallVector<int64_t> shape(getType(member.value).getShape());
    shape[member.dim] = member.size;
    RankedTensorType type = getType(member.value).clone(shape);
    IntegerAttr dim = builder.getI64IntegerAttr(member.dim);
    if (auto scatter = dyn_cast<ReduceScatterOp>(op))
      return ReduceScatterOp::create(builder, loc, type, member.value,
                                     scatter.getKind(), dim,
                                     scatter.getMeshAttr(), scatter.getAxes(),
                                     StringAttr(), StringAttr(), IntegerAttr());
    auto gather = cast<AllGatherOp>(op);
    return AllGatherOp::create(builder, loc, type, member.value, dim,
                               gather.getMeshAttr(), gather.getAxes(),
                               StringAttr(), StringAttr(), IntegerAttr());
  }

  static void eraseUnused(Value value) {
    for (Operation *user : llvm::make_early_inc_range(value.getUsers()))
      eraseUnused(user->getResult(0));
    if (value.use_empty())
      value.getDefiningOp()->erase();
  }

  Operation *op;
  ConcatOpInterface all;
  MeshOp mesh;
  /// The ranks that run the program.
  ArrayRef<int64_t> ownRanks;
  /// The axes of a gather or a scatter, and the size of its group.
  AxisListAttr axes;
  int64_t ranks;
  /// The rows of the result.
  int64_t numRows;
  SmallVector<Member> members;
};

} // namespace

static bool areAlike(ConcatOpInterface all) {
  return llvm::all_equal(all.getInputs().getTypes()) &&
         llvm::none_of(all.getInputs(), [](Value part) {
           return part.getDefiningOp<ReshapeOpInterface>();
         });
}

SmallVector<unsigned> tp::splitBuckets(const Program &program, MeshOp mesh,
                                       bool keepAlike) {
  SmallVector<Operation *> collectives;
  func::FuncOp function = program.function;
  function.walk([&](CollectiveOpInterface op) { collectives.push_back(op); });
  SmallVector<unsigned> counts;
  for (Operation *op : collectives) {
    ConcatOpInterface all = getBucket(op);
    counts.push_back(1);
    if (!all || (keepAlike && areAlike(all)))
      continue;
    Bucket bucket(op, all, mesh, program.ranks);
    if (failed(bucket.find()))
      continue;
    counts.back() = bucket.getNumMembers();
    bucket.replace();
  }
  return counts;
}
