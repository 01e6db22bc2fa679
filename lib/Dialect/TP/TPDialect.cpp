//===- TPDialect.cpp - the tp dialect -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"
#include "tp/Dialect/TP/Batch.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Dialect/TP/Programs.h"
#include "tp/Dialect/TP/TP.h"

using namespace mlir;
using namespace mlir::tp;

#include "tp/Dialect/TP/TPDialect.cpp.inc"

namespace {
struct TPInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};

/// Prints each record of a function's redistributions on its own line, as an
/// alias before the module, instead of all records on the function's line.
struct TPAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attr, raw_ostream &os) const final {
    auto record = dyn_cast<DictionaryAttr>(attr);
    if (!record || !record.contains("steps") ||
        !record.contains("lower_bound_total"))
      return AliasResult::NoAlias;
    os << "redistribution";
    return AliasResult::FinalAlias;
  }
};
} // namespace

void TPDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "tp/Dialect/TP/TPOps.cpp.inc"
      >();
  addInterfaces<TPInlinerInterface, TPAsmInterface>();
}

static InFlightDiagnostic emitAttrError(Operation *op, NamedAttribute attr) {
  return op->emitOpError() << "attribute '" << attr.getName().getValue()
                           << "': ";
}

/// The type that a sharding refers to: for a rank's block, an attribute has the
/// global type.
static Type getWholeType(Type type, Attribute globalType) {
  auto whole = dyn_cast_or_null<TypeAttr>(globalType);
  return whole ? whole.getValue() : type;
}

LogicalResult TPDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attr) {
  StringRef name = attr.getName();
  auto emit = [&]() { return emitAttrError(op, attr); };
  if (name == kFqnAttr || name == kNameAttr) {
    if (!isa<StringAttr>(attr.getValue()))
      return emit() << "a string is expected, found " << attr.getValue();
    return success();
  }
  if (name == kGlobalTypeAttr) {
    auto type = dyn_cast<TypeAttr>(attr.getValue());
    if (!type || !isa<RankedTensorType>(type.getValue()))
      return emit() << "a ranked tensor type is expected, found "
                    << attr.getValue();
    return success();
  }
  if (name == kShardingAttr) {
    auto sharding = dyn_cast<ShardingAttr>(attr.getValue());
    if (!sharding)
      return emit() << "a #tp.sharding is expected, found " << attr.getValue();
    if (op->getNumResults() != 1)
      return emit() << "belongs on an op with one result; an op with "
                    << op->getNumResults() << " takes 'tp.shardings'";
    return verifySharding(
        sharding,
        getWholeType(op->getResult(0).getType(), op->getAttr(kGlobalTypeAttr)),
        op, emit);
  }
  if (name == kShardingsAttr) {
    auto list = dyn_cast<ArrayAttr>(attr.getValue());
    if (!list || list.size() != op->getNumResults())
      return emit() << "an array of " << op->getNumResults()
                    << " shardings is expected, one per result";
    for (auto [value, result] : llvm::zip(list, op->getResults())) {
      auto sharding = dyn_cast<ShardingAttr>(value);
      if (!sharding)
        return emit() << "a #tp.sharding is expected, found " << value;
      if (failed(verifySharding(sharding, result.getType(), op, emit)))
        return failure();
    }
    return success();
  }
  if (name == kRanksAttr) {
    if (!isa<FunctionOpInterface>(op) ||
        !isa<DenseI64ArrayAttr>(attr.getValue()))
      return emit() << "a list of ranks, array<i64: …>, on a function is "
                       "expected";
    return success();
  }
  if (name == kCopyOfAttr) {
    if (!isa<FunctionOpInterface>(op) ||
        !isa<FlatSymbolRefAttr>(attr.getValue()) || !op->hasAttr(kRanksAttr))
      return emit()
             << "must be the symbol of a function, on a function that has "
                "'tp.ranks'";
    return success();
  }
  if (name == kRedistributionsAttr) {
    if (!isa<FunctionOpInterface>(op) || !isa<ArrayAttr>(attr.getValue()))
      return emit() << "a list of redistributions on a function is expected";
    return success();
  }
  if (name == kArenaBytesAttr) {
    auto bytes = dyn_cast<IntegerAttr>(attr.getValue());
    if (!isa<ModuleOp>(op) || !bytes || !bytes.getType().isInteger(64))
      return emit() << "a number of bytes, an i64, on a module is expected";
    return success();
  }
  if (name == kReshardAttr) {
    if (!isa<RedistributeOp>(op) || !isa<UnitAttr>(attr.getValue()))
      return emit() << "a unit attribute on 'tp.redistribute' is expected";
    return success();
  }
  if (name == kFsdpGroupAttr) {
    if (!isa<StringAttr>(attr.getValue()))
      return emit() << "the FQN of a module, a string, is expected";
    return success();
  }
  if (name == kBufferAttr) {
    if (!isa<UnitAttr>(attr.getValue()))
      return emit() << "a unit attribute is expected";
    return success();
  }
  if (name == kPassAttr) {
    auto number = dyn_cast<IntegerAttr>(attr.getValue());
    if (!number || !number.getType().isInteger(64))
      return emit() << "the number of a pass over the model, an i64, is "
                       "expected";
    return success();
  }
  if (name == kIndexBoundAttr) {
    auto number = dyn_cast<IntegerAttr>(attr.getValue());
    if (!number || !number.getType().isInteger(64) || number.getInt() < 0)
      return emit() << "the number of rows of the global table, an i64, is "
                       "expected";
    return success();
  }
  return emit()
         << "unknown; the dialect has 'tp.sharding', 'tp.shardings', "
            "'tp.fqn', 'tp.global_type', 'tp.name', 'tp.ranks', 'tp.copy_of', "
            "'tp.redistributions', 'tp.arena_bytes', 'tp.reshard', "
            "'tp.fsdp_group', 'tp.pass', 'tp.buffer' and 'tp.index_bound'";
}

static LogicalResult verifyInterfaceAttr(Operation *op, Type type,
                                         Attribute globalType,
                                         NamedAttribute attr) {
  auto emit = [&]() { return emitAttrError(op, attr); };
  StringRef name = attr.getName();
  if (name == kShardingAttr) {
    auto sharding = dyn_cast<ShardingAttr>(attr.getValue());
    if (!sharding)
      return emit() << "a #tp.sharding is expected, found " << attr.getValue();
    return verifySharding(sharding, getWholeType(type, globalType), op, emit);
  }
  if (name == kNameAttr && isa<StringAttr>(attr.getValue()))
    return success();
  if ((name == kOpenAttr || name == kLossAttr) &&
      isa<UnitAttr>(attr.getValue()))
    return success();
  if (name == kGlobalTypeAttr && isa<TypeAttr>(attr.getValue()))
    return success();
  return emit() << "not an attribute of a function argument or result, or of "
                   "the wrong kind: "
                << attr.getValue();
}

LogicalResult TPDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                  unsigned argument,
                                                  NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return emitAttrError(op, attr) << "belongs on a function";
  if (attr.getName() == kBatchAttr)
    return verifyBatch(function, argument, attr.getValue(),
                       [&]() { return emitAttrError(op, attr); });
  return verifyInterfaceAttr(op, function.getArgumentTypes()[argument],
                             function.getArgAttr(argument, kGlobalTypeAttr),
                             attr);
}

LogicalResult TPDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                     unsigned result,
                                                     NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return emitAttrError(op, attr) << "belongs on a function";
  return verifyInterfaceAttr(op, function.getResultTypes()[result],
                             function.getResultAttr(result, kGlobalTypeAttr),
                             attr);
}
