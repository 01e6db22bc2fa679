//===- TP.h - The tp dialect ------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_DIALECT_TP_TP_H
#define TP_DIALECT_TP_TP_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/TP/Dataflow.h"

#include "tp/Dialect/TP/TPDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "tp/Dialect/TP/TPAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "tp/Dialect/TP/TPTypes.h.inc"

namespace mlir::tp {
/// Orders collectives among themselves; see TP_CommResource.
struct CommResource : public SideEffects::Resource::Base<CommResource> {
  StringRef getName() final { return "tp.comm"; }
};
} // namespace mlir::tp

namespace mlir::tp {
class MeshOp;
/// The group that `axes` span around `rank`, without `rank` itself.
SmallVector<int64_t> getOtherMembers(AxisListAttr axes, int64_t rank,
                                     MeshOp &mesh);
} // namespace mlir::tp

#include "tp/Dialect/TP/TPInterfaces.h.inc"

#define GET_OP_CLASSES
#include "tp/Dialect/TP/TPOps.h.inc"

namespace mlir::tp {

/// Names of the discardable attributes.
constexpr StringLiteral kShardingAttr = "tp.sharding";
constexpr StringLiteral kShardingsAttr = "tp.shardings";
constexpr StringLiteral kFqnAttr = "tp.fqn";
/// On a lookup in this rank's rows: the number of rows of the global table.
/// Out-of-range indices are reported against this number.
constexpr StringLiteral kIndexBoundAttr = "tp.index_bound";
constexpr StringLiteral kGlobalTypeAttr = "tp.global_type";
constexpr StringLiteral kNameAttr = "tp.name";
/// On arguments and results: the global sizes in the model's symbols.
constexpr StringLiteral kSymbolicShapeAttr = "tp.symbolic_shape";
/// On a result: the loss of a training step. On an argument: its target.
constexpr StringLiteral kLossAttr = "tp.loss";
/// On tp.redistribute: the backward pass redistributes again instead of keeping
/// the forward pass's result.
constexpr StringLiteral kReshardAttr = "tp.reshard";
/// On arguments and results: the propagation chooses the placement.
constexpr StringLiteral kOpenAttr = "tp.open";
/// On a function: the ranks that run it, if not all ranks run the same
/// function.
constexpr StringLiteral kRanksAttr = "tp.ranks";
/// On a function: the costs of its redistributions (docs/Report.md).
constexpr StringLiteral kRedistributionsAttr = "tp.redistributions";
/// On a module: the size in bytes of its programs' arena.
constexpr StringLiteral kArenaBytesAttr = "tp.arena_bytes";

/// Verifies the constraints of `#tp.sharding` for a tensor of type `type`.
/// `mesh` is the sharding's mesh, null if there is none of its name. Without
/// it, the mesh is looked up from `from`.
LogicalResult verifySharding(ShardingAttr sharding, Type type, MeshOp mesh,
                             function_ref<InFlightDiagnostic()> emitError);
LogicalResult verifySharding(ShardingAttr sharding, Type type, Operation *from,
                             function_ref<InFlightDiagnostic()> emitError);

/// DTensor's spelling, one entry per mesh dimension:
/// "(Shard(0), Replicate, Partial(sum))".
std::string printPlacements(ShardingAttr sharding, MeshOp mesh);
/// The same as a list of strings.
SmallVector<std::string> getPlacements(ShardingAttr sharding, MeshOp mesh);

/// Bytes that each rank receives from others in `op`, by rank; 0 for ranks that
/// don't run the function that `op` is in.
SmallVector<int64_t> getReceivedBytesByRank(CollectiveOpInterface op,
                                            MeshOp mesh);
/// Sets `bytes` of `op` to the number of bytes that the rank that receives most
/// receives.
void setCollectiveBytes(CollectiveOpInterface op, MeshOp mesh);

/// Looks up the mesh called `mesh` from `from`; null if there is none. With
/// `symbols`, symbol tables are built only once.
MeshOp lookupMesh(Operation *from, FlatSymbolRefAttr mesh);
MeshOp lookupMesh(Operation *from, FlatSymbolRefAttr mesh,
                  SymbolTableCollection &symbols);

/// The FQN of the module that `op` comes from; empty if it isn't known.
StringRef getFqn(Operation *op);

/// The kinds of collectives, sorted; see
/// CollectiveOpInterface::getCollectiveKind.
SmallVector<StringRef> getCollectiveKinds();

} // namespace mlir::tp

#endif // TP_DIALECT_TP_TP_H
