//===- Extensions.h - sharding rules of upstream ops ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ShardingRuleOpInterface for ops of upstream dialects, as external models:
// what the passes know about `linalg`, `tensor`, `arith`, `math` and `tosa`.
// They are attached when a dialect is loaded.
//
//===----------------------------------------------------------------------===//

#ifndef TP_EXTENSIONS_EXTENSIONS_H
#define TP_EXTENSIONS_EXTENSIONS_H

namespace mlir {
class DialectRegistry;
}

namespace mlir::tp {

/// All of the below.
void registerExternalModels(DialectRegistry &registry);

void registerArithExternalModels(DialectRegistry &registry);
/// The bodies of linalg ops are understood by the models of `arith` and `math`.
void registerLinalgExternalModels(DialectRegistry &registry);
void registerMathExternalModels(DialectRegistry &registry);
void registerTensorExternalModels(DialectRegistry &registry);
void registerTosaExternalModels(DialectRegistry &registry);

} // namespace mlir::tp

#endif // TP_EXTENSIONS_EXTENSIONS_H
