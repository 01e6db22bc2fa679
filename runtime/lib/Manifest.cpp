//===- Manifest.cpp - What an artifact says about itself -----------------===//

#include "tprt/Manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

using namespace tprt;
using nlohmann::json;

static constexpr int64_t supportedSchema = 1;
static constexpr int64_t maxWorldSize = 4096;

static constexpr std::string_view kindNames[] = {"all_gather", "reduce_scatter",
                                                 "all_reduce", "all_to_all",
                                                 "permute",    "broadcast"};
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

namespace {

/// A JSON value and its path, which diagnostics begin with.
class Node {
public:
  Node(const json &value, std::string path)
      : value(value), path(std::move(path)) {}

  [[noreturn]] void fail(const std::string &message) const {
    throw inputError("manifest: " + path + ": " + message);
  }

  Node operator[](const char *key) const {
    require(value.is_object(), "an object");
    auto found = value.find(key);
    if (found == value.end())
      throw inputError("manifest: missing '" + join(key) + "'");
    return {*found, join(key)};
  }
  bool has(const char *key) const { return value.contains(key); }

  std::vector<Node> getArray() const {
    require(value.is_array(), "an array");
    std::vector<Node> nodes;
    for (size_t i = 0; i < value.size(); ++i)
      nodes.emplace_back(value[i], path + "[" + std::to_string(i) + "]");
    return nodes;
  }
  std::string getString() const {
    require(value.is_string(), "a string");
    return value.get<std::string>();
  }
  int64_t getInt(int64_t minimum, int64_t maximum) const {
    require(value.is_number_integer(), "an integer");
    bool fits =
        !value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX;
    int64_t number = fits ? value.get<int64_t>() : 0;
    if (!fits || number < minimum || number > maximum)
      fail("found " + value.dump() + ", expected " + std::to_string(minimum) +
           " to " + std::to_string(maximum));
    return number;
  }
  std::vector<int64_t> getInts(int64_t minimum, int64_t maximum) const {
    std::vector<int64_t> numbers;
    for (const Node &node : getArray())
      numbers.push_back(node.getInt(minimum, maximum));
    return numbers;
  }
  std::vector<std::string> getStrings() const {
    std::vector<std::string> strings;
    for (const Node &node : getArray())
      strings.push_back(node.getString());
    return strings;
  }
  /// The value's index among `names`, as an Enum.
  template <typename Enum, size_t N>
  Enum getEnum(const std::string_view (&names)[N]) const {
    std::string name = getString();
    for (size_t i = 0; i < N; ++i)
      if (names[i] == name)
        return static_cast<Enum>(i);
    std::vector<std::string> known(std::begin(names), std::end(names));
    fail("found '" + name + "', expected one of " + quotedList(known));
  }
  Dtype getDtype() const {
    std::string name = getString();
    if (std::optional<Dtype> dtype = parseDtype(name))
      return *dtype;
    fail("unknown dtype '" + name + "'");
  }
  Shape getShape() const {
    Shape shape = getInts(0, INT64_MAX);
    if (!checkedNumElements(shape))
      fail("shape " + value.dump() + " is too large");
    return shape;
  }

private:
  void require(bool holds, const char *what) const {
    if (!holds)
      fail(std::string("expected ") + what + ", found " +
           value.dump().substr(0, 60));
  }
  std::string join(const char *key) const {
    return path.empty() ? key : path + "." + key;
  }

  const json &value;
  std::string path;
};

} // namespace

static Block parseBlock(const Node &node, const Shape &shape) {
  std::vector<Node> dims = node.getArray();
  if (dims.size() != shape.size())
    node.fail("has " + std::to_string(dims.size()) + " dimensions, expected " +
              std::to_string(shape.size()));
  Block block;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<int64_t> range = dims[d].getInts(0, shape[d]);
    if (range.size() != 2)
      dims[d].fail("expected [offset, size]");
    if (range[1] > shape[d] - range[0])
      dims[d].fail(
          "[" + std::to_string(range[0]) + ", " + std::to_string(range[1]) +
          "] exceeds the dimension's size " + std::to_string(shape[d]));
    block.offset.push_back(range[0]);
    block.size.push_back(range[1]);
  }
  return block;
}

