//===- CopyConstantsToDevice.cpp - Constants that the runtime reads -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CodeGen/Loops/Buffers.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Dialect/TPRT/TPRT.h"

namespace mlir::tp {
#define GEN_PASS_DEF_COPYCONSTANTSTODEVICE
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

/// Whether the runtime gets `value` itself or a view of it.
static bool isReadByRuntime(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    if (isa<ViewLikeOpInterface>(user))
      return isReadByRuntime(user->getResult(0));
    return isa_and_present<tprt::TPRTDialect>(user->getDialect());
  });
}

/// Makes the runtime's uses of `from`, and of views of it, uses of `to`.
static void replaceForRuntime(OpBuilder &b, Value from, Value to) {
  for (OpOperand &use : llvm::make_early_inc_range(from.getUses())) {
    Operation *user = use.getOwner();
    if (isa_and_present<tprt::TPRTDialect>(user->getDialect())) {
      use.set(to);
    } else if (isa<ViewLikeOpInterface>(user) &&
               isReadByRuntime(user->getResult(0))) {
      b.setInsertionPoint(user);
      IRMapping mapping;
      mapping.map(from, to);
      replaceForRuntime(b, user->getResult(0),
                        b.clone(*user, mapping)->getResult(0));
    }
  }
}

namespace {

class CopyConstantsToDevice
    : public tp::impl::CopyConstantsToDeviceBase<CopyConstantsToDevice> {
  void runOnOperation() override {
    getOperation().walk([&](memref::GetGlobalOp constant) {
      if (!isReadByRuntime(constant))
        return;
      OpBuilder b(constant);
      b.setInsertionPointAfter(constant);
      Value copy =
          memref::AllocOp::create(b, constant.getLoc(), constant.getType());
      linalg::CopyOp::create(b, constant.getLoc(), constant.getResult(), copy);
      replaceForRuntime(b, constant, copy);
      ++numCopied;
    });
  }
};

} // namespace
