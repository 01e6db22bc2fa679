//===- DescribeBoundary.h - Tensors at a program's boundary -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_CODEGEN_PROGRAM_DESCRIBEBOUNDARY_H
#define TP_LIB_CODEGEN_PROGRAM_DESCRIBEBOUNDARY_H

#include "tp/Dialect/TP/RankIndices.h"

namespace mlir::tp {

/// A hint for errors about a program over global shapes.
constexpr StringLiteral kGlobalLevelHint =
    "this is a program over global shapes; make the ranks' program of it: "
    "tp-opt MODEL --tp-parallelize=plan=PLAN -o RANKS (without '=plan=PLAN' if "
    "the IR has the placements)";

/// An input, parameter or output of one program, with that program's local
/// type.
struct Boundary {
  std::string name;
  Type type;
  DictionaryAttr attrs;
  Location loc;
};

/// Describes the boundary of one program, which `ranks` run; `mesh` may be null.
class BoundaryDescriber {
public:
  BoundaryDescriber(MeshOp mesh, ArrayRef<int64_t> ranks)
      : mesh(mesh), ranks(ranks), indices(mesh) {}

  /// docs/Artifact.md's TENSOR, from `tp.sharding` and `tp.global_type`. Fails
  /// with an error if the local type isn't that of the ranks' blocks.
  FailureOr<DictionaryAttr> describe(const Boundary &boundary);

private:
  /// The blocks of all ranks of the mesh. The program has `local` blocks.
  FailureOr<ArrayAttr> getShards(const Boundary &boundary,
                                 RankedTensorType global, ShardingAttr sharding,
                                 RankedTensorType local);
  std::optional<DictionaryAttr> describeNeutral(ShardingAttr sharding);

  MeshOp mesh;
  ArrayRef<int64_t> ranks;
  RankIndices indices;
  /// Those of equal tensors, by their global and local types and placements,
  /// and whether the program's ranks hold them.
  DenseMap<std::tuple<Type, Type, Attribute, unsigned>, ArrayAttr> known;
};

/// The member of a TENSOR that lists the ranks' blocks.
constexpr StringLiteral kShards = "shards";

/// The entry of `shards` for a rank that holds nothing of a tensor whose other
/// entries are like `shard`. A scalar has no such entry: all ranks hold it.
ArrayAttr describeAbsent(ArrayAttr shard);

/// Whether the ranks' blocks are still to be reduced.
bool isPartial(const Boundary &boundary);

} // namespace mlir::tp

#endif // TP_LIB_CODEGEN_PROGRAM_DESCRIBEBOUNDARY_H
