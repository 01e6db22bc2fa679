//===- MakeIntegersSignless.cpp - Signless integer types ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/CodeGen/Passes.h"

namespace mlir::tp {
#define GEN_PASS_DEF_MAKEINTEGERSSIGNLESS
#include "tp/CodeGen/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;

namespace {

class MakeIntegersSignless
    : public tp::impl::MakeIntegersSignlessBase<MakeIntegersSignless> {
  void runOnOperation() override {
    AttrTypeReplacer replacer;
    replacer.addReplacement([](IntegerType type) -> Type {
      return IntegerType::get(type.getContext(), type.getWidth());
    });
    replacer.recursivelyReplaceElementsIn(getOperation(),
                                          /*replaceAttrs=*/false,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    getOperation()->walk([&](FunctionOpInterface function) {
      function.setFunctionTypeAttr(
          TypeAttr::get(replacer.replace(function.getFunctionType())));
    });
    getOperation()->walk([](UnrealizedConversionCastOp op) {
      if (op.getOperandTypes() != op.getResultTypes())
        return;
      op.replaceAllUsesWith(op.getOperands());
      op.erase();
    });
  }
};

} // namespace
