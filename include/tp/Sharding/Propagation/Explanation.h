//===- Explanation.h - Reasons for placements -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Traces back what a propagation decided, separately for each mesh dimension. A
// value's chain leads, through ops that agree with its placement, to the
// nearest fixed placement. If an operand is redistributed, two chains meet
// there, and one of them loses.
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

/// What fixes a placement.
struct PlacementSource {
  enum Kind {
    /// Argument or result `index` of `function`: fixed by its tp.sharding, or
    /// whole because it has none.
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
  /// The argument or result has no tp.sharding and is whole by default.
  bool isDefault = false;
};

/// How a value got its placement over one mesh dimension.
struct PlacementChain {
  /// An op that the placement spread through.
  struct Step {
    Operation *op;
    /// What the mesh dimension splits there: "factor n", "dimension 1"; empty
    /// if nothing.
    std::string split;
    /// The placement after the op.
    std::string placement;
  };

  /// Index of the mesh dimension, and the placement in DTensor's spelling.
  unsigned axis = 0;
  std::string placement = {};
  /// Empty if nothing fixed leads here: the choice was made by cost.
  std::optional<PlacementSource> source = {};
  std::string sourcePlacement = {};
  /// From the source to the value: the last kMaxSteps steps, and the number of
  /// earlier steps that are left out.
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

/// A redistribution that communicates, or the collectives that an op needs to
/// run with its placements.
struct ExplainedMovement {
  /// One mesh dimension over which a value isn't placed as its use needs it.
  struct Conflict {
    std::string axis;
    PlacementChain current, required;
    /// Which side won, and why: "nn.softmax must be whole along dimension 1".
    std::string verdict;
  };
  struct Alternative {
    /// What each mesh dimension would split in the op: "tp: factor n"; "whole"
    /// if none splits anything.
    std::string description;
    std::vector<std::string> operands, results;
    CommunicationCost delta;
  };

  unsigned function;
  /// The value that moves; the op's first result if the op itself communicates.
  Value value;
  RankedTensorType type;
  /// Null if an op itself communicates.
  ShardingAttr from, to;
  /// The op that needs `to`.
  Operation *op;
  /// Which of the op's operands; none if it is about a result.
  std::optional<unsigned> operand;
  std::string fqn, reason;
  /// Whether the plan or the IR asks for it, or an op can't run without it.
  bool isAsked = false;
  /// How often it is done.
  int64_t times = 0;
  /// "all_gather over {tp}", ….
  std::vector<std::string> collectives;
  /// What is received each time: by all ranks together, and by the rank that
  /// receives most.
  int64_t bytes = 0, bytesPerRank = 0;
  /// The lower bound for any way from `from` to `to`.
  int64_t leastBytes = 0;
  std::vector<Conflict> conflicts;
  /// Other ways to run `choice`, cheapest first. `choice` is the op that needs
  /// the value, or, if that op has no alternative, the op that gives the value.
  Operation *choice = nullptr;
  std::vector<Alternative> alternatives;
};

class Explanation {
public:
  /// Explains what `propagation` decided for a program, which is still
  /// unchanged. Fails, with an error, if a decision can't be traced.
  static FailureOr<Explanation> explain(const Propagation &propagation,
                                        MeshOp mesh, bool withChains = true);

  /// In program order.
  std::vector<ExplainedValue> values;
  std::vector<ExplainedMovement> movements;

  /// The bytes that all ranks receive, and the collectives that each issues.
  int64_t getBytes() const;
  int64_t getNumCollectives() const;
};

} // namespace mlir::tp

#endif // TP_SHARDING_PROPAGATION_EXPLANATION_H
