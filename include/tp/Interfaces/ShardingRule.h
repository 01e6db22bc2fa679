//===- ShardingRule.h - How an op's dimensions correspond -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sharding rule says, once per op, which dimensions of operands and results
// run together. Each independent extent is a *factor*; a tensor dimension is a
// product of factors, major to minor. Over one mesh dimension an op either runs
// replicated, or is split along one factor, or passes a Partial value through
// operands that it is linear in. The form follows Shardy's op sharding rules
// and einsum; the pieces that einsum can't say (linearity, factors that must
// stay whole) stand beside it.
//
//===----------------------------------------------------------------------===//

#ifndef TP_INTERFACES_SHARDINGRULE_H
#define TP_INTERFACES_SHARDINGRULE_H

#include "mlir/IR/Operation.h"
#include "tp/Dialect/TP/TPEnums.h"
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
  /// The factor can be split, and the results are whole on every rank: the op's
  /// partition hook adds the few collectives that it takes.
  Collective,
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::Parallel;
  /// The Partial that a split reduction factor gives.
  ReductionKind reduction = ReductionKind::Sum;
  /// How many all-reduces the partition hook takes for a split collective
  /// factor, each of as many elements as the first operand has without it.
  int64_t reductions = 0;
};

/// The factors of one tensor dimension, major to minor. An empty list is a
/// dimension that corresponds to nothing (a broadcast dimension of size 1).
using DimFactors = SmallVector<unsigned, 2>;
/// One entry per tensor dimension.
using TensorFactors = SmallVector<DimFactors, 4>;

/// Operands in which an op is jointly linear: when exactly these are
/// Partial(sum) over a mesh dimension, and all others are replicated over it,
/// the results are Partial(sum) over it.
using LinearSet = SmallVector<unsigned, 2>;

/// A dimension that corresponds to a part of its factor only: elements
/// [start, start + size), as the result of a slice does.
struct Window {
  bool isResult;
  unsigned tensor, dim;
  int64_t start, size;
};

class ShardingRule {
public:
  SmallVector<Factor> factors;
  SmallVector<TensorFactors> operands;
  SmallVector<TensorFactors> results;
  SmallVector<LinearSet> linearSets;
  /// How many of the linear sets, the last ones, hold only if the other operands
  /// count on one rank: the op's partition hook sees to it.
  unsigned numOnce = 0;
  /// Dimensions with a window have one factor.
  SmallVector<Window> windows;
  /// Floating-point operations of an op that is several contractions, which the
  /// factors don't tell.
  std::optional<double> flops;

  /// The window of a dimension; null where it corresponds to whole factors.
  const Window *getWindow(bool isResult, unsigned tensor, unsigned dim) const;

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
  /// entries name the ODS operands in order and `present` says which are there
  /// (empty: all). A factor that is in no result is a sum reduction,
  /// or whole where the result is boolean.
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
  ShardingRule &linear(ArrayRef<LinearSet> sets);
  /// Further sets, in which the operands that aren't in a set count once.
  ShardingRule &linearOnce(ArrayRef<LinearSet> sets);

  /// einsum names of the factors, for messages; empty where a rule has none.
  SmallVector<std::string> names;

  /// Prints `([0][2], [1][2]) -> ([0][1]) {0=8, 1=10, 2=16} reduction={2}`; a
  /// window of factor 1 as `[1:4+2]`.
  void print(raw_ostream &os) const;
};

} // namespace mlir::tp

#endif // TP_INTERFACES_SHARDINGRULE_H
