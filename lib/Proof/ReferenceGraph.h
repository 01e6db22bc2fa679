//===- ReferenceGraph.h - The values of the reference -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_PROOF_REFERENCEGRAPH_H
#define TP_LIB_PROOF_REFERENCEGRAPH_H

#include "ValueNumbering.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::tp {

/// Whether `op` only says where its operand lives: the identity.
bool isPlacementOnly(Operation *op);

/// Whether the proof follows the values that `op` passes into its regions,
/// round them and out.
bool hasFollowedRegions(Operation *op);

/// A function of global values. Equal computations are one value, and what only
/// says where a value lives (`tp.redistribute`) is none.
class ReferenceGraph {
public:
  /// Modules and calls must be inlined. `withParts`: ops that reduce along a
  /// dimension and go on, as norms do, are also what they consist of, with the
  /// same result. That is what their partition hook builds for one rank.
  explicit ReferenceGraph(func::FuncOp function, bool withParts = false);

  using Id = unsigned;
  struct Entry {
    Value value; // the first of those that are equal
    SmallVector<Operation *, 2> users;
    /// Whether ranks have different values of it: a block between `tp.to_local`
    /// and `tp.from_local`.
    bool isLocal = false;
    /// Of users that are no forms, the first, and how many there are.
    Operation *firstUser = nullptr;
    unsigned numUsers = 0;
    bool isReturned = false;

    /// The op that uses the value, if it is one and the value isn't returned;
    /// forms left out.
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
  /// Which one of equal draws `op` is.
  unsigned getDraw(Operation *op) const { return draws.lookup(op); }
  /// What the function returns.
  ArrayRef<Id> getResults() const { return results; }
  /// Ops without operands, parameters left out.
  ArrayRef<Operation *> getSources() const { return sources; }
  /// Whether what an op consists of is looked at, too.
  bool hasParts() const { return withParts; }

  /// Where forms of the function's ops are built.
  Block *getFormBlock() const { return parts.get().getBody(); }
  /// Whether `op` is none of the function itself.
  bool isForm(Operation *op) const { return op->getBlock() == getFormBlock(); }
  /// Adds an op that was built at the end of the block of forms, unless an
  /// equal one is there. If `same` is given, that is what it computes.
  bool addForm(Operation *op, Value same = {});

  /// Ops with regions that are followed into, in order.
  ArrayRef<Operation *> getRegionOps() const { return regionOps; }

private:
  Id add(Value value, ValueNumbering::Number number);
  void addBlock(Block &block, bool isLocal = false);
  bool addOp(Operation *op);
  void addParts(Operation *op);
  bool addBuilt(ShardingRuleOpInterface op, const OpSplit &split);

  func::FuncOp function;
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
  /// Where forms are built, by hooks with a mesh of one rank.
  OwningOpRef<ModuleOp> parts;
  MeshOp single;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_REFERENCEGRAPH_H
