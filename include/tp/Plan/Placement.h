//===- Placement.h - A placement as plans write it --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_PLAN_PLACEMENT_H
#define TP_PLAN_PLACEMENT_H

#include "tp/Dialect/TP/TP.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>

namespace mlir::tp::plan {

/// A tensor's placement over one mesh dimension, or over several that are used
/// as one: DTensor's `Shard(dim)`, `Replicate()`, `Partial(reduction)` and
/// `_StridedShard(dim, split_factor)`.
struct Placement {
  enum class Kind { Replicate, Shard, Partial };

  Kind kind = Kind::Replicate;
  /// The dimension that is split; negative ones count from the last.
  int64_t dim = 0;
  ReductionKind reduction = ReductionKind::Sum;
  /// For a Shard: the number of equal blocks of the dimension, each of which is
  /// split on its own (`_StridedShard`'s split factor).
  int64_t blocks = 1;
  /// For a Shard with unequal such blocks: their sizes. Otherwise empty.
  SmallVector<int64_t> segments = {};

  static Placement replicate() { return {}; }
  static Placement shard(int64_t dim) { return {Kind::Shard, dim}; }
  static Placement partial(ReductionKind reduction) {
    return {Kind::Partial, 0, reduction};
  }
  static Placement stridedShard(int64_t dim, int64_t splitFactor) {
    return {Kind::Shard, dim, ReductionKind::Sum, splitFactor};
  }

  bool isReplicate() const { return kind == Kind::Replicate; }
  bool isShard() const { return kind == Kind::Shard; }
  bool isPartial() const { return kind == Kind::Partial; }
  /// Whether the dimension consists of blocks that are each split on their own.
  bool isSegmented() const { return blocks > 1 || !segments.empty(); }
  /// The sizes of these blocks, for a dimension of size `size`.
  SmallVector<int64_t> getSegments(int64_t size) const;
  bool operator==(const Placement &) const = default;

  /// "Shard(1)", "Replicate", "Partial(sum)",
  /// "_StridedShard(0, split_factor=2)", "Shard(0, segments=[4, 2, 2])".
  std::string str() const;
};

/// A placement, or nullopt if a plan writes `null`: the tensor is left alone.
using Layout = std::optional<Placement>;

/// Reads a placement in any of PyTorch's spellings: `Shard(1)`,
/// `Shard(dim=-1)`, `S(1)`, `Replicate`, `Replicate()`, `R`, `Partial`,
/// `Partial(max)`, `P(max)`,
/// `_StridedShard(0, split_factor=2)`, `_S(0, 2)`. For any other text,
/// returns nullopt and sets `error` to the reason.
std::optional<Placement> parsePlacement(StringRef text, std::string &error);

/// The JSON schema of the texts that parsePlacement reads.
llvm::json::Object getPlacementSchema();

/// A mesh dimension's name and its number of ranks, at least 1.
struct MeshAxis {
  std::string name;
  int64_t size;
};

/// Mesh dimensions that a part of a plan uses as one, as indices into the mesh,
/// ascending.
using AxisSet = SmallVector<unsigned, 2>;

/// A placement over some mesh dimensions.
struct AxisPlacement {
  AxisSet axes;
  Placement placement;

  bool operator==(const AxisPlacement &) const = default;
};

/// Combines the placements of a tensor of shape `shape` over different mesh
/// dimensions into one sharding. Placements that split the same dimension nest
/// in the order of the mesh, the first one major, as in DTensor. A strided
/// shard is minor to the later ones if its factor is the number of parts that
/// they split into; otherwise it becomes segments. A Shard's dimension must be
/// in range. Fails, with the reason passed to `emitError`, if no sharding
/// expresses the placements.
FailureOr<ShardingAttr>
getSharding(ArrayRef<AxisPlacement> placements, ArrayRef<MeshAxis> mesh,
            FlatSymbolRefAttr meshName, ArrayRef<int64_t> shape,
            function_ref<void(const Twine &)> emitError);

/// One placement per mesh dimension, as DTensor lists them.
SmallVector<Placement> getPlacementList(ArrayRef<AxisPlacement> placements,
                                        ArrayRef<MeshAxis> mesh);

} // namespace mlir::tp::plan

#endif // TP_PLAN_PLACEMENT_H
