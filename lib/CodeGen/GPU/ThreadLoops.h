//===- ThreadLoops.h - linalg ops by many threads ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a team of threads does for an op of a kernel. LoopPlan says it before
// any code is there, so that a kernel's blocks and threads can be chosen;
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
/// Of the widest access to memory.
constexpr int64_t kVectorBytes = 16;
/// Of static shared memory in a block, on any device.
constexpr int64_t kMaxSharedBytes = 48 * 1024;

/// The loops of a linalg.generic on buffers, as threads run them.
struct LoopPlan {
  /// Consecutive loops of the op that walk every buffer as one.
  struct Loop {
    SmallVector<unsigned> dims;
    int64_t size;
  };
  /// An operand that is a buffer: what a step of each of the op's loops moves.
  struct Access {
    OpOperand *operand;
    SmallVector<int64_t> strides; ///< in elements
    int64_t offset;               ///< of the first element
    bool isVector;                ///< `lanes` elements are one access
    /// How many elements one access loads along the tile's rows; 0 where it
    /// isn't transposed.
    int64_t tileLanes = 0;
  };
  /// What a block computes at a time where operands are transposed: they are
  /// contiguous along a loop that isn't the results' innermost one. A tile of
  /// each goes through shared memory.
  struct Tile {
    unsigned loop;         ///< of `parallel`
    int64_t rows, columns; ///< iterations of that loop, and of the innermost
  };

  linalg::GenericOp op;
  llvm::SmallBitVector isFixed; ///< loops that don't run here
  SmallVector<Loop> parallel, reduction;
  int64_t parallelSize = 1, reductionSize = 1;
  SmallVector<Access> accesses;
  /// How many iterations of the innermost shared loop one thread has at a time.
  int64_t lanes = 1;
  std::optional<Tile> tile;
  /// What joins two partial results, for each result; empty where that isn't
  /// one commutative op.
  SmallVector<Operation *> combiners;

  /// `isFixed`: the loops whose iteration the team as a whole has.
  static FailureOr<LoopPlan> get(linalg::GenericOp op,
                                 llvm::SmallBitVector isFixed);

  /// Whether the team shares the reduction; else each thread reduces alone.
  bool isTeamReduction() const {
    return reductionSize > 1 && parallelSize == 1 && !combiners.empty();
  }
  /// How many threads could have a part.
  int64_t getNumParts() const {
    return (isTeamReduction() ? reductionSize : parallelSize) / lanes;
  }
  /// The access of `operand`; null where it is no buffer.
  const Access *getAccess(const OpOperand &operand) const;

  /// Decides on tiles for an op whose loops are all parallel, run by blocks.
  void chooseTile();
  /// The loops, of which tiles count as one iteration.
  SmallVector<Loop> getTiles() const;
};

/// The largest number of elements, a power of two of at most 64 bytes, to whose
/// multiples `buffer`'s first element is aligned.
int64_t getAlignment(Value buffer);

/// The threads that work on one row, and what they know.
struct Team {
  int64_t size = 1; ///< a power of two within a block, else any number
  Value thread;     ///< 0 … size-1
  /// Where a block has several teams: how many, which this is, and whether
  /// thread `row + teams * thread` of the block is the team's `thread`, rather
  /// than thread `size * row + thread`.
  int64_t teams = 1;
  Value row;
  bool isInterleaved = false;
  Value isActive; ///< i1, whether it has a row; null: it does
};

/// Writes ops one after the other at the builder's place. All threads of a
/// block come here together.
class ThreadLoops {
public:
  ThreadLoops(OpBuilder &b, gpu::GPUFuncOp kernel, Team team)
      : b(b), kernel(kernel), team(team) {}

  /// Writes `plan.op`; `fixed` is the iteration of its fixed loops, by loop,
  /// and `mapping` what the kernel has in place of what the op uses.
  LogicalResult write(const LoopPlan &plan, ArrayRef<Value> fixed,
                      const IRMapping &mapping);

  /// The same for an op with tiles, of which this block has number `tile`.
  void writeTile(const LoopPlan &plan, Value tile, const IRMapping &mapping);

  /// Says that `buffer`, of one element, is each thread's own: it needs no
  /// memory.
  void addRegister(Value buffer) { registers.insert(buffer); }

  /// A buffer for each team, in shared memory, that stands for `type`.
  Value createShared(MemRefType type);

private:
  /// A buffer as one dimension.
  struct Flat {
    Value buffer;
    Value offset; ///< of the fixed loops; null: 0
  };
  /// Which thread touches which element.
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
  Flat flatten(const LoopPlan &plan, const LoopPlan::Access &access,
               ArrayRef<Value> fixed, const IRMapping &mapping);
  Value getAddress(const LoopPlan &plan, const LoopPlan::Access &access,
                   const Flat &flat, ArrayRef<Value> parallel,
                   ArrayRef<Value> reduction);
  SmallVector<Value> load(const LoopPlan::Access &access, const Flat &flat,
                          Value address, int64_t laneStride, int64_t lanes);
  void store(const LoopPlan::Access &access, const Flat &flat, Value address,
             ArrayRef<Value> values);
  /// One iteration for each lane from `firstLane` on; `arguments` are the
  /// block's, by lane, and so are the results.
  SmallVector<Value> writeBody(const LoopPlan &plan,
                               ArrayRef<SmallVector<Value>> arguments,
                               ArrayRef<Value> fixed, ArrayRef<Value> parallel,
                               ArrayRef<Value> reduction, int64_t firstLane,
                               const IRMapping &mapping);
  /// The ops of the body, for each lane; a loop that all lanes run alike is
  /// one.
  void writeLanes(Block::OpListType::iterator first,
                  Block::OpListType::iterator last,
                  MutableArrayRef<IRMapping> lanes,
                  llvm::function_ref<Value(unsigned, unsigned)> getIteration);
  void writeElements(const LoopPlan &plan, ArrayRef<Value> fixed,
                     const IRMapping &mapping);
  /// The elements at `parallel`; `known` are operands that are loaded already.
  void writePart(const LoopPlan &plan, ArrayRef<Value> fixed,
                 ArrayRef<Value> parallel, ArrayRef<Flat> flats,
                 const DenseMap<OpOperand *, SmallVector<Value>> &known,
                 const IRMapping &mapping);
  /// Enters the branch where `coordinate`, with what follows it, is below
  /// `size`, if it may not be.
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
  Value getValue(const LoopPlan &plan, OpOperand &operand,
                 ArrayRef<Value> fixed, const IRMapping &mapping);

  OpBuilder &b;
  gpu::GPUFuncOp kernel;
  Team team;
  DenseSet<Value> registers;
  /// What buffers of one element hold, where all threads know it.
  DenseMap<Value, Value> scalars;
  SmallVector<Touch> touches; ///< since the last barrier
};

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_GPU_THREADLOOPS_H
