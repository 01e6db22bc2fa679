//===- IndependentIterations.cpp - Loops with independent iterations ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Buffers.h"
#include "Loops.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::tp;

SmallVector<scf::ForOp> tp::getNest(scf::ForOp outermost) {
  SmallVector<scf::ForOp> nest;
  auto isSimple = [](scf::ForOp loop) {
    return getConstantIntValue(loop.getLowerBound()) == 0 &&
           getConstantIntValue(loop.getStep()) == 1 &&
           getConstantIntValue(loop.getUpperBound()) &&
           loop.getNumResults() == 0;
  };
  for (scf::ForOp loop = outermost; loop && isSimple(loop);) {
    nest.push_back(loop);
    Block *body = loop.getBody();
    bool isPerfect = llvm::hasNItems(*body, 2); // with the terminator
    loop = isPerfect ? dyn_cast<scf::ForOp>(body->front()) : scf::ForOp();
  }
  return nest;
}

namespace {

/// A use of a buffer in the nest.
struct Access {
  Operation *op; ///< that reads or writes
  Value buffer;
  bool isWrite, isRead;
};

/// A view of a source that takes one index of a dimension for each induction
/// variable of a nest: the source, which is the same in all iterations, and
/// these dimensions.
struct Row {
  Value source;
  SmallVector<int64_t> dims;

  bool operator==(const Row &other) const {
    return source == other.source && dims == other.dims;
  }
};

} // namespace

/// Collects the uses of buffers by `op` and the ops in it; fails if one of them
/// may have unknown effects.
static LogicalResult collect(Operation *op, SmallVectorImpl<Access> &accesses) {
  WalkResult result = op->walk([&](Operation *inner) {
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(inner)) {
      for (OpOperand &operand : inner->getOpOperands())
        if (isa<MemRefType>(operand.get().getType()))
          accesses.push_back({inner, operand.get(),
                              linalgOp.isDpsInit(&operand),
                              linalgOp.payloadUsesValueFromOperand(&operand)});
      return WalkResult::advance();
    }
    if (auto load = dyn_cast<memref::LoadOp>(inner)) {
      accesses.push_back({inner, load.getMemRef(), false, true});
      return WalkResult::advance();
    }
    bool isKnown = isMemoryEffectFree(inner) ||
                   inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
    return isKnown ? WalkResult::advance() : WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

static std::optional<Row> getRow(Value buffer, ArrayRef<scf::ForOp> nest) {
  auto view = buffer.getDefiningOp<memref::SubViewOp>();
  if (!view ||
      !scf::ForOp(nest.front()).isDefinedOutsideOfLoop(view.getSource()))
    return std::nullopt;
  Row row{view.getSource(), {}};
  for (scf::ForOp loop : nest) {
    auto offsets = view.getMixedOffsets();
    auto found = llvm::find(offsets, OpFoldResult(loop.getInductionVar()));
    if (found == offsets.end())
      return std::nullopt;
    int64_t dim = found - offsets.begin();
    if (view.getStaticSizes()[dim] != 1)
      return std::nullopt;
    row.dims.push_back(dim);
  }
  return row;
}

/// Whether `root` is a buffer on the stack and the first of `accesses`, which
/// are in program order, writes all of it without reading it.
static bool beginsAnew(Value root, ArrayRef<Access> accesses) {
  const Access &first = accesses.front();
  auto generic = dyn_cast<linalg::GenericOp>(first.op);
  if (!root.getDefiningOp<memref::AllocaOp>() || first.buffer != root ||
      !generic || !first.isWrite || first.isRead)
    return false;
  return llvm::all_of(generic.getDpsInitsMutable(), [&](OpOperand &init) {
    return init.get() != root ||
           generic.getMatchingIndexingMap(&init).isProjectedPermutation();
  });
}

bool tp::hasIndependentIterations(ArrayRef<scf::ForOp> nest) {
  SmallVector<Access> accesses;
  if (nest.empty())
    return false;
  for (Operation &op : *scf::ForOp(nest.back()).getBody())
    if (failed(collect(&op, accesses)))
      return false;
  llvm::MapVector<Value, SmallVector<Access>> byRoot;
  for (const Access &access : accesses)
    byRoot[getRootBuffer(access.buffer)].push_back(access);
  return llvm::all_of(byRoot, [&](const auto &entry) {
    const SmallVector<Access> &all = entry.second;
    if (!llvm::any_of(all, [](const Access &x) { return x.isWrite; }))
      return true;
    std::optional<Row> row = getRow(all.front().buffer, nest);
    bool isOwn = row && llvm::all_of(all, [&](const Access &access) {
                   return getRow(access.buffer, nest) == row;
                 });
    return isOwn || beginsAnew(entry.first, all);
  });
}