static std::vector<TensorInfo> parseTensors(const Node &list,
                                            int64_t worldSize) {
  std::vector<TensorInfo> tensors;
  std::set<std::string> names;
  for (const Node &node : list.getArray()) {
    TensorInfo &info = tensors.emplace_back();
    info.name = node["name"].getString();
    if (!names.insert(info.name).second)
      node.fail("'" + info.name + "' is listed twice");
    info.dtype = node["dtype"].getDtype();
    info.shape = node["shape"].getShape();
    if (node.has("placements"))
      info.placements = node["placements"].getStrings();
    std::vector<Node> shards = node["shards"].getArray();
    if (static_cast<int64_t>(shards.size()) != worldSize)
      node["shards"].fail("has " + std::to_string(shards.size()) +
                          " entries, expected one for each of " +
                          std::to_string(worldSize) + " ranks");
    for (const Node &shard : shards)
      info.shards.push_back(parseBlock(shard, info.shape));
  }
  return tensors;
}

/// Every element of an output comes from some rank. Distinct blocks of a
/// sharding are disjoint, so volumes tell.
static void checkCovered(const TensorInfo &output) {
  int64_t covered = 0;
  for (size_t r = 0; r < output.shards.size(); ++r) {
    auto end = output.shards.begin() + r;
    if (std::find(output.shards.begin(), end, output.shards[r]) == end)
      covered += numElements(output.shards[r].size);
  }
  if (covered != numElements(output.shape))
    throw inputError("manifest: the shards of output '" + output.name +
                     "' cover " + std::to_string(covered) + " elements of " +
                     std::to_string(numElements(output.shape)));
}

