//===- ShapeOpInterfaces.td - Ops that only move elements --*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_INTERFACES_SHAPEOPINTERFACES_TD
#define TP_INTERFACES_SHAPEOPINTERFACES_TD

include "mlir/IR/OpBase.td"

/// An op of one result.
class ShapeOpInterface<string name> : OpInterface<name> {
  let cppNamespace = "::mlir::tp";
  code resultDeclaration = [{
    ::mlir::Value getResult() { return (*this)->getResult(0); }
    operator ::mlir::Value() { return getResult(); }
    ::mlir::RankedTensorType getType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getResult().getType());
    }
  }];
  let extraClassDeclaration = resultDeclaration;
}

def ReshapeOpInterface : ShapeOpInterface<"ReshapeOpInterface"> {
  let description = [{
    The elements of the first operand, in row-major order, in another static shape.
  }];
  let methods = [InterfaceMethod<"The tensor.", "::mlir::Value", "getInput">];
}

def TransposeOpInterface : ShapeOpInterface<"TransposeOpInterface"> {
  let description = [{
    The first operand with its dimensions permuted. Other operands don't matter to the result.
  }];
  let methods = [
    InterfaceMethod<"The tensor.", "::mlir::Value", "getInput">,
    InterfaceMethod<"Dimension i of the result is dimension `permutation[i]` of the input.",
                    "::llvm::ArrayRef<int64_t>", "getPermutation">,
  ];
}

def SliceOpInterface : ShapeOpInterface<"SliceOpInterface"> {
  let description = [{
    A part of the first operand.
  }];
  let methods = [
    InterfaceMethod<"The tensor.", "::mlir::Value", "getInput">,
    InterfaceMethod<"The elements, if they are a range of one dimension; nullopt for other parts.",
                    "::std::optional<::mlir::tp::DimRange>", "getRange">,
  ];
}

def ConcatOpInterface : ShapeOpInterface<"ConcatOpInterface"> {
  let description = [{
    The operands side by side along one dimension.
  }];
  let methods = [InterfaceMethod<"The dimension.", "int64_t", "getDim">];
  let extraClassDeclaration = resultDeclaration # [{
    ::mlir::OperandRange getInputs() { return (*this)->getOperands(); }
  }];
}

#endif // TP_INTERFACES_SHAPEOPINTERFACES_TD
