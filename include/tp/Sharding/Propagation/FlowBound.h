//===- FlowBound.h - Bounds for values that flow between ops ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each op has candidates. Each value moves from the state in which its op gives
// it to the states in which its uses want it, and uses that want the same state
// share one move. The question is which candidates can be part of a cheapest
// choice.
//
// A lower bound of the optimum is raised by moving costs between the terms of
// the sum, variable by variable, in forward and backward sweeps (Kolmogorov, "A
// new look at reweighted message passing", 2015). The sum doesn't change, the
// remaining costs are at least zero, and the bound is the cost that was taken
// out. The remaining cost of a candidate is what it costs beyond the bound. A
// candidate that costs more than a known assignment is removed, because no
// cheapest assignment has it.
//
// A sweep takes time in proportion to the number of moves that values have; it
// needs no tables over all uses of a value. Costs are whole numbers in doubles:
// sums below 2^53 are exact and the same on all machines.
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

  /// A variable, and the state that each of its values gives or wants.
  struct Port {
    unsigned variable;
    std::vector<unsigned> states;
  };

  /// Adds a variable; `costs` are its values' own costs, at least zero.
  unsigned addVariable(std::vector<Cost> costs);
  /// Adds the costs to move from each of `numHad` states to each of
  /// `numWanted`; row-major, at least zero.
  unsigned addMoves(unsigned numHad, unsigned numWanted,
                    llvm::ArrayRef<Cost> costs);
  /// Adds a value that moves, at the costs `moves`, once to each state that a
  /// use wants.
  void addValue(unsigned moves, Port definition, std::vector<Port> uses);

  /// Whether sums are exact.
  bool isExact() const;
  /// Raises the bound, lowers the best cost and removes values. Stops when the
  /// best cost equals the bound, when a round changes little, or when
  /// `maxEntries` entries of moves have been looked at. The round that exceeds
  /// this limit is completed.
  void run(uint64_t maxEntries);

  /// No assignment costs less; infinite if none is possible.
  Cost getLowerBound() const;
  /// The cheapest assignment that was found.
  Cost getCost() const { return best; }
  llvm::ArrayRef<unsigned> getValues() const { return bestValues; }
  /// The values that a cheapest assignment may have.
  llvm::BitVector getKept(unsigned variable) const;
  uint64_t getNumEntries() const { return numEntries; }
  /// The cost of `values`, one for each variable.
  Cost evaluate(llvm::ArrayRef<unsigned> values) const;

private:
  using Costs = std::vector<Cost>;
  struct Moves {
    unsigned numHad, numWanted;
    /// The length of a row, a multiple of kLanes; entries beyond `numWanted`
    /// are infinite.
    unsigned stride;
    Costs costs;
    Cost largest;
  };
  /// A value with all of its uses.
  struct Value {
    unsigned moves;
    std::vector<Port> ports;
  };
  /// Some uses of a value, with a part of the cost of its moves. `costs` are
  /// the costs that were moved here, by port and state; infinite if no value is
  /// left.
  struct Group {
    unsigned moves;
    std::vector<unsigned> variables;
    std::vector<const std::vector<unsigned> *> states;
    std::vector<Costs> costs;
  };
  struct PortRef {
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
  /// The values, and the groups, that each variable is part of.
  std::vector<llvm::SmallVector<unsigned, 4>> valuesOf;
  std::vector<llvm::SmallVector<PortRef, 4>> portsOf;
  /// The remaining costs of each variable's values.
  std::vector<Costs> left;
  Cost bound = 0, best = kInfinite;
  /// A common divisor of all costs, and so of every sum.
  int64_t unit = 0;
  std::vector<unsigned> bestValues;
  uint64_t numEntries = 0;
};

} // namespace mlir::tp

#endif // TP_SHARDING_PROPAGATION_FLOWBOUND_H
