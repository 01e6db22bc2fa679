//===- PlanFile.h - The text of a parallelize plan --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contents of a plan file, each piece with its location. Neither styles nor
// the model are looked at yet. docs/Plans.md describes the format.
//
//===----------------------------------------------------------------------===//

#ifndef TP_PLAN_PLANFILE_H
#define TP_PLAN_PLANFILE_H

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "tp/Dialect/TP/Pipeline.h"
#include "tp/Dialect/TP/TPEnums.h"
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

/// One line of a plan: the modules or parameters that `pattern` matches get
/// `style`, or the placements `direct` if there are any.
struct PlanEntry {
  std::string pattern;
  FileLineColLoc loc;
  std::string style;
  FileLineColLoc styleLoc;
  std::vector<PlanArgument> arguments;
  /// Placements of a parameter: one per mesh dimension, or one for all of them.
  SmallVector<Placement> direct = {};
};

/// Entries, and the mesh dimensions that they parallelize over.
struct PlanGroup {
  explicit PlanGroup(FileLineColLoc loc) : loc(loc), lossLoc(loc) {}

  FileLineColLoc loc;
  /// At least one, unless the file has no valid mesh.
  AxisSet axes;
  MatchMode match = MatchMode::Fnmatch;
  /// Whether patterns that match nothing are warnings instead of errors. By
  /// default they are with Hugging Face's matching, unless all patterns match
  /// nothing: a model's tp_plan has rules for modules that only some
  /// configurations have.
  std::optional<bool> allowUnmatched;
  /// Logits enter cross entropies split along their classes.
  bool lossParallel = false;
  FileLineColLoc lossLoc;
  std::vector<PlanEntry> entries;
};

struct ModulePattern {
  std::string text;
  FileLineColLoc loc;
};

/// Data parallelism over one mesh dimension, which splits the batch.
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
  /// For FSDP: whether the backward pass gathers again. The default is that of
  /// fully_shard: yes, except for the root's own parameters.
  std::optional<bool> reshardAfterForward = std::nullopt;
  /// For FSDP: patterns of the modules, besides the root, that fully_shard is
  /// called on; nullopt if the file doesn't list any.
  std::optional<std::vector<ModulePattern>> modules = std::nullopt;
};

/// A mesh dimension whose ranks run the stages of a pipeline.
struct PipelineAxis {
  /// Index into PlanFile::mesh.
  unsigned axis;
  FileLineColLoc loc;
  /// The module that begins each stage after the first, unless `isAuto`.
  std::vector<ModulePattern> split = {};
  /// Whether the stages are balanced by their predicted times.
  bool isAuto = false;
  FileLineColLoc splitLoc = {};
  int64_t stagesPerRank = 1;
  /// The machine whose times count, a preset or a path; for `isAuto`.
  std::optional<ModulePattern> machine = std::nullopt;
  PipelineSchedule schedule = PipelineSchedule::OneFOneB;
  int64_t microbatches = 1;
  FileLineColLoc microbatchesLoc = {};
};

/// The batch dimension of an input, or its sequence dimension.
struct BatchInput {
  std::string input;
  FileLineColLoc loc;
  /// Negative ones count from the last.
  int64_t dim;
  FileLineColLoc dimLoc;
};

/// Context parallelism over one mesh dimension, which splits the sequence.
struct ContextAxis {
  /// Index into PlanFile::mesh.
  unsigned axis;
  FileLineColLoc loc;
  /// How attention communicates.
  ContextMethod method = ContextMethod::Cheapest;
  FileLineColLoc methodLoc;
  /// The sequence dimensions; empty if the file doesn't list any.
  std::vector<BatchInput> inputs = {};
};

/// Expert parallelism over one mesh dimension, which splits the batch and the
/// experts. It is in PlanFile::data, too, as what splits the batch.
struct ExpertAxis {
  /// Index into PlanFile::mesh.
  unsigned axis;
  FileLineColLoc loc;
};

struct PlanFile {
  /// Major to minor; empty when the file has no valid mesh.
  std::vector<MeshAxis> mesh;
  /// The rank at each position of the mesh, row-major; empty if each position's
  /// number is its rank.
  std::vector<int64_t> devices;
  std::vector<PlanGroup> groups;
  /// In the order of the mesh.
  std::vector<DataAxis> data;
  std::optional<PipelineAxis> pipeline;
  /// Empty if the file doesn't list any.
  std::vector<BatchInput> batch;
  std::optional<ContextAxis> context = std::nullopt;
  std::optional<ExpertAxis> experts = std::nullopt;
};

/// Parses `text`, the YAML or JSON in the file `path`. Emits an error at its
/// line and column for each problem, and fails if there was one; `plan` then
/// holds the parts that could be read.
LogicalResult parsePlan(StringRef text, StringRef path, MLIRContext *context,
                        PlanFile &plan);

/// The same for the file at `path`.
LogicalResult readPlan(StringRef path, MLIRContext *context, PlanFile &plan);

} // namespace mlir::tp::plan

#endif // TP_PLAN_PLANFILE_H
