//===- ProgramMatcher.h - Per-rank programs against a reference -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds which values of the per-rank programs are blocks of which values of the
// reference, and their placements. The matcher begins at arguments and
// parameters, whose placements are given, and visits the programs in order:
//
// - A data movement keeps the value and changes its placement (BlockAlgebra.h).
// - Computation: when the operands of an op of the reference are known, the
//   matcher finds the splits that the op's rule allows for their placements.
//   For each split, the op's partition hook builds the per-rank ops. A per-rank
//   op that computes the same from the same values is the block of the op's
//   result.
//
// Values are compared by number (ValueNumbering.h), so a program may share,
// reorder or repeat computations. With several programs (`tp.ranks`), a value
// is known once all of them compute their block of it.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_PROGRAMMATCHER_H
#define TP_LIB_PROOF_PROGRAMMATCHER_H

#include "BlockAlgebra.h"
#include "ReferenceGraph.h"
#include "Regroup.h"
#include "SumOrders.h"
#include "ValueNumbering.h"
#include "ViewAlgebra.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Proof/Equivalence.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::tp {

class ProgramMatcher {
public:
  /// Adds forms of sums to `reference` as the programs need them.
  ProgramMatcher(ReferenceGraph &reference, ArrayRef<Program> programs,
                 MeshOp mesh);

  /// Matches as much as possible, and returns the first op that doesn't match,
  /// if any.
  std::optional<Mismatch> run();

  /// The number of ops of the first program that a rule proves, of other ops
  /// that a hook builds on the way to an op's result, and of data movements.
  int64_t numByRule = 0, numHelpers = 0, numMovements = 0;

private:
  using Number = ValueNumbering::Number;
  /// Indexed by program.
  using Numbers = SmallVector<Number, 1>;
  /// One value per program: the blocks of a value of the reference.
  struct Replica {
    ReferenceGraph::Id value;
    ShardingAttr sharding;
    Numbers numbers;
    bool operator==(const Replica &other) const {
      return value == other.value && sharding == other.sharding &&
             numbers == other.numbers;
    }
  };

  /// One value per program that holds the elements of a value of the reference,
  /// in another shape.
  struct ViewReplica {
    ReferenceGraph::Id value;
    View view;
    Numbers numbers;
  };

  std::optional<Mismatch> addArguments();
  std::optional<Mismatch> addParameter(nn::ParameterOp op);
  std::optional<Mismatch> checkParameter(nn::ParameterOp op, unsigned index);
  std::optional<Mismatch> checkResultAttributes(unsigned index);
  std::optional<Mismatch> checkEffects(Operation *op, unsigned program);
  std::optional<Mismatch> matchFirst();
  std::optional<Mismatch> matchOp(Operation *op);
  std::optional<Mismatch> matchRegions(RegionBranchOpInterface op);
  bool isSimilar(Operation *op, Operation *theirs);
  bool matchesScalars(Operation *op, Operation *theirs);
  static bool haveSameForm(Operation *op, Operation *theirs);
  static SmallVector<Value> getScalars(Operation *op);
  static ValueRange getPassed(Operation *from, RegionSuccessor to);
  void introduce(Value value, Value theirs, ShardingAttr sharding);
  ShardingAttr getWhole(int64_t rank);
  std::optional<Mismatch> matchReturn(Operation *op);
  std::optional<Mismatch> matchOther(unsigned program);
  static Operation *findFirst(func::FuncOp function, ValueRange values,
                              function_ref<bool(Operation *)> isWanted);
  std::optional<Mismatch> findCulprit(Value wrong);
  Mismatch explain(Operation *op);

