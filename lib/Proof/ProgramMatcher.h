//===- ProgramMatcher.h - Per-rank programs against a reference -*- C++ -*-===//
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
#include "ValueNumbering.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Proof/Equivalence.h"

namespace mlir::tp {

class ProgramMatcher {
public:
  ProgramMatcher(const ReferenceGraph &reference, ArrayRef<Program> programs,
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

  std::optional<Mismatch> addArguments();
  std::optional<Mismatch> addParameter(Operation *op);
  std::optional<Mismatch> matchFirst();
  std::optional<Mismatch> matchOp(Operation *op);
  std::optional<Mismatch> matchRegions(RegionBranchOpInterface op);
  bool isSimilar(Operation *op, Operation *theirs);
  bool matchesScalars(Operation *op, Operation *theirs);
  void introduce(Value value, Value theirs, ShardingAttr sharding);
  ShardingAttr getWhole(int64_t rank);
  std::optional<Mismatch> matchReturn(Operation *op);
  std::optional<Mismatch> matchOther(unsigned program);
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
  void move(Operation *op, Number operand);
  std::optional<SmallVector<RankedTensorType, 1>>
  getLocalTypes(RankedTensorType global, ShardingAttr sharding);
  Number number(Operation *op, const DenseMap<Value, Number> &numbers);
  Value getPlaceholder(Number number, Type type);

  const ReferenceGraph &reference;
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
  /// Of collectives.
  DenseMap<Number, Alternatives> counterparts;
  DenseMap<Value, Number> firstNumbers;
  SmallVector<Alternatives> issued, returned;
  /// The collectives that `issued` has the numbers of.
  SmallVector<CollectiveOpInterface> firstCollectives;

  /// How values that regions make are placed, and which of the reference's ops
  /// with regions are taken.
  DenseMap<Value, ShardingAttr> arrivedAs;
  DenseSet<Operation *> usedRegionOps;

  /// Where hooks build. Its arguments stand for the programs' values.
  OwningOpRef<ModuleOp> scratchModule;
  Block *scratch;
  DenseMap<Number, Value> placeholders;
};

} // namespace mlir::tp

#endif // TP_LIB_PROOF_PROGRAMMATCHER_H
