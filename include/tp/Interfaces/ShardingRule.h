//===- ShardingRule.h - Correspondence of an op's dimensions ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sharding rule says, once per op, which dimensions of operands and results
// correspond. Each independent extent is a *factor*; a tensor dimension is a
// product of factors, major to minor. Over one mesh dimension, an op runs
// replicated, is split along one factor, or passes a Partial through operands
// that it is linear in. The form follows Shardy's op sharding rules and einsum.
// Separate fields hold what einsum can't express (linearity, factors that must
// stay whole).
//
//===----------------------------------------------------------------------===//

#ifndef TP_INTERFACES_SHARDINGRULE_H
#define TP_INTERFACES_SHARDINGRULE_H

#include "mlir/IR/Operation.h"
#include "tp/Dialect/TP/Blocks.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::tp {

/// What happens to a result when a mesh dimension splits a factor.
enum class FactorKind {
  /// The factor is in the result: its dimension is split as well.
  Parallel,
  /// The factor is contracted: the result is a Partial over the mesh dimension.
  Reduction,
  /// The factor can't be split; operands are needed whole along it.
  Whole,
  /// The factor can be split, and the op's partition hook adds the few
  /// collectives that this needs. The results aren't Partial.
  Collective,
  /// The factor is the positions of windows, and can be split: ranks exchange
  /// what their windows need beyond their blocks (`ShardingRule::halos`).
  Halo,
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::Parallel;
  /// The kind of Partial that a split reduction factor gives.
  ReductionKind reduction = ReductionKind::Sum;
  /// The number of all-reduces that the partition hook adds for a split
  /// collective factor. Each has as many elements as the first operand has
  /// without the factor.
  int64_t reductions = 0;
  /// The results that are sums over a parallel factor, which is in other
  /// results: if it is split, they are Partial(sum).
  SmallVector<unsigned, 2> summedResults = {};
  /// The operands and results whose blocks pass from rank to rank along a split
  /// collective factor, whose blocks are all of one size. An operand's block
  /// visits all other ranks; a result's block also returns.
  SmallVector<unsigned, 2> circulatedOperands = {}, circulatedResults = {};
};

/// The factors of one tensor dimension, major to minor. An empty list means
/// that the dimension corresponds to nothing (a broadcast dimension of size 1).
using DimFactors = SmallVector<unsigned, 2>;
/// One entry per tensor dimension.
using TensorFactors = SmallVector<DimFactors, 4>;

/// Operands in which an op is jointly linear: when exactly these are
/// Partial(sum) over a mesh dimension, and all others are replicated over it,
/// the results are Partial(sum) over it.
using LinearSet = SmallVector<unsigned, 2>;

/// A dimension that corresponds to only a part of its factor, the elements
/// [start, start + size). The result of a slice is an example.
struct Window {
  bool isResult;
  unsigned tensor, dim;
  int64_t start, size;
};

/// The two dimensions of a halo factor, those of the windows' elements and of
/// the windows' positions. Each is split into blocks of its own size. Window p
/// consists of `extent` elements, from p * stride - padding on; some of them
/// may lie beyond the dimension's ends.
struct Halo {
  unsigned factor;
  unsigned operandDim, resultDim; ///< of operand 0 and of result 0
  int64_t operandSize, resultSize;
  int64_t stride, padding, extent;
  /// Whether the operand has the positions, and the result the elements.
  bool isTransposed = false;

  /// The operand's elements that `block` of the result depends on. They may
  /// reach beyond the dimension's ends.
  Interval getNeeded(Interval block) const;
  /// The padding of the op that computes `block` from what it needs.
  int64_t getLocalPadding(Interval block) const;
};

