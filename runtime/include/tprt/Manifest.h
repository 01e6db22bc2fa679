//===- Manifest.h - Manifests of artifacts ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The JSON part of an artifact (docs/Artifact.md), parsed and checked: after
// parse() every index, size and group can be used without further checks.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_MANIFEST_H
#define TPRT_MANIFEST_H

#include "tprt/Collective.h"
#include "tprt/SymbolicSize.h"
#include "tprt/abi.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tprt {

/// An input, parameter or output and how it is sharded over the ranks.
struct TensorInfo {
  std::string name;
  Dtype dtype;
  Shape shape; ///< global
  std::vector<std::string> placements;
  std::vector<Block> shards; ///< by rank
  /// For a Partial: the ranks whose shard is filled with the reduction's
  /// neutral element, 0 or 1. Ascending.
  std::vector<int64_t> neutralRanks;
  int64_t neutralElement = 0;
  /// For inputs and outputs: the global sizes as the model knows them. Empty if
  /// its sizes were numbers, or aren't known.
  std::vector<SymbolicSize> symbolicShape;
  /// For parameters: whether a program writes each rank's shard in place.
  bool isUpdated = false;
  /// For parameters: whether programs read it only as the right operand of
  /// tprt_gemm, and don't update it.
  bool isRightOperand = false;
  /// For parameters: the value of every element if the weights don't contain
  /// it.
  std::optional<double> init;

  std::string getTypeString() const { return typeString(dtype, shape); }
  int64_t getShardBytes(int64_t rank) const {
    return numElements(shards[rank].getShape()) * byteWidth(dtype);
  }
};

/// A part of the program between collectives: a kernel or a library call. Equal
/// parts are listed once.
struct OpInfo {
  std::string fqn;  ///< the module that it comes from; may be empty
  std::string op;   ///< the model's ops in it, "add+rms_norm"
  std::string kind; ///< "kernel", or the function that is called, "gemm"
  int64_t flops = 0;
  int64_t bytes = 0;          ///< of memory that it reads and writes
  std::optional<Dtype> dtype; ///< of a library's products
  /// For a product: its sizes and strides, without the dtype and the addends;
  /// and whether B is a parameter that keeps its value.
  std::optional<tprt_gemm_args> product;
  bool isWeight = false;
};

struct MeshAxis {
  std::string name;
  int64_t size;
};

/// Consecutive elements of a list.
struct ListRange {
  int64_t first = 0, count = 0;
};

/// One of an artifact's programs. Its code counts its collectives and its ops
/// from 0; `collectives` and `ops` say which elements of the manifest's lists
/// these are.
struct Program {
  std::string name;
  /// The functions that the object exports: for Manifest::features, then for
  /// each of Manifest::variants.
  std::vector<std::string> entries;
  std::string deviceCode; ///< the symbol of its kernels, if it is for CUDA
  int64_t arenaBytes = 0;
  std::vector<TensorInfo> inputs, outputs;
  std::vector<int64_t> parameters; ///< in the order in which its code takes
                                   ///< them: indices in Manifest::parameters
  ListRange collectives, ops;
  /// The values that the symbols of inputs and outputs have in this program.
  std::map<std::string, int64_t> symbols;
};

struct Manifest {
  std::string producer;
  std::string triple;
  std::vector<std::string> features; ///< LLVM's names, "+avx2"
  /// The features of the same code for other CPUs, best last.
  std::vector<std::vector<std::string>> variants;
  bool isForCuda = false;             ///< computes on CUDA devices
  std::vector<int64_t> architectures; ///< of those devices: 90 for sm_90
  std::string meshName;
  std::vector<MeshAxis> axes;
  int64_t worldSize = 1;
  std::vector<TensorInfo> parameters; ///< of all programs
  std::vector<Program> programs;      ///< at least one
  // Of all programs, one program after the other. Communicators, counts and
  // recordings number collectives and ops by these lists; reports and messages
  // number those of each program.
  std::vector<Collective> collectives;
  std::vector<OpInfo> ops; ///< what tprt_mark counts

  /// Whether a program updates parameters, the session's state.
  TPRT_API bool hasState() const;
  /// The size in bytes of an arena for any of the programs.
  TPRT_API int64_t getArenaBytes() const;

  /// Throws an input error that names the offending member, e.g.
  /// "inputs[0].shards[1]: …".
  TPRT_API static Manifest parse(std::string_view text);
};

/// "collective 5 (all_reduce of 'encoder.layer.0.output.dense')", where `id` is
/// an index in Manifest::collectives. The number is that in the collective's
/// program, which is named if there are several: "collective 5 of 'long' (…)".
TPRT_API std::string describeCollective(const Manifest &manifest, int64_t id);

} // namespace tprt

#endif // TPRT_MANIFEST_H
