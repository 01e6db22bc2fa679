//===- FuseSiblings.cpp - Elementwise ops with common operands ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CodeGen/Loops/Buffers.h"
#include "CodeGen/Loops/Loops.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "tp/CodeGen/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_FUSESIBLINGS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

/// More would take many registers.
constexpr size_t kMaxOperands = 12;

/// The inputs of an op, each once, with their maps.
using Inputs = llvm::SetVector<std::pair<Value, AffineMap>>;

void addInputs(Inputs &inputs, linalg::GenericOp op) {
  for (OpOperand *input : op.getDpsInputOperands())
    inputs.insert({input->get(), op.getMatchingIndexingMap(input)});
}

/// Whether the body of `op` loads what one of `writers` writes. An iteration
/// may load elements of any other iteration.
bool loadsFrom(linalg::GenericOp op, ArrayRef<linalg::GenericOp> writers) {
  return llvm::any_of(getCapturedBuffers(op), [&](Value loaded) {
    return llvm::any_of(writers, [&](linalg::GenericOp writer) {
      return llvm::any_of(writer.getDpsInits(), [&](Value written) {
        return getRootBuffer(written) == getRootBuffer(loaded);
      });
    });
  });
}

bool canFuse(linalg::GenericOp first, linalg::GenericOp second) {
  for (linalg::GenericOp op : {first, second})
    if (op.getNumParallelLoops() != op.getNumLoops())
      return false;
  if (first.getStaticLoopRanges() != second.getStaticLoopRanges() ||
      loadsFrom(first, second) || loadsFrom(second, first))
    return false;
  Inputs inputs;
  addInputs(inputs, first);
  addInputs(inputs, second);
  if (inputs.size() + first.getNumDpsInits() + second.getNumDpsInits() >
      kMaxOperands)
    return false;
  bool isRelated = false;
  for (OpOperand &x : first->getOpOperands())
    for (OpOperand &y : second->getOpOperands()) {
      if (!isa<MemRefType>(x.get().getType()) ||
          getRootBuffer(x.get()) != getRootBuffer(y.get()))
        continue;
      if (first.isDpsInit(&x) || second.isDpsInit(&y)) {
        if (!areDisjoint(x.get(), y.get()))
          return false;
      } else {
        isRelated |= visitsEachOnce(first, x) && visitsEachOnce(second, y);
      }
    }
  return isRelated;
}

/// Replaces both ops by one in the place of `second`.
linalg::GenericOp fuse(RewriterBase &rewriter, linalg::GenericOp first,
                       linalg::GenericOp second) {
  Inputs inputs;
  addInputs(inputs, first);
  addInputs(inputs, second);
  SmallVector<Value> values, inits;
  SmallVector<AffineMap> maps;
  for (auto [value, map] : inputs) {
    values.push_back(value);
    maps.push_back(map);
  }
  for (linalg::GenericOp op : {first, second})
    for (OpOperand &init : op.getDpsInitsMutable()) {
      inits.push_back(init.get());
      maps.push_back(op.getMatchingIndexingMap(&init));
    }
  rewriter.setInsertionPoint(second);
  auto fused = linalg::GenericOp::create(
      rewriter, rewriter.getFusedLoc({first.getLoc(), second.getLoc()}), values,
      inits, maps, second.getIteratorTypesArray(),
      [&](OpBuilder &b, Location loc, ValueRange arguments) {
        SmallVector<Value> results;
        unsigned nextInit = values.size();
        for (linalg::GenericOp op : {first, second}) {
          IRMapping mapping;
          Block &body = op.getRegion().front();
          for (OpOperand &operand : op->getOpOperands()) {
            auto *input = llvm::find(
                inputs,
                std::pair(operand.get(), op.getMatchingIndexingMap(&operand)));
            mapping.map(body.getArgument(operand.getOperandNumber()),
                        op.isDpsInit(&operand)
                            ? arguments[nextInit++]
                            : arguments[input - inputs.begin()]);
          }
          for (Operation &inner : body.without_terminator())
            b.clone(inner, mapping);
          for (Value result : body.getTerminator()->getOperands())
            results.push_back(mapping.lookupOrDefault(result));
        }
        linalg::YieldOp::create(b, loc, results);
      });
  rewriter.eraseOp(first);
  rewriter.eraseOp(second);
  return fused;
}

class FuseSiblings : public tp::impl::FuseSiblingsBase<FuseSiblings> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    linalg::GenericOp previous;
    for (Operation &op :
         llvm::make_early_inc_range(getOperation().getBody().front())) {
      auto generic = dyn_cast<linalg::GenericOp>(op);
      if (!generic) {
        if (!isa<ViewLikeOpInterface, memref::AllocOp>(op) &&
            !isMemoryEffectFree(&op))
          previous = nullptr;
        continue;
      }
      if (previous && canFuse(previous, generic)) {
        previous = fuse(rewriter, previous, generic);
        ++numFused;
      } else {
        previous = generic;
      }
    }
  }
};

} // namespace
