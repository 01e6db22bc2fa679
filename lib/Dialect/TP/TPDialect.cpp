//===- TPDialect.cpp - The tp dialect -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"
#include "tp/Dialect/TP/ArenaUse.h"
#include "tp/Dialect/TP/Batch.h"
#include "tp/Dialect/TP/ConstantBuffers.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Dialect/TP/Programs.h"
#include "tp/Dialect/TP/SparseRows.h"
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
  addOperations<
#define GET_OP_LIST
#include "tp/Dialect/TP/PipelineOps.cpp.inc"
      >();
  addInterfaces<TPInlinerInterface, TPAsmInterface>();
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

/// A discardable attribute of the dialect.
struct DiscardableAttr {
  StringLiteral name;
  /// What the verifier accepts, as the subject of "… is expected".
  StringLiteral expected;
  /// Whether `value` is valid on `op`; null if the attribute belongs on
  /// arguments and results of functions only.
  bool (*isValidOn)(Operation *op, Attribute value);
  /// Whether `value` is valid on an argument or result of a function; null if
  /// the attribute belongs on ops only.
  bool (*isValidOnBoundary)(Attribute value) = nullptr;
};

template <typename AttrT>
static bool hasKind(Attribute value) {
  return isa<AttrT>(value);
}

static bool isTensorType(Attribute value) {
  auto type = dyn_cast<TypeAttr>(value);
  return type && isa<RankedTensorType>(type.getValue());
}
static bool isTensorType(Operation *, Attribute value) {
  return isTensorType(value);
}

static bool isStringArray(Attribute value) {
  auto array = dyn_cast<ArrayAttr>(value);
  return array && llvm::all_of(array, llvm::IsaPred<StringAttr>);
}

template <typename AttrT>
static bool isOnAnyOp(Operation *, Attribute value) {
  return isa<AttrT>(value);
}

template <typename OpT, typename AttrT>
static bool isOn(Operation *op, Attribute value) {
  return isa<OpT>(op) && isa<AttrT>(value);
}

static bool isI64(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isInteger(64);
}

static bool hasOnePerResult(Operation *op, Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  return list && list.size() == op->getNumResults() &&
         llvm::all_of(list, llvm::IsaPred<ShardingAttr>);
}

/// TPDialect.td describes them.
static constexpr DiscardableAttr discardableAttrs[] = {
    {kShardingAttr, "a #tp.sharding", isOnAnyOp<ShardingAttr>,
     hasKind<ShardingAttr>},
    {kShardingsAttr, "an array of #tp.sharding, one per result,",
     hasOnePerResult},
    {kFqnAttr, "a string", isOnAnyOp<StringAttr>},
    {kGlobalTypeAttr, "a ranked tensor type", isTensorType, isTensorType},
    {kOpenAttr, "a unit attribute", nullptr, hasKind<UnitAttr>},
    {kBatchAttr, "an array of names of mesh dimensions", nullptr,
     hasKind<ArrayAttr>},
    {kSequenceAttr, "an array of names of mesh dimensions", nullptr,
     hasKind<ArrayAttr>},
    {kNameAttr, "a string", isOnAnyOp<StringAttr>, hasKind<StringAttr>},
    {kSymbolicShapeAttr, "an array of strings", nullptr, isStringArray},
    {kLossAttr, "a unit attribute", nullptr, hasKind<UnitAttr>},
    {kRanksAttr, "a list of ranks, array<i64: …>, on a function",
     isOn<FunctionOpInterface, DenseI64ArrayAttr>},
    {kCopyOfAttr, "the symbol of a function, on a function with 'tp.ranks',",
     [](Operation *op, Attribute value) {
       return isOn<FunctionOpInterface, FlatSymbolRefAttr>(op, value) &&
              op->hasAttr(kRanksAttr);
     }},
    {kStageAttr, "the number of a stage, an i64 of at least 0,",
     [](Operation *, Attribute value) {
       return isI64(value) && cast<IntegerAttr>(value).getInt() >= 0;
     }},
    {kStageOfAttr, "the symbol of a function, on a function with 'tp.ranks',",
     [](Operation *op, Attribute value) {
       return isOn<FunctionOpInterface, FlatSymbolRefAttr>(op, value) &&
              op->hasAttr(kRanksAttr);
     }},
    {kAbsentAttr, "a unit attribute", nullptr, hasKind<UnitAttr>},
    {kRedistributionsAttr, "a list of redistributions on a function",
     isOn<FunctionOpInterface, ArrayAttr>},
    {kConstantsAttr, "an array of strings on a module",
     [](Operation *op, Attribute value) {
       return isa<ModuleOp>(op) && isStringArray(value);
     }},
    {kArenaBytesAttr, "a number of bytes, an i64, on a module",
     [](Operation *op, Attribute value) {
       return isa<ModuleOp>(op) && isI64(value);
     }},
    {kArenaUseAttr, "what tp-predict-memory writes, on a module,",
     [](Operation *op, Attribute value) {
       return isa<ModuleOp>(op) && ArenaUse::fromAttr(value);
     }},
    {kReshardAttr, "a unit attribute on 'tp.redistribute'",
     isOn<RedistributeOp, UnitAttr>},
    {kFsdpGroupAttr, "the FQN of a module, a string,", isOnAnyOp<StringAttr>},
    {kPassAttr, "the number of a pass over the model, an i64,",
     [](Operation *, Attribute value) { return isI64(value); }},
    {kBufferAttr, "a unit attribute", isOnAnyOp<UnitAttr>},
    {kSparseRowsAttr, "a unit attribute on 'tp.all_to_all'",
     isOn<AllToAllOp, UnitAttr>},
    {kIndexBoundAttr, "the number of rows of the global table, an i64,",
     [](Operation *, Attribute value) {
       return isI64(value) && cast<IntegerAttr>(value).getInt() >= 0;
     }},
};

