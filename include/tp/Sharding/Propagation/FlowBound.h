//===- FlowBound.h - Bounds for values that flow between ops ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each op has candidates, each value is moved from where its op gives it to
// where its uses want it, and uses that want the same share what that takes:
// which candidates can be part of a cheapest choice?
//
// A lower bound of the optimum is raised by moving costs between what is added
// up, variable by variable and there and back (Kolmogorov, "A new look at
// reweighted message passing", 2015): the sum stays what it is, everything that
// is left is at least zero, and the bound is what was taken out. What a
// candidate has left over the least is what it costs beyond the bound. Those
// that cost more than an assignment that is known fall out, and no cheapest
// assignment has any of them.
//
// What a pass takes is in proportion to the moves that values have, without
// tables over all that shares one. Costs are whole numbers in doubles: sums
// below 2^53 are exact, and the same on all machines.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_PROPAGATION_FLOWBOUND_H
#define TP_SHARDING_PROPAGATION_FLOWBOUND_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <limits>
#include <vector>

namespace mlir::tp {

class FlowBound {
public:
  /// A whole number, or infinite.
  using Cost = double;
  static constexpr Cost kInfinite = std::numeric_limits<Cost>::infinity();

  /// A variable, and the place that each of its values has or wants.
  struct Port {
    unsigned variable;
    std::vector<unsigned> places;
  };

  /// A variable whose values cost this by themselves; at least zero.
  unsigned addVariable(std::vector<Cost> costs);
  /// What it costs to get from each of `numHad` places to each of `numWanted`;
  /// row-major, at least zero.
  unsigned addMoves(unsigned numHad, unsigned numWanted,
                    llvm::ArrayRef<Cost> costs);
  /// A value that is moved by `moves` to each place that a use wants, once.
  void addValue(unsigned moves, Port definition, std::vector<Port> uses);

  /// Whether sums are exact.
  bool isExact() const;
  /// Raises the bound, lowers the best cost and removes values until the bound
  /// is met, a round changes little, or so many entries of moves have been
  /// looked at; the round that passes this limit is completed.
  void run(uint64_t maxEntries);

  /// No assignment costs less; infinite where none is possible.
  Cost getLowerBound() const;
  /// The cheapest assignment that was found.
  Cost getCost() const { return best; }
  llvm::ArrayRef<unsigned> getValues() const { return bestValues; }
  /// The values that a cheapest assignment may have.
  llvm::BitVector getKept(unsigned variable) const;
  uint64_t getNumEntries() const { return numEntries; }
  /// What `values`, one for each variable, cost.
  Cost evaluate(llvm::ArrayRef<unsigned> values) const;

private:
  using Costs = std::vector<Cost>;
  struct Moves {
    unsigned numHad, numWanted;
    /// Rows are multiples of kLanes long; what is beyond is infinite.
    unsigned stride;
    Costs costs;
    Cost largest;
  };
  /// A value as it is.
  struct Value {
    unsigned moves;
    std::vector<Port> ports;
  };
  /// Some uses of a value, with a part of what its moves cost. `costs` is what
  /// was moved here, by port and place; infinite where no value is left.
  struct Group {
    unsigned moves;
    std::vector<unsigned> variables;
    std::vector<const std::vector<unsigned> *> places;
    std::vector<Costs> costs;
  };
  struct Place {
    unsigned group, port;
  };

  void makeGroups();
  unsigned getShare(unsigned moves, unsigned count);
  Costs getMarginal(const Group &group, unsigned port);
  void visit(unsigned variable, bool isForward);
  void sweep();
  void remove(unsigned variable);
  void decode();
  void improve(std::vector<unsigned> &values) const;
  Cost evaluate(const Value &value, llvm::ArrayRef<unsigned> values) const;

  std::vector<Costs> own;
  std::vector<Moves> moves;
  std::vector<Value> values;
  std::vector<Group> groups;
  /// By variable: the values, and the groups, that it is part of.
  std::vector<llvm::SmallVector<unsigned, 4>> valuesOf;
  std::vector<llvm::SmallVector<Place, 4>> placesOf;
  /// What is left of the costs of each variable's values.
  std::vector<Costs> left;
  Cost bound = 0, best = kInfinite;
  /// What every cost is a multiple of, and so every sum.
  int64_t unit = 0;
  std::vector<unsigned> bestValues;
  uint64_t numEntries = 0;
};

} // namespace mlir::tp

#endif // TP_SHARDING_PROPAGATION_FLOWBOUND_H
