//===- Unbundle.cpp - Joined collectives, one by one ----------------------===//

#include "Unbundle.h"
#include "mlir/IR/Builders.h"
#include "tp/Dialect/NN/NN.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::tp;

/// The buffer that a collective of several values is of; null where it is of
/// one.
static nn::ConcatOp getBundle(Operation *collective) {
  auto gather = dyn_cast<AllGatherOp>(collective);
  if (!isa<AllReduceOp>(collective) &&
      !(gather && gather.getDim() == 0 &&
        gather.getAxes().getSegments().empty()))
    return {};
  auto all = collective->getOperand(0).getDefiningOp<nn::ConcatOp>();
  return all && all.getType().getRank() == 1 ? all : nn::ConcatOp();
}

namespace {

/// How the elements of a tensor lie: each dimension is made of extents of the
/// value that they come from, major to minor. Extents are known by their index.
class Layout {
public:
  explicit Layout(ArrayRef<int64_t> extents) : extents(extents) {
    for (unsigned i = 0; i < extents.size(); ++i)
      dims.push_back({i});
  }

  /// Fails where a dimension would hold part of an extent.
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

  /// Whether these are the elements of `other`, in its order.
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

/// One value of a bundle, and what its collective's result replaces.
struct Member {
  /// Null where nothing is cut out of it.
  Value value;
  /// Of a gather: its dimension.
  int64_t dim = 0;
  SmallVector<Value> results;
};

class Bundle {
public:
  Bundle(Operation *collective, nn::ConcatOp all, MeshOp mesh)
      : op(collective), all(all) {
    auto gather = dyn_cast<AllGatherOp>(op);
    ranks = gather ? mesh.getAxesSize(gather.getAxes().getAxes()) : 1;
    members.resize(all.getInputs().size());
  }

  /// Finds what is cut out of the result; fails where there is anything else.
  LogicalResult find() { return followRows(op->getResult(0)); }

