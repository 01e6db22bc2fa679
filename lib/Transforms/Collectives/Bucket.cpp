//===- Bucket.cpp - Many small collectives as few large ones --------------===//
//
// Independent collectives of one kind, group and element type are flattened,
// concatenated, moved at once, and taken apart again. Each moves as many bytes
// as before; what is saved is the time that a collective takes however small it
// is.
//
//   %2 = tp.all_reduce sum %0           %2 = nn.concat (nn.reshape %0),
//   (nn.reshape %1) %3 = tp.all_reduce sum %1           %3 = tp.all_reduce sum
//   %2
//                                       %4 = nn.reshape (nn.slice %3 …), …
//
// A bucket is filled in program order and issued where its last member stood.
// Pure ops in between that use a member's result wait for it behind the bucket;
// at anything else that does, the bucket is complete.
//
// Gathers of parameters need nothing that is computed, so that they come to the
// first one instead. Of these the small ones are joined: norms and biases,
// which take as long as a weight does to begin. A large one would be copied
// once more.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/NN/NN.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

/// What the members of a bucket have in common: what the collective does, but
/// for the dimension of a gather, and the element type.
using Key = std::pair<DictionaryAttr, Type>;

struct Bucket {
  SmallVector<CollectiveOpInterface> members;
  int64_t bytes = 0;
  /// Ops that use members' results, in order.
  llvm::SmallSetVector<Operation *, 8> dependents;
};

class Bucketing {
public:
  Bucketing(int64_t limit, bool gathers) : limit(limit), gathers(gathers) {}

  unsigned run(func::FuncOp program) {
    program.walk([&](Block *block) {
      if (isa<StartOp>(block->getParentOp()))
        return;
      for (Operation &op : llvm::make_early_inc_range(*block))
        visit(&op);
      for (auto &[key, bucket] : buckets)
        issue(bucket);
      buckets.clear();
    });
    return numJoined;
  }

  unsigned joinParameters(func::FuncOp program) {
    using Ops = llvm::SmallSetVector<Operation *, 8>;
    SmallVector<std::pair<AllGatherOp, Ops>> all;
    int64_t largest = 0;
    for (auto gather : program.getBody().front().getOps<AllGatherOp>()) {
      Ops ops;
      if (!collectOfParameters(gather.getInput(), ops))
        continue;
      largest = std::max(largest, getNumBytes(gather.getType()));
      all.push_back({gather, std::move(ops)});
    }
    // All that a bucket has is whole until its last member is used.
    limit = std::min(limit, largest / 4);
    // What backward gathers again isn't gathered with forward's.
    llvm::MapVector<std::pair<Key, unsigned>, Bucket> byPass;
    for (auto &[gather, ops] : all) {
      std::optional<Key> key = getKey(gather);
      int64_t bytes = getNumBytes(gather.getType());
      if (!key || bytes > limit / 4)
        continue;
      Bucket &bucket =
          byPass[{*key, llvm::any_of(ops, llvm::IsaPred<nn::RecomputeOp>)}];
      if (bucket.bytes + bytes > limit)
        issue(bucket);
      if (!bucket.members.empty()) {
        ops.insert(gather);
        Operation *last = bucket.members.back();
        for (Operation *op : ops)
          if (last->isBeforeInBlock(op)) {
            op->moveAfter(last);
            last = op;
          }
      }
      bucket.members.push_back(
          cast<CollectiveOpInterface>(gather.getOperation()));
      bucket.bytes += bytes;
    }
    for (auto &[key, bucket] : byPass)
      issue(bucket);
    return numJoined;
  }

private:
  void visit(Operation *op) {
    for (auto &[other, bucket] : buckets) {
      if (bucket.members.empty() || !dependsOn(op, bucket))
        continue;
      // When a parameter is assigned is free: it is read as it was before.
      if ((isPure(op) || isa<nn::AssignOp>(op)) && op->getNumRegions() == 0 &&
          !op->hasTrait<OpTrait::IsTerminator>())
        bucket.dependents.insert(op);
      else
        issue(bucket);
    }
    if (!gathers && isa<AllGatherOp>(op))
      return;
    std::optional<Key> key = getKey(op);
    if (!key)
      return;
    int64_t bytes = getNumBytes(op->getOperand(0).getType());
    if (bytes > limit)
      return;
    Bucket &bucket = buckets[*key];
    if (bucket.bytes + bytes > limit)
      issue(bucket);
    bucket.members.push_back(cast<CollectiveOpInterface>(op));
    bucket.bytes += bytes;
  }

