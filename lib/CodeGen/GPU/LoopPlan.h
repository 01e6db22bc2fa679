//===- LoopPlan.h - Loops of a linalg op over threads -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_GPU_LOOPPLAN_H
#define TP_LIB_CODEGEN_GPU_LOOPPLAN_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::tp {

/// Bytes of the widest memory access.
constexpr int64_t kVectorBytes = 16;

/// The loops of a linalg.generic on buffers, as threads run them. It exists
/// before there is code, so that a kernel's blocks and threads can be chosen.
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

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_GPU_LOOPPLAN_H
