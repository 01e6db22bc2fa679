//===- Manifest.h - What an artifact says about itself -----------*- C++
//-*-===//
//
// The JSON part of an artifact (docs/Artifact.md), parsed and checked: after
// parse() every index, size and group can be used without further checks.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_MANIFEST_H
#define TPRT_MANIFEST_H

#include "tprt/Tensor.h"

#include <string>
#include <vector>

namespace tprt {

/// An input, parameter or output and how it is cut over the ranks.
struct TensorInfo {
  std::string name;
  Dtype dtype;
  Shape shape; ///< global
  std::vector<std::string> placements;
  std::vector<Block> shards; ///< by rank

  std::string getTypeString() const { return typeString(dtype, shape); }
  int64_t getShardBytes(int64_t rank) const {
    return numElements(shards[rank].size) * byteWidth(dtype);
  }
};

enum class CollectiveKind {
  AllGather,
  ReduceScatter,
  AllReduce,
  AllToAll,
  Permute,
  Broadcast
};
enum class Reduction { Sum, Avg, Max, Min, Product };

TPRT_API std::string_view toString(CollectiveKind kind);
TPRT_API std::string_view toString(Reduction reduction);

/// A collective of the program. "Position" is a rank's index in its group.
struct Collective {
  CollectiveKind kind;
  Reduction reduction = Reduction::Sum;
  Dtype dtype;
  Shape operandShape;
  Shape resultShape;
  int64_t dim = 0;
  int64_t splitDim = 0;
  int64_t concatDim = 0;
  int64_t root = 0;                         ///< position
  std::vector<int64_t> source;              ///< permute: by position
  std::vector<std::vector<int64_t>> groups; ///< disjoint, of one size
  std::vector<std::string> axes;
  std::vector<int64_t> bytesByRank; ///< predicted
  std::string fqn;
  std::string reason;
};

struct MeshAxis {
  std::string name;
  int64_t size;
};

struct Manifest {
  std::string producer;
  std::string entry;
  std::string triple;
  std::vector<std::string> features; ///< LLVM's names, "+avx2"
  std::string meshName;
  std::vector<MeshAxis> axes;
  int64_t worldSize = 1;
  int64_t arenaBytes = 0;
  std::vector<TensorInfo> inputs, parameters, outputs;
  std::vector<Collective> collectives;

  /// Throws an input error that names the offending member, e.g.
  /// "inputs[0].shards[1]: …".
  TPRT_API static Manifest parse(std::string_view text);
};

/// "collective 5 (all_reduce of 'encoder.layer.0.output.dense')".
TPRT_API std::string describe(const Collective &collective, int64_t id);

} // namespace tprt

#endif // TPRT_MANIFEST_H
