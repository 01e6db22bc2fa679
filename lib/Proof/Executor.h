//===- Executor.h - Execution over exact numbers ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs one rank's program, or a reference, over the numbers of ExactScalars.h.
// linalg, tensor, arith, math, scf and func ops are interpreted by their
// structure (indexing maps, bodies, regions); an nn op is executed as its
// lowering to linalg. So no nn op has a second definition here.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PROOF_EXECUTOR_H
#define TP_LIB_PROOF_EXECUTOR_H

#include "ScalarCode.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/TP.h"
#include <memory>

namespace mlir::tp::exact {

/// Row-major.
struct Tensor {
  SmallVector<int64_t> shape;
  std::vector<Scalar> data;
};

/// A tensor, or a scalar.
struct Datum {
  std::shared_ptr<const Tensor> tensor;
  Scalar scalar = {};
};

/// Steps `index` through all of `shape` in row-major order; false at the end.
bool advance(SmallVectorImpl<int64_t> &index, ArrayRef<int64_t> shape);

/// The elements of one dimension at these positions, in this order.
Datum take(const Datum &from, int64_t dim, ArrayRef<Interval> positions);
/// A tensor of zeros.
std::shared_ptr<Tensor> makeTensor(RankedTensorType type);
/// Concatenates tensors, at least one, along `dim`.
Datum concat(ArrayRef<Datum> parts, int64_t dim);

/// The state that the machines of one run share.
struct Session {
  Session(MeshOp mesh, int64_t budget)
      : context(mesh.getContext()), mesh(mesh), budget(budget) {}

  MLIRContext *context;
  MeshOp mesh;
  /// The scalar operations that may still be executed; a run that needs more
  /// stops.
  int64_t budget;
  Interpretation meaning;
  /// A rank's block of a parameter; has no tensor if the op isn't such a block.
  llvm::function_ref<Datum(Operation *, int64_t rank)> getParameter;

  /// Why and where the run can't continue; empty while it can.
  std::string error;
  std::optional<Location> errorLoc;
  /// The blocks that any machine has run.
  DenseSet<Block *> entered;
  /// Ops with an index that is out of range.
  struct OutOfRange {
    Operation *op;
    int64_t bound, index;
  };
  SmallVector<OutOfRange> outOfRange;

  LogicalResult fail(Operation *op, const Twine &text);
  void clearError() {
    error.clear();
    errorLoc.reset();
  }
  LogicalResult spend(Operation *op, int64_t operations);
  /// If `index`, of `op`, is negative or not below `bound`, records that, and
  /// sets it to 0 so that the run can continue.
  LogicalResult keepInRange(Operation *op, int64_t &index, int64_t bound);
  /// The function that the nn op `op` is lowered to; null if there is none.
  func::FuncOp getLowered(Operation *op);

private:
  OwningOpRef<ModuleOp> lowered;
  DenseMap<Attribute, func::FuncOp> byOp;
};

/// One rank's state. Runs until a collective needs the others.
class Machine {
public:
  Machine(Session &session, func::FuncOp function, int64_t rank,
          ArrayRef<Datum> arguments);

  enum class Status { Failed, Waiting, Finished };
  /// Starts, or continues with the result of the collective that it waited for.
  Status run(const Datum *received = nullptr);

  Operation *getCollective() const { return collective; }
  Datum get(Value value) const { return values.lookup(value); }
  bool has(Value value) const { return values.contains(value); }
  ArrayRef<Datum> getResults() const { return results; }
  /// Sets a value beforehand; the op that computes it is skipped.
  void set(Value value, Datum datum) { values[value] = std::move(datum); }

private:
  struct Frame {
    Block::iterator next;
    Operation *owner; // null: the function's own
    int64_t step = 0, upper = 0, induction = 0;
  };
  LogicalResult evaluate(Operation *op);
  LogicalResult evaluateScalars(Operation *op, const ScalarCode &code);
  LogicalResult evaluateLowered(Operation *op);
  LogicalResult enter(Operation *op);
  LogicalResult leave(Operation *terminator);
  LogicalResult enterBlock(Block &block, Operation *owner,
                           ArrayRef<Datum> arguments);
  LogicalResult slice(LocalSliceOp op);
  SmallVector<Datum> getAll(ValueRange range) const;
  LogicalResult assign(ValueRange range, ArrayRef<Datum> data);

  Session &session;
  int64_t rank;
  DenseMap<Value, Datum> values;
  SmallVector<Frame> frames;
  SmallVector<Datum> results;
  Operation *collective = nullptr;
};

/// Evaluate linalg and tensor ops; on failure, the session has the error. `get`
/// returns operands and captured values.
using GetDatum = llvm::function_ref<Datum(Value)>;
FailureOr<SmallVector<Datum>> evaluateLinalg(Session &session,
                                             linalg::LinalgOp op, GetDatum get);
/// nullopt if `op` isn't supported.
std::optional<FailureOr<Datum>> evaluateTensor(Session &session, Operation *op,
                                               GetDatum get);
/// Reduces contributions, tensors with elements of type `element`. The result
/// has no tensor if their shapes differ.
Datum reduceParts(Session &session, ArrayRef<Datum> parts, ReductionKind kind,
                  Type element);
/// The results, by rank, of a collective; `ops` are the ranks' ops.
FailureOr<SmallVector<Datum>> evaluateCollective(Session &session,
                                                 ArrayRef<Operation *> ops,
                                                 ArrayRef<Datum> operands);

/// Runs all ranks' programs. Returns the machines, by rank, if all finish.
/// `functions` and `arguments` are by rank.
FailureOr<std::vector<std::unique_ptr<Machine>>>
runRanks(Session &session, ArrayRef<func::FuncOp> functions,
         ArrayRef<SmallVector<Datum>> arguments);

} // namespace mlir::tp::exact

#endif // TP_LIB_PROOF_EXECUTOR_H
