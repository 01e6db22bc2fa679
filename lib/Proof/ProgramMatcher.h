//===- ProgramMatcher.h - Per-rank programs against a reference -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which values of the per-rank programs are blocks of which values of the
// reference, and how placed. It begins at arguments and parameters, which say
// so, and follows the programs in order:
//
// - data movement keeps the value and changes its placement (BlockAlgebra.h);
// - computation: whenever operands of one of the reference's ops are known, the
//   splits that its rule allows for their placements are looked up and the op's
//   partition hook builds what each rank has to run then. A per-rank op that
//   computes the same, from the same values, is the block of the op's result.
//
// Equal is decided by numbers (ValueNumbering.h), so that a program may share,
// reorder or repeat computations. A value of several programs (`tp.ranks`) is
// known when all of them compute theirs.
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
  /// `reference` gets forms of its sums as the programs have need of them.
  ProgramMatcher(ReferenceGraph &reference, ArrayRef<Program> programs,
                 MeshOp mesh);

  /// Matches everything that can be; the first thing that can't be, if any.
  std::optional<Mismatch> run();

  /// Ops of the first program that a rule proves, those among them that only
  /// help another (a hook built several), and data movements followed.
  int64_t numByRule = 0, numHelpers = 0, numMovements = 0;

private:
  using Number = ValueNumbering::Number;
  /// By program.
  using Numbers = SmallVector<Number, 1>;
  /// Values of the programs that are the blocks of one of the reference's.
  struct Replica {
    ReferenceGraph::Id value;
    ShardingAttr sharding;
    Numbers numbers;
    bool operator==(const Replica &other) const {
      return value == other.value && sharding == other.sharding &&
             numbers == other.numbers;
    }
  };

  /// Values of the programs that hold the elements of one of the reference's,
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
  /// Of the next op of a program that has made `numDraws` draws.
  Number numberNext(Operation *op, const DenseMap<Value, Number> &numbers,
                    DenseMap<Number, unsigned> &numDraws);
  Value getPlaceholder(Number number, Type type);

  ReferenceGraph &reference;
  ArrayRef<Program> programs;
  MeshOp mesh;
  BlockAlgebra algebra;
  ValueNumbering numbering;
  /// What the first program's placements are made of.
  SmallVector<AxisRefAttr> axes;
  SmallVector<ArrayRef<int64_t>> segments;
  /// The types of all values of the first program.
  DenseSet<Type> types;

  /// Replicas that the first program has, and those that it would have if it
  /// computed this number.
  std::vector<std::unique_ptr<Replica>> replicas;
  DenseMap<ReferenceGraph::Id, SmallVector<const Replica *, 2>> byValue;
  DenseMap<Number, SmallVector<const Replica *, 2>> byNumber;
  DenseMap<Number, SmallVector<Replica, 1>> expected;
  SmallVector<const Replica *> pending;
  /// What hooks build on the way to their results, and what the first program
  /// has computed so far.
  DenseSet<Number> helpers, computed;
  /// What the other programs may compute where the first one computes a number:
  /// several things, where the first one's happen to be equal.
  using Alternatives = SmallVector<Numbers, 1>;
  Alternatives getAlternatives(Value value, Value theirs,
                               ShardingAttr sharding);
  class OtherProgram;
  /// Of collectives.
  DenseMap<Number, Alternatives> counterparts;
  /// The data movements of the first program so far, by what they move.
  DenseMap<Number, SmallVector<Operation *, 1>> movements;
  /// What was asked for, by the first program's values; and those of which
  /// there is any.
  DenseMap<Value, SmallVector<ViewReplica, 1>> views;
  DenseSet<Value> viewed;
  DenseMap<Value, SmallVector<AxisRefAttr>> movementAxes;
  /// By the Partial that their leaves have: other forms of sums.
  llvm::MapVector<ArrayRef<PartialAttr>, Regrouping> sums;
  /// The sums of the first program that aren't known, in order.
  SmallVector<Operation *> unknownSums;
  SumOrders sumOrders;
  DenseMap<Value, Number> firstNumbers;
  /// How many equal draws it has made.
  DenseMap<Number, unsigned> numDraws;
  SmallVector<Alternatives> issued, returned;
  /// Of the loops and branches of the first program that are matched, in order,
  /// and how many collectives were issued before each and in it, up to the end
  /// of each region.
  struct MatchedRegions {
    RegionBranchOpInterface op;
    SmallVector<size_t, 3> numIssued;
  };
  SmallVector<MatchedRegions> matchedRegions;
  /// What they pass on: first their scalars, then what goes each way.
  std::vector<SmallVector<Alternatives, 1>> passed;
  /// What values that regions make are called, by the first program's.
  DenseMap<Value, StringAttr> regionValues;
  /// The collectives that `issued` has the numbers of.
  SmallVector<CollectiveOpInterface> firstCollectives;

  /// How values that regions make are placed, and which of the reference's ops
  /// with regions are taken.
  DenseMap<Value, ShardingAttr> arrivedAs;
  DenseSet<Operation *> usedRegionOps;
  /// Ops of the programs that are matched with them.
  DenseSet<Operation *> matchedRegionOps;
  DenseMap<StringAttr, ShardingAttr> parameterPlacements;

  /// Where hooks build. Its arguments stand for the programs' values.
  OwningOpRef<ModuleOp> scratchModule;
  Block *scratch;
  DenseMap<Number, Value> placeholders;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_PROGRAMMATCHER_H
