//===- Extensions.h - Sharding rules of upstream ops ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ShardingRuleOpInterface for ops of the upstream dialects `linalg`, `tensor`,
// `arith`, `math` and `tosa`, as external models. They are attached when a
// dialect is loaded.
//
//===----------------------------------------------------------------------===//

#ifndef TP_EXTENSIONS_EXTENSIONS_H
#define TP_EXTENSIONS_EXTENSIONS_H

namespace mlir {
class DialectRegistry;
}

namespace mlir::tp {

/// Registers all of the models below.
void registerExternalModels(DialectRegistry &registry);

void registerArithExternalModels(DialectRegistry &registry);
/// These need the models of `arith` and `math` for the bodies of linalg ops.
void registerLinalgExternalModels(DialectRegistry &registry);
void registerMathExternalModels(DialectRegistry &registry);
/// ReshapeOpInterface and the like, for the ops of `linalg` and `tensor` that
/// TensorBuilder builds.
void registerShapeModels(DialectRegistry &registry);
void registerTensorExternalModels(DialectRegistry &registry);
void registerTosaExternalModels(DialectRegistry &registry);

} // namespace mlir::tp

#endif // TP_EXTENSIONS_EXTENSIONS_H
