//===- Shardings.h - Shardings that the IR gives to values ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_SHARDINGS_H
#define TP_DIALECT_TP_SHARDINGS_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/Dialect/TP/TP.h"

namespace mlir::tp {

/// The sharding in the attributes of an argument or result; null if there is
/// none.
ShardingAttr getArgSharding(FunctionOpInterface function, unsigned index);
ShardingAttr getResultSharding(FunctionOpInterface function, unsigned index);

/// The shardings that a redistribution, or `tp.sharding` or `tp.shardings`,
/// gives to the op's results; empty if nothing does.
SmallVector<ShardingAttr> getResultShardings(Operation *op);
void setResultShardings(Operation *op, ArrayRef<ShardingAttr> shardings);

} // namespace mlir::tp

#endif // TP_DIALECT_TP_SHARDINGS_H
