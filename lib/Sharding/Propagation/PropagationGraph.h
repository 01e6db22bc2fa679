//===- PropagationGraph.h - Dataflow graph of a program ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Represents the program as nodes, which require and produce shardings, and
// values, which flow between nodes. A called function appears once per call. A
// region op has one node for each group of values that must be placed alike.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_PROPAGATION_PROPAGATIONGRAPH_H
#define TP_LIB_SHARDING_PROPAGATION_PROPAGATIONGRAPH_H

#include "Repetition.h"
#include "StrategySpace.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::tp::propagation {

/// The number of a scalar, which has no placement.
constexpr unsigned kNoValue = ~0u;

struct Use {
  unsigned node, operand;
  /// The function's instance that `at` is in.
  unsigned instance;
  OpOperand *at;
};

struct FlowValue {
  /// Null for the result that an op gives before it is redistributed to the
  /// placement that the IR fixes.
  Value value;
  RankedTensorType type;
  unsigned instance;
  /// The node that gives it, and the number of the node's result.
  unsigned node, result;
  /// How often it is computed and, if it moves, moved.
  int64_t weight;
  /// Whether it is computed from parameters alone.
  bool isParameter = false;
  SmallVector<Use, 1> uses = {};
};

struct Node {
  enum Kind {
    /// Runs by its rule.
    Compute,
    /// Requires and produces fixed shardings: `required` and `produced`.
    Fixed,
    /// tp.redistribute over some mesh dimensions.
    Over,
    /// tp.constraint; only passes values on until its priority's turn.
    Constraint,
    /// tp.propagation_barrier.
    Barrier,
  };
  Kind kind;
  unsigned instance;
  /// Null for nodes that aren't ops: arguments, and values that a region passes
  /// on.
  Operation *op = nullptr;
  unsigned rule = 0;
  ShardingAttr required = {}, produced = {};
  /// The values that it takes and gives.
  SmallVector<unsigned, 2> operands = {}, results = {};
};

/// A function, as one caller calls it.
struct Instance {
  func::FuncOp function;
  DenseMap<Value, unsigned> values{};
  SmallVector<std::pair<Operation *, unsigned>> callees{};
};

/// A repetition of which a graph contains only the first and the last layers.
/// The first of the last layers takes the values that the last of the first
/// layers gives.
struct ElidedLayers {
  Repetition repetition;
  /// The nodes of the layer before the elided ones: [before, begin), and of the
  /// layer behind them: [begin, end).
  unsigned before = 0, begin = 0, end = 0;
};

/// Where a mesh dimension splits the batch, or the sequence of context
/// parallelism, in a tensor or in an op's rule.
struct Batch {
  /// The dimension, or the factor.
  unsigned index;
  /// How often the batch is repeated one after the other: the size of the part
  /// that is major to it.
  int64_t numSegments;
  /// Index into the mesh dimensions of batch and sequence.
  unsigned axis;

  friend bool operator==(Batch a, Batch b) {
    return a.index == b.index && a.numSegments == b.numSegments &&
           a.axis == b.axis;
  }
};
/// A mesh dimension that splits the batch or the sequence.
struct BatchAxis {
  StringRef name;
  bool isSequence;
};
using Batches = SmallVector<Batch, 1>;

class Graph {
public:
  Graph(MeshOp mesh, StrategySpace &space)
      : mesh(mesh), meshRef(FlatSymbolRefAttr::get(mesh.getSymNameAttr())),
        space(space) {}

  /// Adds a root function and all functions that it calls; emits an error for
  /// code that can't be parallelized. If `elided` isn't null, only the first and
  /// last layers of its repetition are added, and its nodes are set.
  LogicalResult addRoot(func::FuncOp function, ElidedLayers *elided = nullptr);

  /// Finds the ops that depend on the batch or the sequence. Call it after all
  /// functions are added; from then on, getDomain keeps only strategies that
  /// split these ops along it, or along an alternative of their rules, where
  /// there are any.
  void followBatch();

  /// Emits an error for an op that has alternatives to the sequence, if its
  /// strategy isn't split along them, or the sequence, by all ranks.
  LogicalResult verifyAlternatives(
      llvm::function_ref<const Strategy &(unsigned)> getStrategy) const;

  /// The priorities of constraints, first to last; at least one.
  SmallVector<int64_t> getPriorities() const;

  /// Spreads fixed placements until nothing changes; constraints up to
  /// `priority` count as fixed.
  /// With `seedsSegments`, a tensor that slices cut into pieces may be split in
  /// these pieces, even if nothing in the program mentions such segments.
  void spread(int64_t priority, bool seedsSegments = false);

  /// The strategies of `node`, after `spread`: if `isExhaustive`, all
  /// strategies of its op, else those that spread to it. If `before` isn't
  /// null, only those that extend it.
  const Domain *getDomain(const Node &node, bool isExhaustive, int64_t priority,
                          const Strategy *before) const;

