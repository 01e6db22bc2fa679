//===- ThreadLoops.h - linalg ops by many threads ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the code of a team of threads for an op of a kernel, which a LoopPlan
// describes.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_CODEGEN_GPU_THREADLOOPS_H
#define TP_LIB_CODEGEN_GPU_THREADLOOPS_H

#include "CodeGen/Loops/Loops.h"
#include "LoopPlan.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::tp {

constexpr int64_t kWarpSize = 32;
/// Bytes of static shared memory that a block has on any device.
constexpr int64_t kMaxSharedBytes = 48 * 1024;

/// The threads that work on one row, and how they are numbered.
struct Team {
  int64_t size = 1; ///< a power of two within a block, else any number
  Value thread;     ///< 0 … size-1
  /// If a block has several teams: their number, the number of this team, and
  /// whether the team's `thread` is thread `row + teams * thread` of the block
  /// instead of thread `size * row + thread`.
  int64_t teams = 1;
  Value row;
  bool isInterleaved = false;
  Value isActive; ///< i1, whether it has a row; null: it does
};

/// Writes ops one after the other at the builder's insertion point, which all
/// threads of a block reach together.
class ThreadLoops {
public:
  ThreadLoops(OpBuilder &b, gpu::GPUFuncOp kernel, Team team)
      : b(b), kernel(kernel), team(team) {}

  /// Writes `plan.op`. `fixed` has the iterations of its fixed loops, by loop;
  /// `mapping` maps the values that the op uses to those of the kernel.
  LogicalResult write(const LoopPlan &plan, ArrayRef<Value> fixed,
                      const IRMapping &mapping);

  /// Like `write`, for an op with tiles; this block has tile number `tile`.
  void writeTile(const LoopPlan &plan, Value tile, const IRMapping &mapping);

  /// Declares that each thread has its own `buffer` of one element, which then
  /// needs no memory.
  void addRegister(Value buffer) { registers.insert(buffer); }

  /// Creates a buffer of `type` for each team, in shared memory.
  Value createShared(MemRefType type);

private:
  /// A buffer seen as one-dimensional.
  struct Flat {
    Value buffer;
    Value offset; ///< of the fixed loops; null: 0
  };
  /// An access to a buffer: which thread touches which element.
  struct Touch {
    Value root;
    bool isWrite;
    SmallVector<int64_t> assignment; ///< empty: unlike any other
    Value buffer;
  };
  using Coordinates = SmallVector<Value>;

  Value addToBlock(MemRefType type);
  Value constant(int64_t value);
  Value add(Value x, Value y);
  Value scale(Value x, int64_t factor);
  std::pair<scf::ForOp, Value> enterLoop(Value first, int64_t count,
                                         int64_t step, ValueRange inits = {});
  Coordinates delinearize(Value index, ArrayRef<LoopPlan::Loop> loops);
  Flat flatten(const LoopPlan::Access &access, ArrayRef<Value> fixed,
               const IRMapping &mapping);
  Value getAddress(const LoopPlan &plan, const LoopPlan::Access &access,
                   const Flat &flat, ArrayRef<Value> parallel,
                   ArrayRef<Value> reduction);
  SmallVector<Value> load(const LoopPlan::Access &access, const Flat &flat,
                          Value address, int64_t laneStride, int64_t lanes);
  void store(const Flat &flat, Value address, ArrayRef<Value> values);
  /// Writes one iteration for each lane from `firstLane` on. `arguments` are
  /// the block's arguments, by lane; the results are by lane too.
  SmallVector<Value> writeBody(const LoopPlan &plan,
                               ArrayRef<SmallVector<Value>> arguments,
                               ArrayRef<Value> fixed, ArrayRef<Value> parallel,
                               ArrayRef<Value> reduction, int64_t firstLane,
                               const IRMapping &mapping);
  /// Writes the ops of the body for each lane. Lanes share a loop that all of
  /// them run alike.
  void writeLanes(Block::OpListType::iterator first,
                  Block::OpListType::iterator last,
                  MutableArrayRef<IRMapping> lanes,
                  llvm::function_ref<Value(unsigned, unsigned)> getIteration);
  /// Writes a load of adjacent elements in adjacent lanes as one access.
  void loadLanes(memref::LoadOp load, MutableArrayRef<IRMapping> lanes);
  void writeElements(const LoopPlan &plan, ArrayRef<Value> fixed,
                     const IRMapping &mapping);
  /// Writes the elements at `parallel`; `known` has operands that are already
  /// loaded.
  void writePart(const LoopPlan &plan, ArrayRef<Value> fixed,
                 ArrayRef<Value> parallel, ArrayRef<Flat> flats,
                 const DenseMap<OpOperand *, SmallVector<Value>> &known,
                 const IRMapping &mapping);
  /// Enters a branch for `coordinate` < `size`, unless `isAlways` says that
  /// this always holds.
  void enterInside(Value coordinate, int64_t size, bool isAlways);
  void writeScalars(const LoopPlan &plan, ArrayRef<Value> fixed,
                    const IRMapping &mapping);
  SmallVector<Value>
  writeReduction(const LoopPlan &plan, ArrayRef<Value> inits, Value first,
                 int64_t step, ArrayRef<Value> fixed, ArrayRef<Value> parallel,
                 ArrayRef<Flat> flats, const IRMapping &mapping);
  Value reduceOverTeam(Value value, Operation *combiner);
  Value shuffle(Value value, int64_t mask);
  Value combine(Operation *combiner, Value x, Value y);
  void separate(const LoopPlan &plan, const IRMapping &mapping);
  Value getScalarKey(Value buffer);
  Value getValue(OpOperand &operand, const IRMapping &mapping);

  OpBuilder &b;
  gpu::GPUFuncOp kernel;
  Team team;
  DenseSet<Value> registers;
  /// The contents of one-element buffers that all threads know.
  DenseMap<Value, Value> scalars;
  SmallVector<Touch> touches; ///< since the last barrier
};

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_GPU_THREADLOOPS_H
