//===- ModelOpInterfaces.td - Modules and parameters -------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_INTERFACES_MODELOPINTERFACES_TD
#define TP_INTERFACES_MODELOPINTERFACES_TD

include "mlir/IR/OpBase.td"

def ModuleOpInterface : OpInterface<"ModuleOpInterface"> {
  let description = [{
    A call of a module of the model. The operands are its tensor inputs, and the results its tensor
    outputs. The body has one block: its arguments are the inputs, and the operands of its
    terminator are the outputs.
  }];
  let cppNamespace = "::mlir::tp";
  let methods = [
    InterfaceMethod<"The module's name in the model; empty for the root.",
                    "::mlir::StringAttr", "getFqnAttr">,
    InterfaceMethod<"The name of the module's class.", "::llvm::StringRef", "getClassName">,
    InterfaceMethod<"The name of each input in the class's forward.",
                    "::mlir::ArrayAttr", "getArgNames">,
    InterfaceMethod<"The position of each input in the class's forward.",
                    "::llvm::ArrayRef<int64_t>", "getArgPositions">,
    InterfaceMethod<"The region of the body.", "::mlir::Region &", "getBody">,
  ];
  let extraClassDeclaration = [{
    ::llvm::StringRef getFqn() { return getFqnAttr().getValue(); }
    ::mlir::OperandRange getInputs() { return (*this)->getOperands(); }
    ::mlir::Block *getBodyBlock() { return &getBody().front(); }
  }];
}

def ParameterOpInterface : OpInterface<"ParameterOpInterface"> {
  let description = [{
    The value that a parameter or buffer of the model has at the beginning of the program's run.
    Several ops may name the same parameter. The op has no operands.
  }];
  let cppNamespace = "::mlir::tp";
  let methods = [
    InterfaceMethod<"The parameter's name in the model.", "::mlir::StringAttr", "getFqnAttr">,
    InterfaceMethod<"Whether training leaves the parameter unchanged.", "bool", "getFrozen">,
    InterfaceMethod<"The value.", "::mlir::Value", "getResult">,
  ];
  let extraClassDeclaration = [{
    ::llvm::StringRef getFqn() { return getFqnAttr().getValue(); }
    ::mlir::RankedTensorType getType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getResult().getType());
    }
  }];
}

def AssignOpInterface : OpInterface<"AssignOpInterface"> {
  let description = [{
    Sets the value that a parameter has from the next run of the program on.
  }];
  let cppNamespace = "::mlir::tp";
  let methods = [
    InterfaceMethod<"The parameter's name in the model.", "::mlir::StringAttr", "getFqnAttr">,
    InterfaceMethod<"The operand that is the next value.", "::mlir::OpOperand &",
                    "getValueMutable">,
    InterfaceMethod<"The value of all elements before the first run; null for a parameter that a "
                    "weights file holds.", "::mlir::FloatAttr", "getInitAttr">,
  ];
  let extraClassDeclaration = [{
    ::llvm::StringRef getFqn() { return getFqnAttr().getValue(); }
    ::mlir::Value getValue() { return getValueMutable().get(); }
    /// Builds the same assignment of `value`, whose type may differ.
    AssignOpInterface cloneFor(::mlir::OpBuilder &builder, ::mlir::Value value) {
      ::mlir::IRMapping mapping;
      mapping.map(getValue(), value);
      return ::llvm::cast<AssignOpInterface>(builder.clone(**this, mapping));
    }
  }];
}

def AttentionOpInterface : OpInterface<"AttentionOpInterface"> {
  let description = [{
    Attention: each row of the query, a position of a sequence, sees positions of the key's sequence.
    Over mesh dimensions that split the sequence (`tp.sequence`), the op communicates by its method.
  }];
  let cppNamespace = "::mlir::tp";
  let methods = [
    InterfaceMethod<"The number of the query's heads; 1 if it has no dimension of heads.",
                    "int64_t", "getNumHeads">,
    InterfaceMethod<"The number of the query's positions.", "int64_t", "getNumRows">,
    InterfaceMethod<"The number of the key's positions.", "int64_t", "getNumColumns">,
    InterfaceMethod<"Sets the method for a split sequence. Ring needs as many columns as rows.",
                    "void", "setContextMethod", (ins "::mlir::tp::ContextMethod":$method)>,
  ];
}

#endif // TP_INTERFACES_MODELOPINTERFACES_TD
