//===- Manifest.cpp - Manifests of artifacts ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Manifest.h"

#include "support/Json.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace tprt;
using nlohmann::json;

static constexpr int64_t maxWorldSize = 4096;

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
           (minimum == maximum ? "" : " to " + std::to_string(maximum)));
    return number;
  }
  bool getBool() const {
    require(value.is_boolean(), "true or false");
    return value.get<bool>();
  }
  /// A number that an element of `dtype` can hold.
  double getElement(Dtype dtype) const {
    require(value.is_number(), "a number");
    double number = value.get<double>();
    bool fits = true;
    if (dtype == Dtype::I1)
      fits = number == 0 || number == 1;
    else if (!isFloat(dtype)) {
      // Doubles hold these integers exactly.
      double bound = dtype == Dtype::UI8 ? 255
                     : dtype == Dtype::I64
                         ? 0x1p53
                         : std::exp2(8 * byteWidth(dtype) - 1) - 1;
      double lowest = dtype == Dtype::UI8   ? 0
                      : dtype == Dtype::I64 ? -bound
                                            : -bound - 1;
      fits =
          std::trunc(number) == number && lowest <= number && number <= bound;
    }
    if (!fits)
      fail("found " + value.dump() + ", which isn't of type " +
           std::string(tprt::toString(dtype)));
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
  /// The value of an Enum by its name; `last` is the Enum's last value.
  template <typename Enum>
  Enum getEnum(Enum last) const {
    std::string name = getString();
    std::vector<std::string> known;
    for (size_t i = 0; i <= static_cast<size_t>(last); ++i) {
      known.emplace_back(tprt::toString(static_cast<Enum>(i)));
      if (known.back() == name)
        return static_cast<Enum>(i);
    }
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

  /// One shape for each rank, all with the same number of dimensions.
  std::vector<Shape> getShapes(int64_t worldSize) const {
    std::vector<Shape> shapes;
    for (const Node &node : getArrayOf(worldSize)) {
      shapes.push_back(node.getShape());
      if (shapes.back().size() != shapes.front().size())
        node.fail("has " + std::to_string(shapes.back().size()) +
                  " dimensions, the first shape has " +
                  std::to_string(shapes.front().size()));
    }
    return shapes;
  }
  /// The elements of an array with one for each rank.
  std::vector<Node> getArrayOf(int64_t worldSize) const {
    std::vector<Node> nodes = getArray();
    if (static_cast<int64_t>(nodes.size()) != worldSize)
      fail("has " + std::to_string(nodes.size()) +
           " entries, expected one for each of " + std::to_string(worldSize) +
           " ranks");
    return nodes;
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

/// The pieces of [offset, size, offset, size, …], empty ones left out and
/// adjacent ones joined.
static std::vector<Piece> parsePieces(const Node &node, int64_t dimSize) {
  std::vector<int64_t> numbers = node.getInts(0, dimSize);
  if (numbers.empty() || numbers.size() % 2 != 0)
    node.fail("has " + std::to_string(numbers.size()) +
              " entries, expected pairs of offset and size");
  std::vector<Piece> pieces;
  int64_t end = 0; // of the previous piece
  for (size_t i = 0; i < numbers.size(); i += 2) {
    Piece piece{numbers[i], numbers[i + 1]};
    std::string text = "[" + std::to_string(piece.offset) + ", " +
                       std::to_string(piece.size) + "]";
    if (piece.size > dimSize - piece.offset)
      node.fail(text + " exceeds the dimension's size " +
                std::to_string(dimSize));
    if (piece.offset < end)
      node.fail(text + " begins before the end of the piece before it, " +
                std::to_string(end));
    end = piece.offset + piece.size;
    if (piece.size == 0)
      continue;
    if (!pieces.empty() &&
        pieces.back().offset + pieces.back().size == piece.offset)
      pieces.back().size += piece.size;
    else
      pieces.push_back(piece);
  }
  return pieces;
}

static Block parseBlock(const Node &node, const Shape &shape) {
  std::vector<Node> dims = node.getArray();
  if (dims.size() != shape.size())
    node.fail("has " + std::to_string(dims.size()) + " dimensions, expected " +
              std::to_string(shape.size()));
  Block block;
  for (size_t d = 0; d < shape.size(); ++d)
    block.dims.push_back(parsePieces(dims[d], shape[d]));
  return block;
}

/// Checks that each element belongs to at least one rank's shard.
static void checkCovered(const TensorInfo &info, const std::string &kind) {
  if (!info.neutralRanks.empty())
    throw inputError("manifest: " + kind + " '" + info.name + "' is Partial");
  int64_t covered = 0;
  try {
    covered = countCovered(info.shards);
  } catch (const Error &error) {
    throw inputError("manifest: the shards of " + kind + " '" + info.name +
                     "': " + error.what());
  }
  if (covered != numElements(info.shape))
    throw inputError("manifest: the shards of " + kind + " '" + info.name +
                     "' cover " + std::to_string(covered) + " elements of " +
                     std::to_string(numElements(info.shape)));
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
    for (const Node &shard : node["shards"].getArrayOf(worldSize))
      info.shards.push_back(parseBlock(shard, info.shape));
    if (!node.has("neutral"))
      continue;
    info.neutralElement = node["neutral"]["element"].getInt(0, 1);
    info.neutralRanks = node["neutral"]["ranks"].getInts(0, worldSize - 1);
    if (!std::is_sorted(info.neutralRanks.begin(), info.neutralRanks.end(),
                        std::less_equal<>()))
      node["neutral"]["ranks"].fail("isn't ascending");
  }
  return tensors;
}

/// Parses the members that only parameters have: whether they are updated, and
/// their initial values.
static void parseUpdates(const Node &list, std::vector<TensorInfo> &infos) {
  std::vector<Node> nodes = list.getArray();
  for (size_t i = 0; i < nodes.size(); ++i) {
    TensorInfo &info = infos[i];
    if (nodes[i].has("init"))
      info.init = nodes[i]["init"].getElement(info.dtype);
    if (!nodes[i].has("updated"))
      continue;
    info.isUpdated = nodes[i]["updated"].getBool();
    if (info.isUpdated)
      checkCovered(info, "updated parameter");
  }
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

static std::string toText(const std::vector<int64_t> &numbers) {
  return json(numbers).dump();
}

static void checkShape(const Node &shapes, int64_t rank, const Shape &found,
                       const Shape &required, const Collective &collective,
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
static void checkGroupShapes(const Node &node, const Collective &collective,
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
static void checkWholeShapes(const Node &node, const Collective &collective,
                             const std::vector<int64_t> &group) {
  for (size_t position = 0; position < group.size(); ++position) {
    int64_t from = group[*collective.getSource(position)];
    checkShape(node["result_shapes"], group[position],
               collective.resultShapes[group[position]],
               collective.operandShapes[from], collective, group);
  }
}

/// A list of integers in [0, bounds[i] - (sizes[i] or 0)], one per dimension.
static Shape parseIndex(const Node &node, const Shape &bounds,
                        const Shape *sizes = nullptr) {
  std::vector<Node> dims = node.getArray();
  if (dims.size() != bounds.size())
    node.fail("has " + std::to_string(dims.size()) + " entries, expected " +
              std::to_string(bounds.size()));
  Shape index;
  for (size_t d = 0; d < bounds.size(); ++d)
    index.push_back(dims[d].getInt(0, bounds[d] - (sizes ? (*sizes)[d] : 0)));
  return index;
}

static Transfer parseTransfer(const Node &node, const Collective &collective,
                              int64_t rank) {
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
static void parseTransfers(const Node &list, Collective &collective) {
  std::vector<Node> nodes = list.getArrayOf(collective.resultShapes.size());
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    std::vector<Transfer> &transfers = collective.transfers.emplace_back();
    if (!collective.getGroup(rank)) {
      if (!nodes[rank].getArray().empty())
        nodes[rank].fail("rank " + std::to_string(rank) + " is in no group");
      continue;
    }
    int64_t total = numElements(collective.resultShapes[rank]), sum = 0;
    std::vector<Block> boxes;
    for (const Node &node : nodes[rank].getArray()) {
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

static Collective parseCollective(const Node &node, int64_t worldSize) {
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

  for (const Node &bytes : node["bytes_by_rank"].getArrayOf(worldSize)) {
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

static OpInfo parseOp(const Node &node) {
  OpInfo op;
  op.fqn = node["fqn"].getString();
  op.op = node["op"].getString();
  op.kind = node["kind"].getString();
  op.flops = node["flops"].getInt(0, INT64_MAX);
  op.bytes = node["bytes"].getInt(0, INT64_MAX);
  if (node.has("dtype"))
    op.dtype = node["dtype"].getDtype();
  if (node.has("product")) {
    Node product = node["product"];
    auto get = [&](const char *name, auto... fields) {
      std::vector<int64_t> values = product[name].getInts(0, INT64_MAX / 2);
      if (values.size() != sizeof...(fields))
        product[name].fail("found " + std::to_string(values.size()) +
                           " numbers, expected " +
                           std::to_string(sizeof...(fields)));
      size_t i = 0;
      ((*fields = values[i++]), ...);
    };
    tprt_gemm_args &args = op.product.emplace();
    get("sizes", &args.m, &args.n, &args.k);
    get("batch", &args.batch0, &args.batch1);
    get("a", &args.a_row, &args.a_col, &args.a_b0, &args.a_b1);
    get("b", &args.b_row, &args.b_col, &args.b_b0, &args.b_b1);
    get("c", &args.c_row, &args.c_b0, &args.c_b1);
    op.isWeight = product["weight"].getBool();
    for (int64_t size :
         {args.m, args.n, args.k, args.batch0, args.batch1, args.a_row,
          args.a_col, args.b_row, args.b_col, args.c_row})
      if (size > INT32_MAX)
        product.fail("found " + std::to_string(size) +
                     " as a size or stride, expected at most " +
                     std::to_string(INT32_MAX));
  }
  return op;
}

Manifest Manifest::parse(std::string_view text) {
  json document;
  try {
    document = parseJson(text);
  } catch (const Error &error) {
    throw inputError(std::string("manifest: ") + error.what());
  }
  Node root(document, "");
  int64_t schema = root["schema"].getInt(0, INT64_MAX);
  if (schema != TPRT_MANIFEST_SCHEMA)
    throw inputError("manifest: schema " + std::to_string(schema) +
                     ", expected " + std::to_string(TPRT_MANIFEST_SCHEMA));

  Manifest manifest;
  manifest.producer = root["producer"].getString();
  manifest.entry = root["entry"].getString();
  Node target = root["target"];
  manifest.triple = target["triple"].getString();
  manifest.features = target["features"].getStrings();
  if (target.has("variants"))
    for (const Node &variant : target["variants"].getArray())
      manifest.variants.push_back(
          {variant["entry"].getString(), variant["features"].getStrings()});

  if (target.has("device")) {
    if (std::string device = target["device"].getString(); device != "cuda")
      target["device"].fail("found '" + device + "', expected 'cuda'");
    manifest.isForCuda = true;
    manifest.architectures = target["architectures"].getInts(0, 1000);
  }

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
  parseUpdates(root["parameters"], manifest.parameters);
  manifest.outputs = parseTensors(root["outputs"], manifest.worldSize);
  for (const TensorInfo &output : manifest.outputs)
    checkCovered(output, "output");
  for (const Node &node : root["collectives"].getArray())
    manifest.collectives.push_back(parseCollective(node, manifest.worldSize));
  for (const Node &node : root["ops"].getArray())
    manifest.ops.push_back(parseOp(node));
  return manifest;
}

bool Manifest::isTraining() const {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const TensorInfo &info) { return info.isUpdated; });
}
