//===- ThreadLoops.h - linalg ops by many threads ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work of a team of threads for an op of a kernel. LoopPlan describes it
// before there is code, so that a kernel's blocks and threads can be chosen;
// ThreadLoops writes the code.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_CODEGEN_GPU_THREADLOOPS_H
#define TP_LIB_CODEGEN_GPU_THREADLOOPS_H

#include "CodeGen/Loops/Loops.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::tp {

constexpr int64_t kWarpSize = 32;
/// Bytes of the widest memory access.
constexpr int64_t kVectorBytes = 16;
/// Bytes of static shared memory that a block has on any device.
constexpr int64_t kMaxSharedBytes = 48 * 1024;

/// The loops of a linalg.generic on buffers, as threads run them.
struct LoopPlan {
  /// Consecutive loops of the op that traverse every buffer like one loop.
  struct Loop {
    SmallVector<unsigned> dims;
    int64_t size;
  };
  /// An operand that is a buffer, with its stride for each of the op's loops.
  struct Access {
    OpOperand *operand;
    SmallVector<int64_t> strides; ///< in elements
    int64_t offset;               ///< of the first element
    bool isVector;                ///< `lanes` elements are one access
    /// How many elements one access loads along the tile's rows; 0 if the
    /// operand isn't transposed.
    int64_t tileLanes = 0;
  };
  /// What a block computes at a time if operands are transposed, that is,
  /// contiguous along a loop other than the results' innermost one. A tile of
  /// each transposed operand goes through shared memory.
  struct Tile {
    unsigned loop;         ///< of `parallel`
    int64_t rows, columns; ///< iterations of that loop, and of the innermost
  };

  linalg::GenericOp op;
  llvm::SmallBitVector isFixed; ///< loops that don't run here
  SmallVector<Loop> parallel, reduction;
  int64_t parallelSize = 1, reductionSize = 1;
  SmallVector<Access> accesses;
  /// How many iterations of the innermost shared loop a thread handles at a
  /// time.
  int64_t lanes = 1;
  std::optional<Tile> tile;
  /// For each result, the op that joins two partial results; empty unless each
  /// result has one commutative op.
  SmallVector<Operation *> combiners;

  /// `isFixed`: the loops whose iteration is the same for the whole team.
  static FailureOr<LoopPlan> get(linalg::GenericOp op,
                                 llvm::SmallBitVector isFixed);

  /// Whether the team shares the reduction; else each thread reduces alone.
  bool isTeamReduction() const {
    return reductionSize > 1 && parallelSize == 1 && !combiners.empty();
  }
  /// How many threads could share the work.
  int64_t getNumParts() const {
    return (isTeamReduction() ? reductionSize : parallelSize) / lanes;
  }
  /// The access of `operand`; null if it isn't a buffer.
  const Access *getAccess(const OpOperand &operand) const;

  /// Chooses tiles for an op whose loops are all parallel and run by blocks.
  void chooseTile();
  /// The loops over tiles, each of which counts as one iteration.
  SmallVector<Loop> getTiles() const;
};

/// The alignment of `buffer`'s first element, in elements: a power of two, and
/// at most 64 bytes.
int64_t getAlignment(Value buffer);

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