  void collectAxes();
  void add(Replica replica);
  void drain();
  void expand(Operation *op, const Replica *trigger);
  void expandWith(Operation *op, ArrayRef<const Replica *> operands);
  void expandSplit(ShardingRuleOpInterface op, const OpSplit &split,
                   ArrayRef<const Replica *> operands);
  void addUnreduced(Value value, unsigned index, const Replica &result,
                    std::optional<Replica> &before,
                    const DenseMap<Value, Number> &numbers);
  void expandAlike(Operation *op, ArrayRef<const Replica *> operands);
  void expect(Replica replica);
  void addCounterparts(Numbers numbers);
  void move(Operation *op, const Replica &from);
  void notePartial(const Replica &replica);
  bool regroup();
  void reorderSums();
  void addPartialZeros(const Replica &zero);
  void count();
  ArrayRef<ViewReplica> getViews(Value value);
  ArrayRef<AxisRefAttr> getMovementAxes(Value value);
  SmallVector<AxisRefAttr> getCuts(Value value, ShardingAttr sharding);
  LogicalResult follow(Operation *op, ViewReplica &view);
  bool followViews(Value value);
  bool isOfView(Operation *op) const;
  std::optional<SmallVector<RankedTensorType, 1>>
  getLocalTypes(RankedTensorType global, ShardingAttr sharding);
  Number number(Operation *op, const DenseMap<Value, Number> &numbers,
                unsigned draw = 0);
  /// The number of the next op of a program; updates `numDraws`, its draws so
  /// far.
  Number numberNext(Operation *op, const DenseMap<Value, Number> &numbers,
                    DenseMap<Number, unsigned> &numDraws);
  Value getPlaceholder(Number number, Type type);

  ReferenceGraph &reference;
  ArrayRef<Program> programs;
  MeshOp mesh;
  BlockAlgebra algebra;
  ValueNumbering numbering;
  /// The axes and segments that occur in the first program's placements.
  SmallVector<AxisRefAttr> axes;
  SmallVector<ArrayRef<int64_t>> segments;
  /// The types of all values of the first program.
  DenseSet<Type> types;

  /// The replicas that the first program has, and those that it will have if it
  /// computes a number.
  std::vector<std::unique_ptr<Replica>> replicas;
  DenseMap<ReferenceGraph::Id, SmallVector<const Replica *, 2>> byValue;
  DenseMap<Number, SmallVector<const Replica *, 2>> byNumber;
  DenseMap<Number, SmallVector<Replica, 1>> expected;
  SmallVector<const Replica *> pending;
  /// The values that hooks build on the way to their results, and those that
  /// the first program has computed so far.
  DenseSet<Number> helpers, computed;
  /// What the other programs may compute if the first one computes a number.
  /// There are several alternatives if values are equal in the first program
  /// only.
  using Alternatives = SmallVector<Numbers, 1>;
  Alternatives getAlternatives(Value value, Value theirs,
                               ShardingAttr sharding);
  class OtherProgram;
  /// The alternatives of each collective.
  DenseMap<Number, Alternatives> counterparts;
  /// The data movements of the first program so far, by the number of the value
  /// that they move.
  DenseMap<Number, SmallVector<Operation *, 1>> movements;
  /// The views requested so far, by value of the first program; and the values
  /// that have a view.
  DenseMap<Value, SmallVector<ViewReplica, 1>> views;
  DenseSet<Value> viewed;
  DenseMap<Value, SmallVector<AxisRefAttr>> movementAxes;
  /// Other forms of sums, by the Partial of their leaves.
  llvm::MapVector<ArrayRef<PartialAttr>, Regrouping> sums;
  /// The sums of the first program that aren't matched yet, in order.
  SmallVector<Operation *> unknownSums;
  SumOrders sumOrders;
  DenseMap<Value, Number> firstNumbers;
  /// How many equal draws the first program has made.
  DenseMap<Number, unsigned> numDraws;
  SmallVector<Alternatives> issued, returned;
  /// A matched loop or branch of the first program; and how many collectives
  /// were issued before it, and up to the end of each of its regions.
  struct MatchedRegions {
    RegionBranchOpInterface op;
    SmallVector<size_t, 3> numIssued;
  };
  SmallVector<MatchedRegions> matchedRegions;
  /// The values that they pass on: first their scalars, then those of each
  /// edge between regions.
  std::vector<SmallVector<Alternatives, 1>> passed;
  /// The names of values that regions define, by value of the first program.
  DenseMap<Value, StringAttr> regionValues;
  /// The collectives whose numbers are in `issued`.
  SmallVector<CollectiveOpInterface> firstCollectives;

  /// The placements of values that regions define, and the reference's ops with
  /// regions that are matched.
  DenseMap<Value, ShardingAttr> arrivedAs;
  DenseSet<Operation *> usedRegionOps;
  /// The ops of the programs that are matched with them.
  DenseSet<Operation *> matchedRegionOps;
  DenseMap<StringAttr, ShardingAttr> parameterPlacements;

  /// The block in which hooks build. Its arguments stand for the programs'
  /// values.
  OwningOpRef<ModuleOp> scratchModule;
  Block *scratch;
  DenseMap<Number, Value> placeholders;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_PROGRAMMATCHER_H
