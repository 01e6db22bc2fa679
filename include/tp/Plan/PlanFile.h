//===- PlanFile.h - the text of a parallelize plan --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan file says, each piece with its place in the file, before anything
// is known about styles or about the model. docs/Plans.md describes the format.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PLAN_PLANFILE_H
#define TP_PLAN_PLANFILE_H

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "tp/Plan/Pattern.h"
#include "tp/Plan/Placement.h"
#include "tp/Support/YamlReader.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::tp::plan {

struct PlanArgument {
  std::string name;
  FileLineColLoc loc;
  YamlValue value;
};

/// One line of a plan: what `pattern` matches gets `style`, or, where `direct`
/// has them, these placements.
struct PlanEntry {
  std::string pattern;
  FileLineColLoc loc;
  std::string style;
  FileLineColLoc styleLoc;
  std::vector<PlanArgument> arguments;
  /// Of a parameter, one per mesh dimension, or one for all of them.
  SmallVector<Placement> direct = {};
};

/// Entries, and the mesh dimensions that they parallelize over.
struct PlanGroup {
  explicit PlanGroup(FileLineColLoc loc) : loc(loc), lossLoc(loc) {}

  FileLineColLoc loc;
  /// At least one, unless the file has no valid mesh.
  AxisSet axes;
  MatchMode match = MatchMode::Fnmatch;
  /// Patterns that match nothing are warned of rather than refused.
  bool allowUnmatched = false;
  /// Logits enter cross entropies split along their classes.
  bool lossParallel = false;
  FileLineColLoc lossLoc;
  std::vector<PlanEntry> entries;
};

struct ModulePattern {
  std::string text;
  FileLineColLoc loc;
};

/// What data parallelism does over one mesh dimension: the batch is split.
struct DataAxis {
  enum Style {
    /// Parameters are replicated, as in DistributedDataParallel.
    DDP,
    /// Parameters are split along dimension 0, as by fully_shard, and gathered
    /// where they are used.
    FSDP,
  };
  /// Index into PlanFile::mesh.
  unsigned axis;
  Style style;
  FileLineColLoc loc;
  /// Of FSDP: whether the backward pass gathers again. As in fully_shard, it
  /// does unless the file says otherwise, but for the root's own parameters.
  std::optional<bool> reshardAfterForward = std::nullopt;
  /// Of FSDP: patterns of the modules that fully_shard is called on, beside the
  /// root; none where the file doesn't say.
  std::optional<std::vector<ModulePattern>> modules = std::nullopt;
};

/// The dimension of an input that is the batch.
struct BatchInput {
  std::string input;
  FileLineColLoc loc;
  /// Negative ones count from the last.
  int64_t dim;
  FileLineColLoc dimLoc;
};

struct PlanFile {
  /// Major to minor; empty when the file has no valid mesh.
  std::vector<MeshAxis> mesh;
  /// The rank at each position of the mesh, row-major; empty where positions
  /// and ranks have the same numbers.
  std::vector<int64_t> devices;
  std::vector<PlanGroup> groups;
  /// In the order of the mesh.
  std::vector<DataAxis> data;
  /// Empty where the file doesn't say.
  std::vector<BatchInput> batch;
};

/// Parses `text`, YAML or JSON, which stands in the file `path`. Emits an error
/// at its line and column for everything that is wrong, and fails when there
/// was any; `plan` then holds what could be understood.
LogicalResult parsePlan(StringRef text, StringRef path, MLIRContext *context,
                        PlanFile &plan);

/// The same for the file at `path`.
LogicalResult readPlan(StringRef path, MLIRContext *context, PlanFile &plan);

} // namespace mlir::tp::plan

#endif // TP_PLAN_PLANFILE_H
