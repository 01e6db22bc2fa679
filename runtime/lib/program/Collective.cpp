//===- Collective.cpp - Rules of collectives ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Collective.h"

#include "support/Division.h"

#include <algorithm>

using namespace tprt;

static constexpr DimField dim = {"dim", &Collective::dim};
static constexpr DimField splitDim = {"split_dim", &Collective::splitDim};
static constexpr DimField concatDim = {"concat_dim", &Collective::concatDim};

/// Indexed by kind.
static constexpr CollectiveRule rules[] = {
    {.name = "all_gather", .joined = dim},
    {.name = "reduce_scatter", .isReduction = true, .cut = dim},
    {.name = "all_reduce", .isReduction = true},
    {.name = "all_to_all", .cut = splitDim, .joined = concatDim},
    {.name = "permute", .origin = CollectiveRule::Source},
    {.name = "broadcast", .origin = CollectiveRule::Root},
    {.name = "exchange", .origin = CollectiveRule::Boxes},
    {.name = "halo", .origin = CollectiveRule::Boxes},
    {.name = "transfer", .origin = CollectiveRule::Boxes}};
static_assert(std::size(rules) == static_cast<size_t>(lastCollectiveKind) + 1);

static constexpr std::string_view reductionNames[] = {"sum", "avg", "max",
                                                      "min", "product"};

const CollectiveRule &tprt::getRule(CollectiveKind kind) {
  return rules[static_cast<size_t>(kind)];
}

std::string_view tprt::toString(CollectiveKind kind) {
  return getRule(kind).name;
}
std::string_view tprt::toString(Reduction reduction) {
  return reductionNames[static_cast<size_t>(reduction)];
}

std::string tprt::describe(const Collective &collective) {
  std::string text(toString(collective.kind));
  if (!collective.fqn.empty())
    text += " of '" + collective.fqn + "'";
  return text;
}

bool Collective::isReduction() const { return getRule(kind).isReduction; }

static std::optional<int64_t> getDim(const Collective &collective,
                                     const std::optional<DimField> &field) {
  if (!field)
    return std::nullopt;
  return collective.*field->member;
}

std::optional<int64_t> Collective::getCutDim() const {
  return getDim(*this, getRule(kind).cut);
}

std::optional<int64_t> Collective::getJoinedDim() const {
  return getDim(*this, getRule(kind).joined);
}

std::optional<int64_t> Collective::getSource(int64_t position) const {
  switch (getRule(kind).origin) {
  case CollectiveRule::Root:
    return root;
  case CollectiveRule::Source:
    return source[position];
  case CollectiveRule::Members:
  case CollectiveRule::Boxes:
    break;
  }
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
  if (getRule(collective.kind).origin == CollectiveRule::Boxes)
    return collective.transfers[rank];
  const std::vector<int64_t> &group = *collective.getGroup(rank);
  auto self = std::find(group.begin(), group.end(), rank);
  const Shape &result = collective.resultShapes[rank];
  Shape zero(result.size(), 0);
  std::vector<int64_t> members = group;
  if (std::optional<int64_t> source =
          collective.getSource(self - group.begin()))
    members = {group[*source]};

  // This rank's block of each operand follows those of the earlier members.
  Shape src = zero, dst = zero, size = result;
  if (std::optional<int64_t> cut = collective.getCutDim())
    for (auto member = group.begin(); member != self; ++member)
      src[*cut] += collective.resultShapes[*member][*cut];
  std::vector<Transfer> transfers;
  for (int64_t member : members) {
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
  if (collective.isReduction() && !collective.getCutDim()) {
    // A reduce-scatter over flat chunks, then an all-gather.
    const std::vector<int64_t> &group = *collective.getGroup(rank);
    int64_t n = group.size();
    int64_t position =
        std::find(group.begin(), group.end(), rank) - group.begin();
    int64_t total = numElements(collective.operandShapes[rank]);
    int64_t chunk = divideCeil(total, n);
    int64_t own = std::clamp<int64_t>(total - position * chunk, 0, chunk);
    elements = own * (n - 1) + total - own;
  } else {
    for (const Transfer &transfer : getTransfers(collective, rank))
      elements += transfer.from == rank ? 0 : numElements(transfer.size);
  }
  int64_t bytes = elements * byteWidth(collective.dtype);
  if (collective.hasSparseRows && elements)
    bytes += elements / collective.getRowElements();
  return bytes;
}
