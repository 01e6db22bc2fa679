//===- PropagationGraph.h - What flows where --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program as nodes that need and give placements, and values that flow
// between them. A called function is there once per call; a region op has one
// node for each group of values that must be placed alike.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_SHARDING_PROPAGATION_PROPAGATIONGRAPH_H
#define TP_LIB_SHARDING_PROPAGATION_PROPAGATIONGRAPH_H

#include "Repetition.h"
#include "StrategySpace.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "tp/Dialect/NN/NN.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::tp::propagation {

/// The number of a value that isn't placed: of a scalar.
constexpr unsigned kNoValue = ~0u;

struct Use {
  unsigned node, operand;
  /// The function's instance that `at` is in.
  unsigned instance;
  OpOperand *at;
};

struct FlowValue {
  /// Null for what an op gives before it is redistributed to what the IR fixes.
  Value value;
  RankedTensorType type;
  unsigned instance;
  /// The node that gives it, as which result.
  unsigned node, result;
  /// How often it is computed, and moved if it is.
  int64_t weight;
  /// Whether it is computed from parameters alone.
  bool isParameter = false;
  SmallVector<Use, 1> uses = {};
};

struct Node {
  enum Kind {
    /// Runs by its rule.
    Compute,
    /// Needs `needs` and gives `gives`.
    Fixed,
    /// tp.redistribute over some mesh dimensions.
    Over,
    /// tp.constraint; passes on before its priority's turn.
    Constraint,
    /// tp.propagation_barrier.
    Barrier,
  };
  Kind kind;
  unsigned instance;
  /// Null for what isn't an op: arguments, what a region passes on.
  Operation *op = nullptr;
  unsigned rule = 0;
  ShardingAttr needs = {}, gives = {};
  /// Values that it gives and takes.
  SmallVector<unsigned, 2> operands = {}, results = {};
};

/// A function, as one caller has it.
struct Instance {
  func::FuncOp function;
  DenseMap<Value, unsigned> values{};
  SmallVector<std::pair<Operation *, unsigned>> callees{};
};

/// Where the batch is in a tensor, or in an op's rule.
struct Batch {
  /// The dimension, or the factor.
  unsigned index;
  /// How often it is there, one after the other: the size of what is major to
  /// it.
  int64_t numSegments;

  friend bool operator==(Batch a, Batch b) {
    return a.index == b.index && a.numSegments == b.numSegments;
  }
};
using Batches = SmallVector<Batch, 1>;

class Graph {
public:
  Graph(MeshOp mesh, StrategySpace &space)
      : mesh(mesh), meshRef(FlatSymbolRefAttr::get(mesh.getSymNameAttr())),
        space(space) {}

  /// Adds a function that nobody calls, and all that it calls; emits what can't
  /// be parallelised. Of the parts that its block repeats, where `repetition`
  /// isn't null, only the first and the last kMargin are there, as if they
  /// followed each other.
  LogicalResult addRoot(func::FuncOp function,
                        const Repetition *repetition = nullptr);
  static constexpr unsigned kMargin = 2;

  /// Finds the ops that depend on the batch, once all functions are there: from
  /// then on getDomain has what splits them along it.
  void followBatch();

  /// The priorities of constraints, first to last; at least one.
  SmallVector<int64_t> getPriorities() const;

  /// Spreads what is fixed until nothing changes; constraints up to `priority`
  /// count.
  void spread(int64_t priority);

  /// The strategies of `node`, after `spread`: all that its op has, or those
  /// that spread to it; only those that extend `before`, where that isn't null.
  const Domain *getDomain(const Node &node, bool isExhaustive, int64_t priority,
                          const Strategy *before) const;