static void parseGroups(const Node &node, int64_t worldSize,
                        Collective &collective) {
  std::set<int64_t> seen;
  for (const Node &group : node.getArray()) {
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

/// The result shape that the operand's implies; fails where the kind doesn't
/// allow the operand.
static Shape inferResultShape(const Node &node, const Collective &collective) {
  int64_t n = collective.groups.front().size();
  Shape shape = collective.operandShape;
  auto cut = [&](int64_t dim) {
    if (shape[dim] % n != 0)
      node.fail("operand dimension " + std::to_string(dim) + " of size " +
                std::to_string(shape[dim]) + " can't be cut into " +
                std::to_string(n) + " equal blocks");
    shape[dim] /= n;
  };
  switch (collective.kind) {
  case CollectiveKind::AllGather:
    shape[collective.dim] *= n;
    break;
  case CollectiveKind::ReduceScatter:
    cut(collective.dim);
    break;
  case CollectiveKind::AllToAll:
    cut(collective.splitDim);
    shape[collective.concatDim] *= n;
    break;
  case CollectiveKind::AllReduce:
  case CollectiveKind::Permute:
  case CollectiveKind::Broadcast:
    break;
  }
  return shape;
}

static Collective parseCollective(const Node &node, int64_t worldSize) {
  Collective collective;
  collective.kind = node["kind"].getEnum<CollectiveKind>(kindNames);
  collective.dtype = node["dtype"].getDtype();
  collective.operandShape = node["operand_shape"].getShape();
  collective.resultShape = node["result_shape"].getShape();
  parseGroups(node["groups"], worldSize, collective);
  int64_t groupSize = collective.groups.front().size();
  int64_t lastDim = static_cast<int64_t>(collective.operandShape.size()) - 1;

  switch (collective.kind) {
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
    collective.dim = node["dim"].getInt(0, lastDim);
    break;
  case CollectiveKind::AllToAll:
    collective.splitDim = node["split_dim"].getInt(0, lastDim);
    collective.concatDim = node["concat_dim"].getInt(0, lastDim);
    break;
  case CollectiveKind::Permute:
    collective.source = node["source"].getInts(0, groupSize - 1);
    if (static_cast<int64_t>(collective.source.size()) != groupSize)
      node["source"].fail("has " + std::to_string(collective.source.size()) +
                          " entries, expected the group's size " +
                          std::to_string(groupSize));
    break;
  case CollectiveKind::Broadcast:
    collective.root = node["root"].getInt(0, groupSize - 1);
    break;
  case CollectiveKind::AllReduce:
    break;
  }
  if (collective.kind == CollectiveKind::AllReduce ||
      collective.kind == CollectiveKind::ReduceScatter) {
    collective.reduction = node["reduction"].getEnum<Reduction>(reductionNames);
    if (collective.dtype == Dtype::I1 &&
        (collective.reduction == Reduction::Sum ||
         collective.reduction == Reduction::Avg))
      node["reduction"].fail("i1 has max, min and product, found '" +
                             std::string(toString(collective.reduction)) + "'");
  }

  Shape required = inferResultShape(node, collective);
  if (collective.resultShape != required)
    node["result_shape"].fail("found " + json(collective.resultShape).dump() +
                              ", expected " + json(required).dump() + " for " +
                              std::string(toString(collective.kind)) + " of " +
                              json(collective.operandShape).dump() + " over " +
                              std::to_string(groupSize) + " ranks");
  collective.bytesByRank = node["bytes_by_rank"].getInts(0, INT64_MAX);
  if (static_cast<int64_t>(collective.bytesByRank.size()) != worldSize)
    node["bytes_by_rank"].fail(
        "has " + std::to_string(collective.bytesByRank.size()) +
        " entries, expected " + std::to_string(worldSize));
  if (node.has("axes"))
    collective.axes = node["axes"].getStrings();
  if (node.has("fqn"))
    collective.fqn = node["fqn"].getString();
  if (node.has("reason"))
    collective.reason = node["reason"].getString();
  return collective;
}

Manifest Manifest::parse(std::string_view text) {
  json document;
  try {
    document = json::parse(text);
  } catch (const json::exception &error) {
    throw inputError(std::string("manifest: malformed JSON: ") + error.what());
  }
  Node root(document, "");
  int64_t schema = root["schema"].getInt(0, INT64_MAX);
  if (schema != supportedSchema)
    throw inputError("manifest: schema " + std::to_string(schema) +
                     ", expected " + std::to_string(supportedSchema));

  Manifest manifest;
  manifest.producer = root["producer"].getString();
  manifest.entry = root["entry"].getString();
  Node target = root["target"];
  manifest.triple = target["triple"].getString();
  manifest.features = target["features"].getStrings();

  manifest.worldSize = root["world_size"].getInt(1, maxWorldSize);
  Node mesh = root["mesh"];
  manifest.meshName = mesh["name"].getString();
  int64_t meshSize = 1;
  for (const Node &axis : mesh["axes"].getArray()) {
    manifest.axes.push_back(
        {axis["name"].getString(), axis["size"].getInt(1, maxWorldSize)});
    meshSize = std::min(meshSize * manifest.axes.back().size, maxWorldSize + 1);
  }
  if (meshSize != manifest.worldSize)
    root["world_size"].fail("found " + std::to_string(manifest.worldSize) +
                            ", but the mesh's axes hold " +
                            std::to_string(meshSize) + " ranks");

  manifest.arenaBytes = root["arena_bytes"].getInt(0, INT64_MAX / 2);
  manifest.inputs = parseTensors(root["inputs"], manifest.worldSize);
  manifest.parameters = parseTensors(root["parameters"], manifest.worldSize);
  manifest.outputs = parseTensors(root["outputs"], manifest.worldSize);
  for (const TensorInfo &output : manifest.outputs)
    checkCovered(output);
  for (const Node &node : root["collectives"].getArray())
    manifest.collectives.push_back(parseCollective(node, manifest.worldSize));
  return manifest;
}