class ShardingRule {
public:
  SmallVector<Factor> factors;
  SmallVector<TensorFactors> operands;
  SmallVector<TensorFactors> results;
  SmallVector<LinearSet> linearSets;
  /// The number of linear sets, at the end of the list, that hold only if the
  /// other operands are counted on one rank. The op's partition hook ensures
  /// that.
  unsigned numOnce = 0;
  /// Dimensions with a window have one factor.
  SmallVector<Window> windows;
  SmallVector<Halo> halos;
  /// Pairs of factors: an op that depends on a batch or a sequence along the
  /// first factor may be split along the second one instead (`tp.batch`,
  /// `tp.sequence`).
  SmallVector<std::pair<unsigned, unsigned>> alternatives;
  /// The floating-point operations of an op that consists of several
  /// contractions; they don't follow from the factors.
  std::optional<double> flops;

  /// The window of a dimension; null if it corresponds to whole factors.
  const Window *getWindow(bool isResult, unsigned tensor, unsigned dim) const;

  /// The halo of a factor; null if the factor is of another kind.
  const Halo *getHalo(unsigned factor) const;
  /// The size of the dimension that a tensor's dimension `dim` is, or is a
  /// window of.
  int64_t getDimSize(bool isResult, unsigned tensor, unsigned dim) const;

  /// The rule written as an einsum over `op`'s operands and results, sizes
  /// taken from their types: `"(b.. k, n k, n) -> (b.. n)"`.
  ///
  ///   name      one dimension, one factor
  ///   name..    zero or more dimensions, aligned at the right as in NumPy's
  ///             broadcasting; dimensions of size 1 correspond to nothing where
  ///             another tensor has a larger size there
  ///   [a b]     one dimension made of the factors a (major) and b (minor);
  ///             a's size must be known from another tensor
  ///   1         a dimension that corresponds to nothing
  ///
  /// Entries beyond the op's operands (absent optional ones) are skipped: the
  /// entries name the ODS operands in order, and `present` says which of them
  /// the op has (empty: all). A factor that is in no result is a sum reduction,
  /// or whole if the result is boolean.
  static ShardingRule einsum(Operation *op, StringRef spec,
                             ArrayRef<bool> present = {});

  /// Elementwise with NumPy broadcasting.
  static ShardingRule elementwise(Operation *op);

  /// A reshape: factors are the common refinement of both shapes.
  static ShardingRule reshape(Operation *op);

  /// Nothing corresponds: the op runs replicated.
  static ShardingRule replicated(Operation *op);

  /// Marks the factors of dimension `dim` of result (or operand) 0 as whole.
  ShardingRule &wholeResultDim(int64_t dim);
  ShardingRule &wholeOperandDim(unsigned operand, int64_t dim);
  /// Marks the factors of dimension `dim` of result 0 as collective, of
  /// `reductions` all-reduces.
  ShardingRule &collectiveResultDim(int64_t dim, int64_t reductions);
  /// Marks the factor called `name` in the einsum as whole.
  ShardingRule &whole(StringRef name);
  /// The factor called `name` in the einsum; nullopt if there is none.
  std::optional<unsigned> getFactor(StringRef name) const;
  /// Gives the factor of dimension `halo.resultDim` of result 0 a halo.
  ShardingRule &halo(Halo halo);
  ShardingRule &linear(ArrayRef<LinearSet> sets);
  /// Adds sets that hold only if the operands that aren't in the set are
  /// counted on one rank.
  ShardingRule &linearOnce(ArrayRef<LinearSet> sets);

  /// The factors' names in the einsum, for messages; empty if the rule has
  /// none.
  SmallVector<std::string> names;

  /// Prints `([0][2], [1][2]) -> ([0][1]) {0=8, 1=10, 2=16} reduction={2}`; a
  /// factor 0 that results 1 and 2 are sums over as `summed={0: 1, 2}`; a
  /// window of factor 1 as `[1:4+2]`; the halo of factor 0 as `halo={0: 16 of 3
  /// by 2 from -1}`: 16 elements, windows of 3, a stride of 2, a padding of 1.
  void print(raw_ostream &os) const;
};

} // namespace mlir::tp

#endif // TP_INTERFACES_SHARDINGRULE_H
