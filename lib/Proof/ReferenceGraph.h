//===- ReferenceGraph.h - The values of the reference -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_REFERENCEGRAPH_H
#define TP_LIB_PROOF_REFERENCEGRAPH_H

#include "ValueNumbering.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Interfaces/TensorBuilder.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::tp {

/// Whether `op` only places its operand and otherwise is the identity.
bool isPlacementOnly(Operation *op);

/// Whether the proof follows the values that `op` passes into, between and out
/// of its regions.
bool hasFollowedRegions(Operation *op);

/// The values of a function on global values. Equal computations are one value;
/// an op that only places a value (`tp.redistribute`) makes no new one.
class ReferenceGraph {
public:
  /// Modules and calls must be inlined. `withParts`: for an op that reduces
  /// along a dimension and then continues, such as a norm, the graph also has
  /// the ops that it consists of, with the same result. They are the ops that
  /// its partition hook builds for one rank.
  explicit ReferenceGraph(func::FuncOp function, bool withParts = false);

  using Id = unsigned;
  struct Entry {
    Value value; // the first of those that are equal
    SmallVector<Operation *, 2> users;
    /// Whether it differs between ranks: a block between `tp.to_local` and
    /// `tp.from_local`.
    bool isLocal = false;
    /// The first of the users that aren't forms, and their number.
    Operation *firstUser = nullptr;
    unsigned numUsers = 0;
    bool isReturned = false;

    /// The only user that isn't a form; null if there are several or the value
    /// is returned.
    Operation *getOnlyUser() const {
      return numUsers == 1 && !isReturned ? firstUser : nullptr;
    }
  };

  func::FuncOp getFunction() { return function; }
  Id getId(Value value) const { return ids.lookup(value); }
  const Entry &get(Id id) const { return entries[id]; }
  RankedTensorType getType(Id id) const {
    return dyn_cast<RankedTensorType>(entries[id].value.getType());
  }
  /// The parameter of this name, if the function has it.
  std::optional<Id> getParameter(StringRef fqn) const;
  /// The position of `op` among equal draws.
  unsigned getDraw(Operation *op) const { return draws.lookup(op); }
  /// What the function returns.
  ArrayRef<Id> getResults() const { return results; }
  /// Ops without operands, except parameters.
  ArrayRef<Operation *> getSources() const { return sources; }
  /// Whether the graph also has the ops that an op consists of.
  bool hasParts() const { return withParts; }

  /// Builds what forms need beside the ops that they are forms of.
  const TensorBuilder &getTensors() const { return tensors; }
  /// The block in which forms of the function's ops are built.
  Block *getFormBlock() const { return parts.get().getBody(); }
  /// Whether `op` is a form, instead of an op of the function itself.
  bool isForm(Operation *op) const { return op->getBlock() == getFormBlock(); }
  /// Adds an op that was built at the end of the block of forms, unless the
  /// graph has an equal one. `same`, if given, is the value that it computes.
  bool addForm(Operation *op, Value same = {});

  /// Ops whose regions the proof follows, in order.
  ArrayRef<Operation *> getRegionOps() const { return regionOps; }

private:
  Id add(Value value, ValueNumbering::Number number);
  void addBlock(Block &block, bool isLocal = false);
  bool addOp(Operation *op);
  void addParts(Operation *op);
  bool addBuilt(ShardingRuleOpInterface op, const OpSplit &split);

  func::FuncOp function;
  const TensorBuilder &tensors;
  ValueNumbering numbering;
  DenseMap<Operation *, unsigned> draws;
  DenseMap<ValueNumbering::Number, unsigned> numDraws;
  DenseMap<Value, Id> ids;
  DenseMap<ValueNumbering::Number, Id> byNumber;
  std::vector<ValueNumbering::Number> numbers; // by id
  std::vector<Entry> entries;
  llvm::StringMap<Id> parameters;
  SmallVector<Id> results;
  SmallVector<Operation *> sources, regionOps;

  bool withParts;
  /// The module in which hooks build forms, with a mesh of one rank.
  OwningOpRef<ModuleOp> parts;
  MeshOp single;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_REFERENCEGRAPH_H