  std::vector<Node> nodes;
  std::vector<FlowValue> values;
  std::vector<Instance> instances;
  unsigned numOps = 0;

private:
  LogicalResult addFunction(func::FuncOp function, unsigned instance,
                            int64_t weight, ElidedLayers *elided = nullptr);
  LogicalResult addEndLayers(ElidedLayers &elided, unsigned instance);
  LogicalResult addBlock(Block &block, unsigned instance, int64_t weight);
  LogicalResult addOp(Operation *op, unsigned instance, int64_t weight);
  LogicalResult addRegionOp(RegionBranchOpInterface op, unsigned instance,
                            int64_t weight);
  LogicalResult addCall(CallOpInterface call, unsigned instance,
                        int64_t weight);
  LogicalResult addLocalView(Operation *op, unsigned instance, int64_t weight);
  void addComputeOp(Operation *op, unsigned rule, unsigned instance,
                    int64_t weight);
  LogicalResult addAssign(AssignOpInterface op, unsigned instance);

  unsigned addNode(Node node);
  unsigned addResult(unsigned node, Value value, unsigned instance,
                     int64_t weight);
  /// Adds `operand`, in `instance`, to the operands of `node`.
  void addUse(unsigned node, OpOperand &operand, unsigned instance);
  unsigned addFixed(unsigned instance, Operation *op, ShardingAttr required,
                    ShardingAttr produced);
  /// Adds a node that passes a tensor of `type` on, placed as `fixed` unless
  /// that is null. Without `mayBePartial`, for a program's arguments and
  /// results, it passes on no Partial unless that is fixed.
  unsigned addPassing(unsigned instance, Type type, ShardingAttr fixed,
                      bool mayBePartial = true);
  unsigned getValue(Value value, unsigned instance) const {
    return instances[instance].values.lookup(value);
  }
  ShardingAttr getReplicated(Type type) const;
  /// The states of a node's operands or results, by tensor of its rule. Scalars
  /// have none. For a node that only passes values on, the states of all values
  /// together.
  SmallVector<StateSetId, 4> getStates(const Node &node,
                                       ArrayRef<unsigned> of) const;
  const Spread &getSpread(const Node &node) const;
  /// Spreads states through `node` and adds the values whose states changed to
  /// `changed`. Returns whether doing it again would change nothing more.
  bool spreadNode(const Node &node, int64_t priority,
                  SmallVectorImpl<unsigned> &changed);
  void seedSegments();
  void findBehindBarriers();
  /// Whether the operands of `node` can be Partial, if `choice` passes a
  /// Partial on: an operand with another fixed placement can't.
  bool mayBeGiven(const Node &node, const SplitChoice &choice) const;
  const Domain *getAnyDomain(const Node &node, bool isExhaustive,
                             int64_t priority, const Strategy *before) const;
  const Domain *getOverDomain(const Node &node) const;
  const Domain *getConstraintDomain(const Node &node) const;
  /// The strategies that spread to `node`; if `before` isn't null, only those
  /// that extend it.
  const Domain *getSpreadDomain(const Node &node, const Spread &spread,
                                const Strategy *before) const;
  const Domain *getExhaustiveDomain(const Node &node,
                                    const Strategy *before) const;

  bool followBatchThrough(size_t node);
  ArrayRef<Batch> getBatchFactors(const Node &node) const;
  Batches getSplitFactors(const Node &node, unsigned axis) const;
  /// The choices over the mesh dimensions of the sequence along alternatives to
  /// it. They spread from nowhere.
  std::vector<SplitChoice> getAlternativeChoices(const Node &node) const;
  /// For each batch mesh dimension that can split `node` along the batch, keeps
  /// only the choices or strategies that do.
  void keepBatch(const Node &node, std::vector<SplitChoice> &choices) const;
  const Domain *keepBatch(const Node &node, const Domain *domain) const;

  MeshOp mesh;
  FlatSymbolRefAttr meshRef;
  StrategySpace &space;
  SymbolTableCollection symbols;
  /// The functions being added; a call of one of them is a recursion.
  llvm::SetVector<Operation *> active;
  /// The values of parameters, by instance and FQN.
  DenseMap<std::pair<unsigned, Attribute>, unsigned> parameters;
  /// Values between tp.to_local and tp.from_local, which are local to each
  /// rank.
  DenseSet<Value> locals;
  /// Indexed by value.
  std::vector<StateSetId> states;
  /// The mesh dimensions that split the batch or the sequence; the batch
  /// dimensions of each value; the batch factors of each node.
  SmallVector<BatchAxis, 2> batchAxes;
  std::vector<Batches> batchDims, batchFactors;
  /// For each node whose side of the graph ends at a barrier, by the node's
  /// number: all states that spread on that side.
  DenseMap<unsigned, StateSetId> behindBarriers;
};

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_PROPAGATIONGRAPH_H
