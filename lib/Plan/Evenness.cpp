//===- Evenness.cpp - Sizes that ranks don't divide -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every size can be split. But if the number of ranks doesn't divide it, the
// first ranks hold and compute more than the others, which wait for them.
//
//===----------------------------------------------------------------------===//

#include "Evenness.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Plan/Style.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

std::string plan::listDividingSizes(int64_t size, int64_t ranks) {
  int64_t below = size / ranks * ranks;
  std::string above = std::to_string(below + ranks);
  return below ? std::to_string(below) + " and " + above : above;
}

std::string plan::listDivisors(int64_t size) {
  std::string list;
  for (int64_t ranks = 2; ranks <= std::min<int64_t>(size, 1024); ++ranks)
    if (size % ranks == 0)
      list += (list.empty() ? "" : ", ") + std::to_string(ranks);
  return list.empty() ? "1" : list;
}

/// "3, 3, 3, 1", for at most eight ranks.
static std::string listChunks(int64_t size, int64_t ranks) {
  constexpr int64_t kMaxRanks = 8;
  int64_t chunk = llvm::divideCeil(size, ranks);
  std::string list;
  for (int64_t rank = 0; rank < std::min(ranks, kMaxRanks); ++rank)
    list += (rank ? ", " : "") +
            std::to_string(std::clamp<int64_t>(size - rank * chunk, 0, chunk));
  return ranks > kMaxRanks ? list + ", …" : list;
}

std::optional<Finding> plan::checkEvenness(const Placement &placement,
                                           RankedTensorType type,
                                           const Twine &tensor,
                                           const MeshGroup &group,
                                           FileLineColLoc loc) {
  SmallVector<int64_t> parts(placement.segments);
  int64_t size = type.getDimSize(placement.dim);
  if (parts.empty() && placement.blocks <= std::max<int64_t>(size, 1) &&
      size % placement.blocks == 0)
    parts.assign(placement.blocks, size / placement.blocks);
  auto *uneven =
      llvm::find_if(parts, [&](int64_t part) { return part % group.size; });
  if (uneven == parts.end())
    return std::nullopt;
  int64_t part = *uneven, longest = 0;
  for (int64_t one : parts)
    longest += llvm::divideCeil(one, group.size);
  std::string where = "dimension " + std::to_string(placement.dim) + " of ";
  Finding finding{"uneven", loc, "", "", ""};
  finding.message =
      where + tensor.str() +
      (parts.size() > 1 ? " has a segment of size " : " has size ") +
      std::to_string(part) + ", not divisible by " + group.describe() +
      ": its ranks get " + listChunks(part, group.size);
  // The excess of the longest block over the average.
  int64_t slice = getTensorBytes(type) / std::max<int64_t>(size, 1);
  int64_t extra = (longest * group.size - size) * slice / group.size;
  finding.cost = "the first ranks hold " + printBytes(extra) +
                 " more than an even split would give them";
  finding.edit =
      "use a size that divides evenly: " + listDividingSizes(part, group.size) +
      "; or a size of the mesh dimension that divides " + std::to_string(part) +
      ": " + listDivisors(part);
  return finding;
}
