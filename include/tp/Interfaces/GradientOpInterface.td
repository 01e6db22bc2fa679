//===- GradientOpInterface.td - Reverse-mode gradients -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_INTERFACES_GRADIENTOPINTERFACE_TD
#define TP_INTERFACES_GRADIENTOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def GradientOpInterface : OpInterface<"GradientOpInterface"> {
  let description = [{
    The one place where `tp-grad` learns how to differentiate an op in reverse mode. The op builds
    the gradients of its operands from those of its results, with ops at the model level, whose
    placements follow from their own sharding rules. See `GradientBuilder.h`.
  }];
  let cppNamespace = "::mlir::tp";
  let methods = [
    InterfaceMethod<[{
      Builds the gradients of the operands that `builder` wants
      (`GradientBuilder::wants`) and hands them over with
      `GradientBuilder::setGradient`. An operand that gets none has gradient 0.
    }], "void", "buildGradient", (ins "::mlir::tp::GradientBuilder &":$builder)>,
    InterfaceMethod<[{
      Whether the results depend on the operands at all, as far as
      differentiation goes. If they don't, values that are computed only from
      the results have no gradient (in PyTorch, `requires_grad` is false).
    }], "bool", "passesGradient", (ins), [{}], [{
      return true;
    }]>,
    InterfaceMethod<[{
      Replaces the op in forward by others, and tells which of their values its
      gradient needs (`ForwardBuilder::save`, `GradientBuilder::getSaved`). The
      returned values stand for the op's results. By default nothing is
      returned, and the op stays as it is.
    }], "::llvm::SmallVector<::mlir::Value>", "buildForward",
    (ins "::mlir::tp::ForwardBuilder &":$builder), [{}], [{
      return {};
    }]>,
    InterfaceMethod<[{
      Builds the result of the op in a form that is faster or can be split in more ways, but has
      another gradient, for code that nothing differentiates any more. Null if the op has none.
    }], "::mlir::Value", "buildUndifferentiated", (ins "::mlir::ImplicitLocOpBuilder &":$builder),
    [{}], [{
      return {};
    }]>,
  ];
}

#endif // TP_INTERFACES_GRADIENTOPINTERFACE_TD
