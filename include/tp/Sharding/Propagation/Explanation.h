//===- Explanation.h - Why values are placed as they are --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a propagation decided, traced back. Over each mesh dimension on its own,
// a value's chain leads over ops that agree with it to the nearest thing that
// is fixed; where an operand is redistributed, two chains meet, and one lost.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_PROPAGATION_EXPLANATION_H
#define TP_SHARDING_PROPAGATION_EXPLANATION_H

#include "tp/Sharding/Propagation/Propagation.h"
#include "tp/Sharding/Redistribution/Redistribution.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::tp {

/// What a placement is fixed by.
struct PlacementSource {
  enum Kind {
    /// `index` of `function`: by its tp.sharding, or whole for lack of one.
    Argument,
    Result,
    /// The tp.sharding of `op`, a parameter for instance.
    Attribute,
    /// `op` itself: tp.redistribute, tp.distribute, tp.constraint, tp.to_local,
    /// tp.from_local.
    Op,
    /// `op` reads the value in its body, where it is whole.
    Body,
  };
  Kind kind;
  func::FuncOp function = {};
  unsigned index = 0;
  Operation *op = nullptr;
  /// Nothing is written: an argument or result that is whole by default.
  bool isDefault = false;
};

/// How one mesh dimension came to place a value.
struct PlacementChain {
  /// An op that the placement went through.
  struct Step {
    Operation *op;
    /// What the mesh dimension splits there: "factor n", "dimension 1"; empty
    /// where nothing.
    std::string split;
    /// The placement that comes out of it.
    std::string placement;
  };

  /// Index of the mesh dimension, and the placement in DTensor's spelling.
  unsigned axis = 0;
  std::string placement = {};
  /// Without one, nothing fixed leads here: the choice was made by cost.
  std::optional<PlacementSource> source = {};
  std::string sourcePlacement = {};
  /// From the source to the value: the last kMaxSteps, and how many more there
  /// are between the source and these.
  std::vector<Step> steps = {};
  unsigned numLeftOut = 0;
  static constexpr size_t kMaxSteps = 8;
};

/// A value of one function, as one of its callers sees it.
struct ExplainedValue {
  /// Index into Propagation::getFunctions().
  unsigned function;
  Value value;
  ShardingAttr sharding;
  /// One per mesh dimension.
  std::vector<PlacementChain> chains;
};

/// A redistribution that communicates, or the collectives that an op takes to
/// run as it does.
struct ExplainedMovement {
  /// One mesh dimension over which a value isn't placed as it is needed.
  struct Conflict {
    std::string axis;
    PlacementChain has, needs;
    /// Who won, and why: "nn.softmax must be whole along dimension 1".
    std::string verdict;
  };
  struct Alternative {
    /// What the op would split over each mesh dimension: "tp: factor n";
    /// "whole" for none.
    std::string description;
    std::vector<std::string> operands, results;
    CommunicationCost delta;
  };

  unsigned function;
  /// What moves; the op's first result where it communicates itself.
  Value value;
  RankedTensorType type;
  /// Null where an op communicates itself.
  ShardingAttr from, to;
  /// Who needs it so.
  Operation *op;
  /// Which of the op's operands; none where it is about a result.
  std::optional<unsigned> operand;
  std::string fqn, reason;
  /// Whether the plan or the IR asks for it, or an op can't do without.
  bool isAsked = false;
  /// How often it is done.
  int64_t times = 0;
  /// "all_gather over {tp}", ….
  std::vector<std::string> collectives;
  /// What ranks receive each time: all together, and the one that gets most.
  int64_t bytes = 0, bytesPerRank = 0;
  /// What no way from the one placement to the other does without.
  int64_t leastBytes = 0;
  std::vector<Conflict> conflicts;
  /// Other ways to run an op, cheapest first: the one that needs the value, or
  /// where that leaves no choice, the one that gives it.
  Operation *choice = nullptr;
  std::vector<Alternative> alternatives;
};

class Explanation {
public:
  /// Explains what `propagation`, which has been run on `roots`, decided.
  /// Fails, with an error, where it can't be traced.
  static FailureOr<Explanation> explain(const Propagation &propagation,
                                        MeshOp mesh,
                                        ArrayRef<func::FuncOp> roots,
                                        bool withChains = true);

  /// In program order.
  std::vector<ExplainedValue> values;
  std::vector<ExplainedMovement> movements;

  /// The bytes that all ranks receive, and the collectives that each issues.
  int64_t getBytes() const;
  int64_t getNumCollectives() const;
};

} // namespace mlir::tp

#endif // TP_SHARDING_PROPAGATION_EXPLANATION_H
