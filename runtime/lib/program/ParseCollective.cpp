//===- ParseCollective.cpp - The collectives of a manifest ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "program/ParseCollective.h"

#include <algorithm>
#include <set>

using namespace tprt;

static void parseGroups(const ManifestNode &node, int64_t worldSize,
                        Collective &collective) {
  std::set<int64_t> seen;
  for (const ManifestNode &group : node.getArray()) {
    collective.groups.push_back(group.getInts(0, worldSize - 1));
    if (collective.groups.back().empty())
      group.fail("is empty");
    if (collective.groups.back().size() != collective.groups.front().size())
      group.fail("has another size than the first group");
    for (int64_t rank : collective.groups.back())
      if (!seen.insert(rank).second)
        group.fail("rank " + std::to_string(rank) + " is in two groups");
  }
  if (collective.groups.empty())
    node.fail("is empty");
}

static std::string toText(const std::vector<int64_t> &numbers) {
  return nlohmann::json(numbers).dump();
}

static void checkShape(const ManifestNode &shapes, int64_t rank,
                       const Shape &found, const Shape &required,
                       const Collective &collective,
                       const std::vector<int64_t> &group) {
  if (found != required)
    shapes.getArray()[rank].fail("found " + toText(found) + ", expected " +
                                 toText(required) + " for " +
                                 std::string(toString(collective.kind)) +
                                 " among ranks " + toText(group));
}

/// The sum of the members' sizes along `dim`.
static int64_t sumSizes(const std::vector<int64_t> &group,
                        const std::vector<Shape> &shapes, int64_t dim) {
  int64_t sum = 0;
  for (int64_t rank : group)
    if (__builtin_add_overflow(sum, shapes[rank][dim], &sum))
      return INT64_MAX;
  return sum;
}

/// Checks that the members' operands have the same shape, except along the
/// dimension in which they are joined. Likewise, the results have the same
/// shape, except along the dimension that is cut.
static void checkGroupShapes(const ManifestNode &node,
                             const Collective &collective,
                             const std::vector<int64_t> &group) {
  Shape operand = collective.operandShapes[group.front()], result = operand;
  std::optional<int64_t> joined = collective.getJoinedDim();
  std::optional<int64_t> cut = collective.getCutDim();
  if (joined)
    result[*joined] = sumSizes(group, collective.operandShapes, *joined);
  for (int64_t rank : group) {
    if (joined)
      operand[*joined] = collective.operandShapes[rank][*joined];
    if (cut)
      result[*cut] = collective.resultShapes[rank][*cut];
    checkShape(node["operand_shapes"], rank, collective.operandShapes[rank],
               operand, collective, group);
    checkShape(node["result_shapes"], rank, collective.resultShapes[rank],
               result, collective, group);
  }
  if (!cut)
    return;
  int64_t sum = sumSizes(group, collective.resultShapes, *cut);
  if (sum != operand[*cut])
    node["result_shapes"].fail(
        "the blocks of ranks " + toText(group) + " have " +
        std::to_string(sum) + " indices along dimension " +
        std::to_string(*cut) + ", expected the operands' " +
        std::to_string(operand[*cut]));
}

/// Checks that every member's result has the shape of its source's operand.
static void checkWholeShapes(const ManifestNode &node,
                             const Collective &collective,
                             const std::vector<int64_t> &group) {
  for (size_t position = 0; position < group.size(); ++position) {
    int64_t from = group[*collective.getSource(position)];
    checkShape(node["result_shapes"], group[position],
               collective.resultShapes[group[position]],
               collective.operandShapes[from], collective, group);
  }
}

/// A list of integers in [0, bounds[i] - (sizes[i] or 0)], one per dimension.
static Shape parseIndex(const ManifestNode &node, const Shape &bounds,
                        const Shape *sizes = nullptr) {
  std::vector<ManifestNode> dims = node.getArray();
  if (dims.size() != bounds.size())
    node.fail("has " + std::to_string(dims.size()) + " entries, expected " +
              std::to_string(bounds.size()));
  Shape index;
  for (size_t d = 0; d < bounds.size(); ++d)
    index.push_back(dims[d].getInt(0, bounds[d] - (sizes ? (*sizes)[d] : 0)));
  return index;
}

static Transfer parseTransfer(const ManifestNode &node,
                              const Collective &collective, int64_t rank) {
  const std::vector<int64_t> &group = *collective.getGroup(rank);
  Transfer transfer;
  transfer.from = node["from"].getInt(0, INT64_MAX);
  if (std::find(group.begin(), group.end(), transfer.from) == group.end())
    node["from"].fail("rank " + std::to_string(transfer.from) +
                      " is not in the group of rank " + std::to_string(rank));
  const Shape &operand = collective.operandShapes[transfer.from];
  const Shape &result = collective.resultShapes[rank];
  Shape smaller = operand;
  for (size_t d = 0; d < operand.size(); ++d)
    smaller[d] = std::min(operand[d], result[d]);
  transfer.size = parseIndex(node["size"], smaller);
  transfer.src = parseIndex(node["src"], operand, &transfer.size);
  transfer.dst = parseIndex(node["dst"], result, &transfer.size);
  return transfer;
}