  std::vector<Node> nodes;
  std::vector<FlowValue> values;
  std::vector<Instance> instances;
  unsigned numOps = 0;
  /// The first node of each part that is there, and the one after the last.
  SmallVector<unsigned> partNodes;

private:
  LogicalResult addFunction(func::FuncOp function, unsigned instance,
                            int64_t weight,
                            const Repetition *repetition = nullptr);
  LogicalResult addBlock(Block &block, unsigned instance, int64_t weight);
  LogicalResult addOps(ArrayRef<Operation *> ops, unsigned instance);
  LogicalResult addParts(const Repetition &repetition, unsigned instance);
  LogicalResult addOp(Operation *op, unsigned instance, int64_t weight);
  LogicalResult addRegionOp(RegionBranchOpInterface op, unsigned instance,
                            int64_t weight);
  LogicalResult addCall(CallOpInterface call, unsigned instance,
                        int64_t weight);
  LogicalResult addLocalView(Operation *op, unsigned instance, int64_t weight);
  void addComputeOp(Operation *op, unsigned rule, unsigned instance,
                    int64_t weight);
  LogicalResult addAssign(nn::AssignOp op, unsigned instance);

  unsigned addNode(Node node);
  unsigned addResult(unsigned node, Value value, unsigned instance,
                     int64_t weight);
  /// `operand`, in `instance`, is what `node` takes.
  void addUse(unsigned node, OpOperand &operand, unsigned instance);
  unsigned addFixed(unsigned instance, Operation *op, ShardingAttr needs,
                    ShardingAttr gives);
  /// A node that passes a tensor of `type` on, as `fixed` unless that is null.
  /// What a program takes and gives may not be Partial unless that is fixed.
  unsigned addPassing(unsigned instance, Type type, ShardingAttr fixed,
                      bool mayBePartial = true);
  unsigned getValue(Value value, unsigned instance) const {
    return instances[instance].values.lookup(value);
  }
  ShardingAttr getReplicated(Type type) const;
  /// The states of a node's operands or results by tensor of its rule: none for
  /// scalars, all together where the node only passes values on.
  SmallVector<StateSetId, 4> getStates(const Node &node,
                                       ArrayRef<unsigned> of) const;
  const Spread &getSpread(const Node &node) const;
  /// Spreads what `node` does, and adds the values whose states changed.
  /// Whether nothing more would change if it were done again.
  bool spreadNode(const Node &node, int64_t priority,
                  SmallVectorImpl<unsigned> &changed);
  void findBehindBarriers();
  /// Whether the operands of `node` may be Partial where `choice` passes one
  /// on: what is fixed otherwise isn't.
  bool mayBeGiven(const Node &node, const SplitChoice &choice) const;
  const Domain *getAnyDomain(const Node &node, bool isExhaustive,
                             int64_t priority, const Strategy *before) const;

  bool followBatchThrough(size_t node);
  ArrayRef<Batch> getBatchFactors(const Node &node) const;
  /// Leaves what splits `node` along the batch over each mesh dimension that
  /// can.
  void keepBatch(const Node &node, std::vector<SplitChoice> &choices) const;
  const Domain *keepBatch(const Node &node, const Domain *domain) const;

  MeshOp mesh;
  FlatSymbolRefAttr meshRef;
  StrategySpace &space;
  SymbolTableCollection symbols;
  /// Functions being added: calls among them would never end.
  llvm::SetVector<Operation *> active;
  /// Where parameters are, by instance and FQN.
  DenseMap<std::pair<unsigned, Attribute>, unsigned> parameters;
  /// Values between tp.to_local and tp.from_local, each rank's own.
  DenseSet<Value> locals;
  /// By value.
  std::vector<StateSetId> states;
  /// Mesh dimensions that split the batch; which dimensions are the batch by
  /// value, and which factors by node.
  SmallVector<StringRef, 2> batchAxes;
  std::vector<Batches> batchDims, batchFactors;
  /// Of nodes whose side of the graph ends at a barrier, by number: all that
  /// spread on that side.
  DenseMap<unsigned, StateSetId> behindBarriers;
};

} // namespace mlir::tp::propagation

#endif // TP_LIB_SHARDING_PROPAGATION_PROPAGATIONGRAPH_H
