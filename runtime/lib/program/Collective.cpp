//===- Collective.cpp - What collectives do -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Collective.h"

#include <algorithm>

using namespace tprt;

static constexpr std::string_view kindNames[] = {
    "all_gather", "reduce_scatter", "all_reduce", "all_to_all",
    "permute",    "broadcast",      "exchange"};
static constexpr std::string_view reductionNames[] = {"sum", "avg", "max",
                                                      "min", "product"};

std::string_view tprt::toString(CollectiveKind kind) {
  return kindNames[static_cast<size_t>(kind)];
}
std::string_view tprt::toString(Reduction reduction) {
  return reductionNames[static_cast<size_t>(reduction)];
}

std::string tprt::describe(const Collective &collective, int64_t id) {
  std::string text = "collective " + std::to_string(id) + " (" +
                     std::string(toString(collective.kind));
  if (!collective.fqn.empty())
    text += " of '" + collective.fqn + "'";
  return text + ")";
}

std::optional<int64_t> Collective::getCutDim() const {
  if (kind == CollectiveKind::ReduceScatter)
    return dim;
  if (kind == CollectiveKind::AllToAll)
    return splitDim;
  return std::nullopt;
}

std::optional<int64_t> Collective::getJoinedDim() const {
  if (kind == CollectiveKind::AllGather)
    return dim;
  if (kind == CollectiveKind::AllToAll)
    return concatDim;
  return std::nullopt;
}

const std::vector<int64_t> *Collective::getGroup(int64_t rank) const {
  for (const std::vector<int64_t> &group : groups)
    if (std::find(group.begin(), group.end(), rank) != group.end())
      return &group;
  return nullptr;
}

std::vector<Transfer> tprt::getTransfers(const Collective &collective,
                                         int64_t rank) {
  if (collective.kind == CollectiveKind::Exchange)
    return collective.transfers[rank];
  const std::vector<int64_t> &group = *collective.getGroup(rank);
  auto self = std::find(group.begin(), group.end(), rank);
  const Shape &result = collective.resultShapes[rank];
  Shape zero(result.size(), 0);
  if (collective.kind == CollectiveKind::Permute)
    return {
        {group[collective.source[self - group.begin()]], zero, zero, result}};
  if (collective.kind == CollectiveKind::Broadcast)
    return {{group[collective.root], zero, zero, result}};

  // This rank's block of each operand follows those of the earlier members.
  Shape src = zero, dst = zero, size = result;
  if (std::optional<int64_t> cut = collective.getCutDim())
    for (auto member = group.begin(); member != self; ++member)
      src[*cut] += collective.resultShapes[*member][*cut];
  std::vector<Transfer> transfers;
  for (int64_t member : group) {
    std::optional<int64_t> joined = collective.getJoinedDim();
    if (joined)
      size[*joined] = collective.operandShapes[member][*joined];
    transfers.push_back({member, src, dst, size});
    if (joined)
      dst[*joined] += size[*joined];
  }
  return transfers;
}

int64_t tprt::getReceivedBytes(const Collective &collective, int64_t rank) {
  int64_t elements = 0;
  if (collective.kind == CollectiveKind::AllReduce) {
    // A reduce-scatter over flat chunks, then an all-gather.
    const std::vector<int64_t> &group = *collective.getGroup(rank);
    int64_t n = group.size();
    int64_t position =
        std::find(group.begin(), group.end(), rank) - group.begin();
    int64_t total = numElements(collective.operandShapes[rank]);
    int64_t chunk = (total + n - 1) / n;
    int64_t own = std::clamp<int64_t>(total - position * chunk, 0, chunk);
    elements = own * (n - 1) + total - own;
  } else {
    for (const Transfer &transfer : getTransfers(collective, rank))
      elements += transfer.from == rank ? 0 : numElements(transfer.size);
  }
  return elements * byteWidth(collective.dtype);
}
