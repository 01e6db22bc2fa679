//===- MachineModel.h - Descriptions of machines ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The numbers that a prediction needs: a device, the devices of a node, and the
// links between ranks, innermost first. A description comes from a preset, a
// YAML or JSON file, or the `dlti.target_system_spec` of a module.
// docs/Prediction.md describes the format.
//
//===----------------------------------------------------------------------===//

#ifndef TP_SHARDING_COST_MACHINEMODEL_H
#define TP_SHARDING_COST_MACHINEMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::tp {

/// How ranks that share a link carry out a gather or a reduction.
enum class LinkAlgorithm {
  Ring,   ///< n - 1 steps, each of one message from a neighbor
  Direct, ///< one step, in which each rank reads from all others
};

/// A collective as it was measured: `latency + received bytes / bandwidth`.
struct MeasuredCollective {
  std::string kind; ///< as CollectiveOpInterface::getCollectiveKind
  int64_t ranks;
  double latency;   ///< seconds
  double bandwidth; ///< bytes per second that a rank receives
};

struct Link {
  std::string name;
  /// Ranks [i * ranks, (i + 1) * ranks) are joined; 0: all ranks are.
  int64_t ranks = 0;
  double latency = 0;   ///< seconds per message
  double bandwidth = 0; ///< bytes per second that a rank receives
  LinkAlgorithm algorithm = LinkAlgorithm::Ring;
  /// Measurements, if any. For each kind, the one with the nearest number of
  /// ranks replaces the algorithm's formula.
  std::vector<MeasuredCollective> collectives;
};

/// The shares of a device's peaks that ops reach, each above 0 and at most 1.
struct Efficiency {
  /// Of `flops`, by contractions of large extents.
  double contraction = 1;
  /// A contraction whose smallest extent is d reaches d / (d + halfExtent) of
  /// that.
  double halfExtent = 0;
  /// Of `flops`, by chains of contractions (attention), which skip what a causal
  /// mask hides; 0: as other contractions, and nothing is skipped.
  double attention = 0;
  /// Of the memory bandwidth.
  double memory = 1;
};

struct Machine {
  std::string name;
  /// FLOP/s of contractions, by element type.
  double flopsF64 = 0, flopsF32 = 0, flopsF16 = 0, flopsBF16 = 0;
  /// Elements per second of all other arithmetic.
  double elementwise = 0;
  double memoryBandwidth = 0; ///< bytes per second
  int64_t memoryCapacity = 0; ///< bytes
  double launch = 0;          ///< seconds per op, independent of its work
  Efficiency efficiency;
  /// Whether elementwise ops are fused into their users.
  bool fusion = true;
  /// The speed at which a rank computes during a collective that it has started,
  /// as a share of its speed otherwise; 0: it computes nothing until the
  /// collective is over.
  double overlap = 0;
  /// Devices of a node; more ranks than these share them. 0: one per rank.
  int64_t nodeDevices = 0;
  /// Bytes per second that the node's ranks share; 0: memory isn't shared.
  double nodeMemoryBandwidth = 0;
  std::vector<Link> links; ///< innermost first; the last joins all ranks

  /// FLOP/s of contractions of `element`; integers count as f32.
  double getFlops(Type element) const;
  /// Index of the innermost link that joins the two ranks.
  size_t getLink(int64_t a, int64_t b) const;
};

/// The presets' names.
std::vector<StringRef> getMachineNames();
/// A preset; null if there is none of this name.
const Machine *findMachine(StringRef name);

/// The preset called `nameOrPath`, or the description in the file at that path.
/// If there is neither, or if the description is wrong, emits an error (for a
/// file, at its line and column) and fails.
FailureOr<Machine> readMachine(StringRef nameOrPath, MLIRContext *context);

/// Parses `text`, the YAML or JSON content of the file `path`.
FailureOr<Machine> parseMachine(StringRef text, StringRef path,
                                MLIRContext *context);

/// The machine that `dlti.target_system_spec` of `module` describes; nullopt if
/// it has none. Emits an error and fails if the description is wrong.
FailureOr<std::optional<Machine>> getMachine(ModuleOp module);

/// The description of `machine`, in the format that parseMachine reads.
llvm::json::Value toJSON(const Machine &machine);

/// The JSON schema of machine files.
llvm::json::Value getMachineSchema();

} // namespace mlir::tp

#endif // TP_SHARDING_COST_MACHINEMODEL_H
