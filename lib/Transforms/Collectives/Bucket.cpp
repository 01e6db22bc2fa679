//===- Bucket.cpp - Many small collectives as few large ones --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Independent collectives of one kind, group and element type become one. A
// bucket is filled in program order and issued at the position of its last
// member. Ops in between that use a member's result move behind the bucket if
// they can; a user that can't move completes the bucket.
//
// The bucket of a group of FSDP's parameters has no size limit: the group's
// gradients are scattered together, and reduced together over the mesh
// dimensions that replicate them.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "FsdpCollectives.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::collectives;

namespace {

struct Bucket {
  SmallVector<CollectiveOpInterface> members;
  int64_t bytes = 0;
  /// The group of all members; null if there is none.
  StringAttr group;
  /// Ops that use members' results, in order.
  llvm::SmallSetVector<Operation *, 8> dependents;
};

/// The derived class decides which collectives are joined and which ops wait.
class Bucketing {
public:
  virtual ~Bucketing() = default;

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

protected:
  /// If the group is set, it has buckets of its own.
  using Key = std::pair<JoinKey, StringAttr>;

  virtual std::optional<Key> getKey(Operation *op) = 0;
  /// Whether `op`, which belongs to `group`, goes into the bucket.
  virtual bool fits(Operation *op, StringAttr group, const Bucket &bucket) = 0;
  virtual StringAttr getGroup(Operation *op) = 0;
  /// Whether `op` may stand behind a bucket that it depends on.
  virtual bool mayWait(Operation *op) {
    // An assignment may be delayed: reads of the parameter give its old value.
    return (isPure(op) || isa<AssignOpInterface>(op)) &&
           op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>();
  }

private:
  void visit(Operation *op) {
    for (auto &[other, bucket] : buckets) {
      if (bucket.members.empty() || !dependsOn(op, bucket))
        continue;
      if (mayWait(op))
        bucket.dependents.insert(op);
      else
        issue(bucket);
    }
    std::optional<Key> key = getKey(op);
    if (!key)
      return;
    StringAttr group = getGroup(op);
    Bucket &bucket = buckets[*key];
    if (!fits(op, group, bucket))
      issue(bucket);
    if (!fits(op, group, bucket)) // not even alone
      return;
    bucket.group =
        bucket.members.empty() || bucket.group == group ? group : StringAttr();
    bucket.members.push_back(cast<CollectiveOpInterface>(op));
    bucket.bytes += getTensorBytes(op->getOperand(0).getType());
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

  /// Joins the members at the position of the last one.
  void issue(Bucket &bucket) {
    if (bucket.members.size() > 1) {
      Operation *last = bucket.members.back();
      Operation *next = last->getNextNode();
      numJoined += bucket.members.size() - 1;
      join(bucket.members);
      // Choose the ops first: a block renumbers its ops after each move.
      for (Operation *op : llvm::to_vector(
               llvm::make_filter_range(bucket.dependents, [&](Operation *op) {
                 return op->isBeforeInBlock(next);
               })))
        op->moveBefore(next);
    }
    bucket = Bucket();
  }

  llvm::MapVector<Key, Bucket> buckets;
  unsigned numJoined = 0;
};

/// Joins all-reduces, and optionally gathers, up to some size.
class BySize : public Bucketing {
public:
  BySize(func::FuncOp program, int64_t limit, bool gathers)
      : groups(program), limit(limit), gathers(gathers) {}

private:
  std::optional<Key> getKey(Operation *op) override {
    if (!isa<AllReduceOp>(op) && !(gathers && isa<AllGatherOp>(op)))
      return std::nullopt;
    // Gathers of FSDP's groups are issued late and must stay so.
    if (isa<AllGatherOp>(op) && groups.ofGathered(op))
      return std::nullopt;
    std::optional<JoinKey> key = getJoinKey(op, /*mayFill=*/false);
    if (!key)
      return std::nullopt;
    return Key(*key, StringAttr());
  }

  bool fits(Operation *op, StringAttr group, const Bucket &bucket) override {
    if (group && (bucket.members.empty() || group == bucket.group))
      return true;
    return bucket.bytes + getTensorBytes(op->getOperand(0).getType()) <= limit;
  }

  StringAttr getGroup(Operation *op) override {
    return isa<AllReduceOp>(op) ? groups.ofGradient(op) : StringAttr();
  }

  FsdpParameterGroups groups;
  int64_t limit;
  bool gathers;
};

/// Joins the reduce-scatters of the gradients of each group.
class ByGroup : public Bucketing {
public:
  explicit ByGroup(func::FuncOp program) : groups(program) {}

private:
  std::optional<Key> getKey(Operation *op) override {
    if (!isa<ReduceScatterOp>(op))
      return std::nullopt;
    StringAttr group = groups.ofGradient(op);
    std::optional<JoinKey> key = getJoinKey(op, /*mayFill=*/true);
    if (!group || !key)
      return std::nullopt;
    return Key(*key, group);
  }

  bool fits(Operation *, StringAttr, const Bucket &) override { return true; }

  StringAttr getGroup(Operation *) override { return {}; }

  /// Reductions over the mesh dimensions that replicate parameters may wait
  /// too.
  bool mayWait(Operation *op) override {
    return Bucketing::mayWait(op) ||
           (isa<AllReduceOp>(op) && groups.ofGradient(op));
  }

  FsdpParameterGroups groups;
};

} // namespace

unsigned collectives::bucket(func::FuncOp program, int64_t bytes,
                             bool gathers) {
  return BySize(program, bytes, gathers).run(program);
}

unsigned collectives::joinGradients(func::FuncOp program) {
  return ByGroup(program).run(program);
}