/// Parses transfers, and checks that every element of every result is written
/// exactly once.
static void parseTransfers(const ManifestNode &list, Collective &collective) {
  std::vector<ManifestNode> nodes =
      list.getArrayOf(collective.resultShapes.size());
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    std::vector<Transfer> &transfers = collective.transfers.emplace_back();
    if (!collective.getGroup(rank)) {
      if (!nodes[rank].getArray().empty())
        nodes[rank].fail("rank " + std::to_string(rank) + " is in no group");
      continue;
    }
    int64_t total = numElements(collective.resultShapes[rank]), sum = 0;
    std::vector<Block> boxes;
    for (const ManifestNode &node : nodes[rank].getArray()) {
      const Transfer &transfer =
          transfers.emplace_back(parseTransfer(node, collective, rank));
      boxes.push_back(makeBox(transfer.dst, transfer.size));
      sum += numElements(transfer.size);
      if (sum > total)
        node.fail("the transfers so far hold " + std::to_string(sum) +
                  " elements, the result has " + std::to_string(total));
    }
    if (int64_t covered = countCovered(boxes); covered != total)
      nodes[rank].fail("fill " + std::to_string(covered) + " of " +
                       std::to_string(total) + " elements of the result");
  }
}

Collective tprt::parseCollective(const ManifestNode &node, int64_t worldSize) {
  Collective collective;
  collective.kind = node["kind"].getEnum(lastCollectiveKind);
  collective.dtype = node["dtype"].getDtype();
  collective.operandShapes = node["operand_shapes"].getShapes(worldSize);
  collective.resultShapes = node["result_shapes"].getShapes(worldSize);
  parseGroups(node["groups"], worldSize, collective);
  int64_t groupSize = collective.groups.front().size();
  int64_t rank = collective.operandShapes.front().size();
  if (int64_t found = collective.resultShapes.front().size(); found != rank)
    node["result_shapes"].fail("have " + std::to_string(found) +
                               " dimensions, the operands have " +
                               std::to_string(rank));

  const CollectiveRule &rule = getRule(collective.kind);
  for (const std::optional<DimField> &dim : {rule.cut, rule.joined})
    if (dim)
      collective.*dim->member = node[dim->name].getInt(0, rank - 1);
  if (rule.cut && rule.joined &&
      collective.getCutDim() == collective.getJoinedDim())
    node[rule.joined->name].fail(
        "found " + std::to_string(*collective.getJoinedDim()) +
        ", expected another dimension than " + rule.cut->name);
  switch (rule.origin) {
  case CollectiveRule::Source:
    collective.source = node["source"].getInts(0, groupSize - 1);
    if (static_cast<int64_t>(collective.source.size()) != groupSize)
      node["source"].fail("has " + std::to_string(collective.source.size()) +
                          " entries, expected the group's size " +
                          std::to_string(groupSize));
    break;
  case CollectiveRule::Root:
    collective.root = node["root"].getInt(0, groupSize - 1);
    break;
  case CollectiveRule::Boxes:
    parseTransfers(node["transfers"], collective);
    break;
  case CollectiveRule::Members:
    break;
  }
  if (collective.isReduction()) {
    collective.reduction = node["reduction"].getEnum(Reduction::Product);
    if (collective.dtype == Dtype::I1 &&
        (collective.reduction == Reduction::Sum ||
         collective.reduction == Reduction::Avg))
      node["reduction"].fail("i1 has max, min and product, found '" +
                             std::string(toString(collective.reduction)) + "'");
  }
  for (const std::vector<int64_t> &group : collective.groups) {
    if (rule.origin == CollectiveRule::Boxes) // checked already
      continue;
    if (collective.getSource(0) && !rule.cut)
      checkWholeShapes(node, collective, group);
    else
      checkGroupShapes(node, collective, group);
  }

  if (node.has("sparse_rows"))
    collective.hasSparseRows = node["sparse_rows"].getBool();
  if (collective.hasSparseRows &&
      (collective.kind != CollectiveKind::AllToAll ||
       collective.getCutDim() == rank - 1 ||
       collective.getJoinedDim() == rank - 1))
    node["sparse_rows"].fail("only an all_to_all that keeps the last dimension "
                             "has sparse rows");
  for (const ManifestNode &bytes :
       node["bytes_by_rank"].getArrayOf(worldSize)) {
    int64_t rank = collective.bytesByRank.size();
    int64_t required =
        collective.getGroup(rank) ? getReceivedBytes(collective, rank) : 0;
    collective.bytesByRank.push_back(bytes.getInt(required, required));
  }
  if (node.has("started"))
    collective.isStarted = node["started"].getBool();
  if (node.has("axes"))
    collective.axes = node["axes"].getStrings();
  if (node.has("fqn"))
    collective.fqn = node["fqn"].getString();
  if (node.has("reason"))
    collective.reason = node["reason"].getString();
  return collective;
}