  static bool dependsOn(Operation *op, const Bucket &bucket) {
    bool found = false;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          found |= bucket.dependents.contains(producer) ||
                   llvm::is_contained(bucket.members, producer);
    });
    return found;
  }

  static std::optional<Key> getKey(Operation *op) {
    if (auto gather = dyn_cast<AllGatherOp>(op)) {
      // Blocks of one size can be told apart again.
      MeshOp mesh = lookupMesh(op, gather.getMeshAttr());
      int64_t ranks = mesh.getAxesSize(gather.getAxes().getAxes());
      int64_t dim = gather.getDim();
      if (gather.getInput().getType().getDimSize(dim) * ranks !=
              gather.getType().getDimSize(dim) ||
          !gather.getAxes().getSegments().empty())
        return std::nullopt;
    } else if (!isa<AllReduceOp>(op)) {
      return std::nullopt;
    }
    auto type = cast<RankedTensorType>(op->getOperand(0).getType());
    if (type.getNumElements() == 0)
      return std::nullopt;
    NamedAttrList meaning(getMeaning(op));
    meaning.erase("dim");
    meaning.set(
        "op", StringAttr::get(op->getContext(), op->getName().getStringRef()));
    return Key(meaning.getDictionary(op->getContext()), type.getElementType());
  }

  /// Joins the members where the last one stands.
  void issue(Bucket &bucket) {
    if (bucket.members.size() > 1)
      join(bucket);
    bucket = Bucket();
  }

  void join(Bucket &bucket) {
    CollectiveOpInterface last = bucket.members.back();
    remarkRewrite(last, "Bucket",
                  std::to_string(bucket.members.size()) + " " +
                      last.getCollectiveKind().str() + " joined");
    numJoined += bucket.members.size() - 1;
    OpBuilder b(last);
    Location loc = last.getLoc();
    SmallVector<Value> flat;
    int64_t size = 0;
    auto element =
        cast<RankedTensorType>(last->getOperand(0).getType()).getElementType();
    for (CollectiveOpInterface member : bucket.members) {
      Value operand = member->getOperand(0);
      int64_t own = cast<RankedTensorType>(operand.getType()).getNumElements();
      flat.push_back(buildReshape(b, loc, operand, {own}));
      size += own;
    }
    Value all = nn::ConcatOp::create(
        b, loc, RankedTensorType::get({size}, element), flat, 0);
    SmallVector<Value> parts = isa<AllReduceOp>(last.getOperation())
                                   ? reduce(b, bucket, all)
                                   : gather(b, bucket, all);
    for (auto [member, part] : llvm::zip_equal(bucket.members, parts)) {
      member->getResult(0).replaceAllUsesWith(part);
      if (member != last)
        member.erase();
    }
    for (Operation *op : bucket.dependents)
      if (op->isBeforeInBlock(last))
        op->moveBefore(last);
    last.erase();
  }

  SmallVector<Value> reduce(OpBuilder &b, Bucket &bucket, Value all) {
    auto first = cast<AllReduceOp>(bucket.members.front().getOperation());
    auto reduced = AllReduceOp::create(
        b, first.getLoc(), all, first.getKind(), first.getMeshAttr(),
        first.getAxes(), StringAttr(), StringAttr(), IntegerAttr());
    inherit(reduced, bucket.members);
    SmallVector<Value> parts;
    int64_t offset = 0;
    for (CollectiveOpInterface member : bucket.members) {
      auto type = cast<RankedTensorType>(member->getResult(0).getType());
      Value part = buildSlice(b, first.getLoc(), reduced, 0, offset,
                              type.getNumElements());
      parts.push_back(buildReshape(b, first.getLoc(), part, type.getShape()));
      offset += type.getNumElements();
    }
    return parts;
  }

  /// Row r of what is gathered holds rank r's blocks, one after another.
  SmallVector<Value> gather(OpBuilder &b, Bucket &bucket, Value all) {
    auto first = cast<AllGatherOp>(bucket.members.front().getOperation());
    Location loc = first.getLoc();
    auto flat = cast<RankedTensorType>(all.getType());
    MeshOp mesh = lookupMesh(first, first.getMeshAttr());
    int64_t ranks = mesh.getAxesSize(first.getAxes().getAxes());
    auto gathered = AllGatherOp::create(
        b, loc, flat.clone({ranks * flat.getDimSize(0)}), all,
        b.getI64IntegerAttr(0), first.getMeshAttr(), first.getAxes(),
        StringAttr(), StringAttr(), IntegerAttr());
    inherit(gathered, bucket.members);
    Value rows = buildReshape(b, loc, gathered, {ranks, flat.getDimSize(0)});
    SmallVector<Value> parts;
    int64_t offset = 0;
    for (CollectiveOpInterface member : bucket.members) {
      auto op = cast<AllGatherOp>(member.getOperation());
      auto block = op.getInput().getType();
      int64_t dim = op.getDim();
      SmallVector<int64_t> shape = {ranks};
      llvm::append_range(shape, block.getShape());
      Value part = buildReshape(
          b, loc, buildSlice(b, loc, rows, 1, offset, block.getNumElements()),
          shape);
      // The ranks' dimension comes before the one that is gathered.
      if (dim != 0) {
        SmallVector<int64_t> permutation, moved;
        for (int64_t i = 1; i <= dim; ++i)
          permutation.push_back(i);
        permutation.push_back(0);
        for (int64_t i = dim + 1; i <= block.getRank(); ++i)
          permutation.push_back(i);
        for (int64_t i : permutation)
          moved.push_back(shape[i]);
        part = nn::TransposeOp::create(b, loc, block.clone(moved), part,
                                       permutation);
      }
      parts.push_back(buildReshape(b, loc, part, op.getType().getShape()));
      offset += block.getNumElements();
    }
    return parts;
  }

  int64_t limit;
  bool gathers;
  llvm::MapVector<Key, Bucket> buckets;
  unsigned numJoined = 0;
};

} // namespace

unsigned collectives::bucket(func::FuncOp program, int64_t bytes,
                             bool gathers) {
  return Bucketing(bytes, gathers).run(program);
}

unsigned collectives::joinSmallParameters(func::FuncOp program, int64_t bytes) {
  return Bucketing(bytes, /*gathers=*/true).joinParameters(program);
}
