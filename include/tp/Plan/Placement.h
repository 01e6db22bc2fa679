//===- Placement.h - a placement as plans write it --------------*- C++ -*-===//

#ifndef TP_PLAN_PLACEMENT_H
#define TP_PLAN_PLACEMENT_H

#include "tp/Dialect/TP/TP.h"
#include <optional>
#include <string>

namespace mlir::tp::plan {

/// Where a tensor lives along one mesh dimension: DTensor's `Shard(dim)`,
/// `Replicate()` and `Partial(reduction)`.
struct Placement {
  enum class Kind { Replicate, Shard, Partial };

  Kind kind = Kind::Replicate;
  /// The dimension that is split; negative ones count from the last.
  int64_t dim = 0;
  ReductionKind reduction = ReductionKind::Sum;

  static Placement replicate() { return {}; }
  static Placement shard(int64_t dim) { return {Kind::Shard, dim}; }
  static Placement partial(ReductionKind reduction) {
    return {Kind::Partial, 0, reduction};
  }

  bool isShard() const { return kind == Kind::Shard; }
  bool isPartial() const { return kind == Kind::Partial; }
  bool operator==(const Placement &) const = default;

  /// "Shard(1)", "Replicate", "Partial(sum)".
  std::string str() const;
};

/// A placement, or nothing where a plan writes `null`: the tensor is left
/// alone.
using Layout = std::optional<Placement>;

/// Reads `Shard(1)`, `Shard(dim=-1)`, `Replicate`, `Replicate()`, `Partial`,
/// `Partial(max)`. Returns nothing, and why in `error`, for any other text.
std::optional<Placement> parsePlacement(StringRef text, std::string &error);

/// The sharding of a tensor of rank `rank` that is placed by `placement` along
/// `axis` and replicated along all other dimensions of `mesh`. A Shard's
/// dimension must be in [0, rank).
ShardingAttr getSharding(const Placement &placement, FlatSymbolRefAttr mesh,
                         StringRef axis, int64_t rank);

} // namespace mlir::tp::plan

#endif // TP_PLAN_PLACEMENT_H