static InFlightDiagnostic emitAttrError(Operation *op, NamedAttribute attr) {
  return op->emitOpError() << "attribute '" << attr.getName().getValue()
                           << "': ";
}

/// The attribute's entry, or null with a diagnostic that lists all attributes.
static const DiscardableAttr *findAttr(Operation *op, NamedAttribute attr) {
  const auto *found =
      llvm::find_if(discardableAttrs, [&](const DiscardableAttr &entry) {
        return entry.name == attr.getName().getValue();
      });
  if (found != std::end(discardableAttrs))
    return found;
  InFlightDiagnostic diagnostic = emitAttrError(op, attr);
  diagnostic << "unknown; the dialect has ";
  llvm::interleave(
      discardableAttrs,
      [&](const DiscardableAttr &entry) {
        diagnostic << "'" << entry.name << "'";
      },
      [&]() { diagnostic << ", "; });
  return nullptr;
}

/// The type that a sharding refers to: for a rank's block, an attribute has the
/// global type.
static Type getWholeType(Type type, Attribute globalType) {
  auto whole = dyn_cast_or_null<TypeAttr>(globalType);
  return whole ? whole.getValue() : type;
}

LogicalResult TPDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attr) {
  auto emit = [&]() { return emitAttrError(op, attr); };
  const DiscardableAttr *entry = findAttr(op, attr);
  if (!entry)
    return failure();
  if (!entry->isValidOn)
    return emit() << "belongs on an argument or result of a function";
  if (!entry->isValidOn(op, attr.getValue()))
    return emit() << entry->expected << " is expected, found "
                  << attr.getValue();
  if (entry->name == kShardingAttr) {
    // An op without results, as an assignment, has it for its operand.
    bool isSink = op->getNumResults() == 0 && op->getNumOperands() == 1;
    if (op->getNumResults() != 1 && !isSink)
      return emit() << "belongs on an op with one result; an op with "
                    << op->getNumResults() << " takes 'tp.shardings'";
    Value value = isSink ? op->getOperand(0) : op->getResult(0);
    Type type = getWholeType(value.getType(), op->getAttr(kGlobalTypeAttr));
    return verifySharding(cast<ShardingAttr>(attr.getValue()), type, op, emit);
  }
  if (entry->name == kShardingsAttr)
    for (auto [sharding, result] : llvm::zip_equal(
             cast<ArrayAttr>(attr.getValue()).getAsRange<ShardingAttr>(),
             op->getResults()))
      if (failed(verifySharding(sharding, result.getType(), op, emit)))
        return failure();
  return success();
}

/// Verifies an attribute of an argument or result of type `type`.
static LogicalResult verifyBoundaryAttr(Operation *op, Type type,
                                        Attribute globalType,
                                        NamedAttribute attr) {
  auto emit = [&]() { return emitAttrError(op, attr); };
  const DiscardableAttr *entry = findAttr(op, attr);
  if (!entry)
    return failure();
  if (!entry->isValidOnBoundary)
    return emit() << "not an attribute of a function argument or result";
  if (!entry->isValidOnBoundary(attr.getValue()))
    return emit() << entry->expected << " is expected, found "
                  << attr.getValue();
  if (entry->name == kShardingAttr)
    return verifySharding(cast<ShardingAttr>(attr.getValue()),
                          getWholeType(type, globalType), op, emit);
  if (entry->name == kSymbolicShapeAttr) {
    size_t numSizes = cast<ArrayAttr>(attr.getValue()).size();
    auto shaped = dyn_cast<ShapedType>(type);
    if (!shaped || !shaped.hasRank() ||
        static_cast<size_t>(shaped.getRank()) != numSizes)
      return emit() << "has " << numSizes << " sizes for type " << type;
  }
  return success();
}

LogicalResult TPDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                  unsigned argument,
                                                  NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return emitAttrError(op, attr) << "belongs on a function";
  if (attr.getName() == kBatchAttr || attr.getName() == kSequenceAttr)
    return verifyBatch(function, argument, attr.getValue(),
                       [&]() { return emitAttrError(op, attr); });
  return verifyBoundaryAttr(op, function.getArgumentTypes()[argument],
                            function.getArgAttr(argument, kGlobalTypeAttr),
                            attr);
}

LogicalResult TPDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                     unsigned result,
                                                     NamedAttribute attr) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return emitAttrError(op, attr) << "belongs on a function";
  if (attr.getName() == kBatchAttr || attr.getName() == kSequenceAttr)
    return emitAttrError(op, attr) << "belongs on an argument of a function";
  return verifyBoundaryAttr(op, function.getResultTypes()[result],
                            function.getResultAttr(result, kGlobalTypeAttr),
                            attr);
}
