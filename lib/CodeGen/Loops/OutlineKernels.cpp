//===- OutlineKernels.cpp - Kernels, one per distinct computation ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Buffers.h"
#include "CodeGen/Program/Origin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/CodeGen/Passes.h"
#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

namespace {

constexpr int64_t kMaxStackBytes = 64 * 1024;

class OutlineKernels : public tp::impl::OutlineKernelsBase<OutlineKernels> {
public:
  using OutlineKernelsBase::OutlineKernelsBase;

private:
  void runOnOperation() override {
    insertKernels.emplace(OpBuilder::atBlockEnd(getOperation().getBody()));
    for (func::FuncOp program : getProgramFunctions(getOperation())) {
      for (Operation &op :
           llvm::make_early_inc_range(program.getBody().front()))
        if (isKernel(&op))
          outline(&op);
      eraseDeadViews(program);
    }
    numKernels = kernels.size();
  }

  static bool isKernel(Operation *op) {
    if (isa<linalg::LinalgOp>(op))
      return true;
    return isa<scf::ForOp>(op) && !op->walk([](tprt::GemmOp) {
                                       return WalkResult::interrupt();
                                     }).wasInterrupted();
  }

  /// Ops that a kernel repeats instead of taking their results: views of its
  /// arguments, constants, globals.
  static bool isRepeated(Operation *op) {
    return op && (isa<ViewLikeOpInterface, memref::GetGlobalOp>(op) ||
                  op->hasTrait<OpTrait::ConstantLike>());
  }

  /// Whether `value` is a buffer that only `op` and views for it use.
  static bool isPrivateTo(Value value, Operation *op) {
    return llvm::all_of(value.getUsers(), [&](Operation *user) {
      if (op->isAncestor(user))
        return true;
      return isa<ViewLikeOpInterface>(user) &&
             isPrivateTo(user->getResult(0), op);
    });
  }

  void outline(Operation *op) {
    // The ops that the kernel repeats, in order, and the values that it takes.
    SetVector<Operation *> repeated;
    SetVector<Value> taken;
    std::function<void(Value)> visit = [&](Value value) {
      Operation *producer = value.getDefiningOp();
      if (producer && op->isAncestor(producer))
        return;
      if (auto arg = dyn_cast<BlockArgument>(value);
          arg && op->isAncestor(arg.getOwner()->getParentOp()))
        return;
      bool isStack = false;
      if (auto alloc = dyn_cast_or_null<memref::AllocOp>(producer))
        isStack =
            getTensorBytes(alloc.getType()) <= kMaxStackBytes &&
            isPrivateTo(alloc, op) &&
            !(wholeOnly && llvm::any_of(alloc->getUsers(), [](auto *user) {
                return isa<ViewLikeOpInterface>(user);
              }));
      if (!isStack && !isRepeated(producer)) {
        taken.insert(value);
        return;
      }
      for (Value operand : producer->getOperands())
        visit(operand);
      repeated.insert(producer);
    };
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        visit(operand);
    });

    OpBuilder builder(op->getContext());
    Location loc = op->getLoc();
    auto kernel = func::FuncOp::create(
        loc, "kernel",
        builder.getFunctionType(TypeRange(taken.getArrayRef()), {}));
    kernel.setPrivate();
    Block *body = kernel.addEntryBlock();
    builder.setInsertionPointToStart(body);
    IRMapping mapping;
    mapping.map(taken.getArrayRef(), body->getArguments());
    for (Operation *producer : repeated) {
      if (auto alloc = dyn_cast<memref::AllocOp>(producer)) {
        Value stack = memref::AllocaOp::create(
            builder, loc, alloc.getType(),
            builder.getI64IntegerAttr(kBufferAlignment));
        mapping.map(alloc.getResult(), stack);
      } else {
        builder.clone(*producer, mapping);
      }
    }
    builder.clone(*op, mapping);
    func::ReturnOp::create(builder, loc);
    for (auto [i, value] : llvm::enumerate(taken))
      annotate(builder, kernel, i, value);

    std::string text;
    llvm::raw_string_ostream os(text);
    kernel.print(os, OpPrintingFlags().useLocalScope());
    auto [it, isNew] = kernels.try_emplace(text, kernel);
    if (isNew) {
      kernel.setName("kernel_" + std::to_string(kernels.size() - 1));
      insertKernels->insert(kernel);
    } else {
      kernel.erase();
    }
    builder.setInsertionPoint(op);
    // The kernel is shared, and the locations of its ops describe one use only:
    // the call has the locations of this use.
    func::CallOp::create(builder, getLocationOfAll(op), it->second,
                         taken.getArrayRef());
    ++numCalls;
    op->erase();
    for (Operation *producer : llvm::reverse(repeated))
      if (producer->use_empty())
        producer->erase();
  }

  /// Tells the vectorizer that root buffers don't overlap and are aligned.
  static void annotate(OpBuilder &b, func::FuncOp kernel, unsigned i,
                       Value value) {
    auto type = dyn_cast<MemRefType>(value.getType());
    if (!type)
      return;
    kernel.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                      b.getUnitAttr());
    kernel.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                      b.getI64IntegerAttr(kBufferAlignment));
    if (int64_t bytes = getTensorBytes(type))
      kernel.setArgAttr(i, LLVM::LLVMDialect::getDereferenceableAttrName(),
                        b.getI64IntegerAttr(bytes));
  }

  static void eraseDeadViews(func::FuncOp program) {
    for (Operation &op :
         llvm::make_early_inc_range(llvm::reverse(program.getBody().front())))
      if (isRepeated(&op) && op.use_empty())
        op.erase();
  }

  llvm::StringMap<func::FuncOp> kernels;
  std::optional<OpBuilder> insertKernels;
};

} // namespace