  /// Replaces the collective by those of its members.
  void replace() {
    OpBuilder builder(op);
    for (auto [member, part] : llvm::zip_equal(members, all.getInputs())) {
      if (!member.value)
        member.value = part;
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

  /// A gather's rows are the ranks' buffers, of which columns are cut out.
  LogicalResult followRows(Value value) {
    bool isRows = ranks == 1 || getType(value).getRank() == 2;
    for (Operation *user : value.getUsers()) {
      if (auto slice = dyn_cast<nn::SliceOp>(user); slice && isRows) {
        if (failed(followSlice(slice)))
          return failure();
        continue;
      }
      auto reshape = dyn_cast<nn::ReshapeOp>(user);
      if (!reshape || isRows ||
          reshape.getType().getShape() !=
              ArrayRef<int64_t>{ranks, all.getType().getDimSize(0)} ||
          failed(followRows(reshape)))
        return failure();
    }
    return success();
  }

  LogicalResult followSlice(nn::SliceOp slice) {
    RankedTensorType type = slice.getType();
    int64_t dim = type.getRank() - 1, offset = 0;
    if (static_cast<int64_t>(slice.getDim()) != dim || slice.getStep() != 1)
      return failure();
    for (auto [member, part] : llvm::zip_equal(members, all.getInputs())) {
      int64_t size = getType(part).getDimSize(0);
      if (static_cast<int64_t>(slice.getStart()) == offset &&
          type.getDimSize(dim) == size)
        return followMember(slice, part, member);
      offset += size;
    }
    return failure();
  }

  /// What is cut out is of the value that was made flat, or of one that is flat
  /// itself.
  LogicalResult followMember(nn::SliceOp slice, Value part, Member &member) {
    SmallVector<Value, 2> candidates = {part};
    if (auto reshape = part.getDefiningOp<nn::ReshapeOp>())
      candidates.insert(candidates.begin(), reshape.getInput());
    if (member.value)
      candidates = {member.value};
    for (Value candidate : candidates) {
      SmallVector<int64_t> extents;
      if (ranks > 1)
        extents.push_back(ranks);
      llvm::append_range(extents, getType(candidate).getShape());
      Layout layout(extents);
      member.value = candidate;
      if (succeeded(layout.reshape(slice.getType().getShape())) &&
          succeeded(followPart(slice, layout, extents, member)))
        return success();
    }
    return failure();
  }

  /// Rearranges until it is what the member's own collective gives, as far as
  /// that goes: on the way, extents of 1 may look like another dimension's. It
  /// takes two reshapes at most; what comes behind is somebody else's.
  LogicalResult followPart(Value value, const Layout &layout,
                           ArrayRef<int64_t> extents, Member &member,
                           unsigned numReshapes = 0) {
    size_t numResults = member.results.size();
    auto followUser = [&](Operation *user) {
      Layout next = layout;
      if (auto transpose = dyn_cast<nn::TransposeOp>(user)) {
        next.transpose(transpose.getPermutation());
        return followPart(transpose, next, extents, member, numReshapes);
      }
      auto reshape = dyn_cast<nn::ReshapeOp>(user);
      if (!reshape || numReshapes == 2 ||
          failed(next.reshape(reshape.getType().getShape())))
        return failure();
      return followPart(reshape, next, extents, member, numReshapes + 1);
    };
    if (llvm::all_of(value.getUsers(), [&](Operation *user) {
          return succeeded(followUser(user));
        }))
      return success();
    member.results.truncate(numResults);
    if (!isResult(value, layout, extents, member))
      return failure();
    member.results.push_back(value);
    return success();
  }

  /// Whether `value` is the member reduced, or gathered along a dimension: the
  /// same one for all that is cut out of it.
  bool isResult(Value value, const Layout &layout, ArrayRef<int64_t> extents,
                Member &member) {
    ArrayRef<int64_t> shape = getType(member.value).getShape();
    if (ranks == 1)
      return getType(value).getShape() == shape &&
             layout.isSame(Layout(extents));
    for (int64_t dim = 0; dim < getType(member.value).getRank(); ++dim) {
      SmallVector<int64_t> gathered(shape), permutation;
      gathered[dim] *= ranks;
      if (getType(value).getShape() != ArrayRef<int64_t>(gathered) ||
          (!member.results.empty() && member.dim != dim))
        continue;
      for (int64_t i = 1; i <= dim; ++i)
        permutation.push_back(i);
      permutation.push_back(0);
      for (int64_t i = dim + 1; i < static_cast<int64_t>(extents.size()); ++i)
        permutation.push_back(i);
      Layout wanted(extents);
      wanted.transpose(permutation);
      if (failed(wanted.reshape(gathered)) || !layout.isSame(wanted))
        continue;
      member.dim = dim;
      return true;
    }
    return false;
  }

  Value create(OpBuilder &builder, const Member &member) {
    Location loc = op->getLoc();
    if (auto reduce = dyn_cast<AllReduceOp>(op))
      return AllReduceOp::create(builder, loc, member.value, reduce.getKind(),
                                 reduce.getMeshAttr(), reduce.getAxes(),
                                 StringAttr(), StringAttr(), IntegerAttr());
    auto gather = cast<AllGatherOp>(op);
    RankedTensorType block = getType(member.value);
    SmallVector<int64_t> shape(block.getShape());
    shape[member.dim] *= ranks;
    return AllGatherOp::create(builder, loc, block.clone(shape), member.value,
                               builder.getI64IntegerAttr(member.dim),
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
  nn::ConcatOp all;
  /// 1 for a reduction.
  int64_t ranks;
  SmallVector<Member> members;
};

} // namespace

static bool areAlike(nn::ConcatOp all) {
  return llvm::all_equal(all.getInputs().getTypes()) &&
         llvm::none_of(all.getInputs(), [](Value part) {
           return part.getDefiningOp<nn::ReshapeOp>();
         });
}

SmallVector<unsigned> tp::unbundle(func::FuncOp program, MeshOp mesh,
                                   bool keepAlike) {
  SmallVector<Operation *> collectives;
  program.walk([&](CollectiveOpInterface op) { collectives.push_back(op); });
  SmallVector<unsigned> counts;
  for (Operation *op : collectives) {
    nn::ConcatOp all = getBundle(op);
    counts.push_back(1);
    if (!all || (keepAlike && areAlike(all)))
      continue;
    Bundle bundle(op, all, mesh);
    if (failed(bundle.find()))
      continue;
    counts.back() = bundle.getNumMembers();
    bundle.replace();
  }
  return counts;
}
