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
#include "tprt/abi.h"

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
  /// For parameters: whether the program writes each rank's shard in place.
  bool isUpdated = false;
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

/// Code of the program for another CPU.
struct CodeVariant {
  std::string entry;                 ///< the function that the object exports
  std::vector<std::string> features; ///< that it needs
};

struct Manifest {
  std::string producer;
  std::string entry;
  std::string triple;
  std::vector<std::string> features;  ///< LLVM's names, "+avx2"
  std::vector<CodeVariant> variants;  ///< the same code for other CPUs, best
                                      ///< last
  bool isForCuda = false;             ///< computes on CUDA devices
  std::vector<int64_t> architectures; ///< of those devices: 90 for sm_90
  std::string meshName;
  std::vector<MeshAxis> axes;
  int64_t worldSize = 1;
  int64_t arenaBytes = 0;
  std::vector<TensorInfo> inputs, parameters, outputs;
  std::vector<Collective> collectives;
  std::vector<OpInfo> ops; ///< what tprt_mark counts

  /// Whether the program updates parameters; each run is then one step.
  TPRT_API bool isTraining() const;

  /// Throws an input error that names the offending member, e.g.
  /// "inputs[0].shards[1]: …".
  TPRT_API static Manifest parse(std::string_view text);
};

} // namespace tprt

#endif // TPRT_MANIFEST_H
