//===- Collective.h - Rules of collectives ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The collectives of a program as its manifest describes them, and the
// transfers that they consist of: which box of which rank's operand goes where.
//
//===----------------------------------------------------------------------===//

#ifndef TPRT_COLLECTIVE_H
#define TPRT_COLLECTIVE_H

#include "tprt/Tensor.h"

#include <string>
#include <vector>

namespace tprt {

/// Each has a line in the table of Collective.cpp, which says what it does.
enum class CollectiveKind {
  AllGather,
  ReduceScatter,
  AllReduce,
  AllToAll,
  Permute,
  Broadcast,
  Exchange,
  Halo,
  Transfer
};
constexpr CollectiveKind lastCollectiveKind = CollectiveKind::Transfer;
enum class Reduction { Sum, Avg, Max, Min, Product };

TPRT_API std::string_view toString(CollectiveKind kind);
TPRT_API std::string_view toString(Reduction reduction);

/// A box that is copied from the operand of rank `from` to a result.
struct Transfer {
  int64_t from;
  Shape src; ///< first index in the operand
  Shape dst; ///< first index in the result
  Shape size;
};

/// A collective of the program. "Position" is a rank's index in its group.
struct Collective {
  CollectiveKind kind;
  Reduction reduction = Reduction::Sum;
  Dtype dtype;
  std::vector<Shape> operandShapes; ///< by rank
  std::vector<Shape> resultShapes;  ///< by rank
  int64_t dim = 0;
  int64_t splitDim = 0;
  int64_t concatDim = 0;
  int64_t root = 0;                             ///< position
  std::vector<int64_t> source;                  ///< permute: by position
  std::vector<std::vector<Transfer>> transfers; ///< of boxes, by rank
  std::vector<std::vector<int64_t>> groups;     ///< disjoint, of one size
  std::vector<std::string> axes;
  /// Rows of zeros, elements along the last dimension, needn't move: a receiver
  /// learns of each row whether it is zero, by one byte.
  bool hasSparseRows = false;
  std::vector<int64_t> bytesByRank; ///< predicted; of sparse rows a bound
  /// Some rank's program starts it and waits for it later.
  bool isStarted = false;
  std::string fqn;
  std::string reason;

  /// Whether the members' operands are reduced.
  TPRT_API bool isReduction() const;
  /// The dimension along which results are cut out of operands.
  TPRT_API std::optional<int64_t> getCutDim() const;
  /// The dimension along which operands are put together.
  TPRT_API std::optional<int64_t> getJoinedDim() const;
  /// The position of the only operand that the result at `position` is made of;
  /// nullopt if it is made of several.
  TPRT_API std::optional<int64_t> getSource(int64_t position) const;
  /// The number of elements of a sparse row.
  int64_t getRowElements() const {
    return operandShapes[groups.front().front()].back();
  }
  /// The group of `rank`; null when it is in none.
  TPRT_API const std::vector<int64_t> *getGroup(int64_t rank) const;
};

/// A dimension that a kind names, and its name in the manifest.
struct DimField {
  const char *name;
  int64_t Collective::*member;
};

/// What a kind of collective does.
struct CollectiveRule {
  /// The operands that a result is made of: those of all members, that of
  /// Collective::root, that at Collective::source, or the boxes in
  /// Collective::transfers.
  enum Origin { Members, Root, Source, Boxes };

  std::string_view name; ///< in manifests and reports
  bool isReduction = false;
  std::optional<DimField> cut = {};    ///< see Collective::getCutDim()
  std::optional<DimField> joined = {}; ///< see Collective::getJoinedDim()
  Origin origin = Members;
};
TPRT_API const CollectiveRule &getRule(CollectiveKind kind);

/// The boxes that make up the result of `rank`, a member of a group, in group
/// order. They include boxes of its own operand and cover each element once.
/// For a reduction, these are the boxes that are reduced, one from every
/// member.
TPRT_API std::vector<Transfer> getTransfers(const Collective &collective,
                                            int64_t rank);

/// Bytes that `rank`, a member of a group, receives from other ranks. Of sparse
/// rows, this is a bound, reached if no row is zero.
TPRT_API int64_t getReceivedBytes(const Collective &collective, int64_t rank);

/// "all_reduce of 'encoder.layer.0.output.dense'".
TPRT_API std::string describe(const Collective &collective);

} // namespace tprt

#endif // TPRT_COLLECTIVE_H
