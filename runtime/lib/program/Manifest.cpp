//===- Manifest.cpp - Manifests of artifacts ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/Manifest.h"

#include "program/ParseCollective.h"

#include <algorithm>
#include <set>

using namespace tprt;
using nlohmann::json;

static constexpr int64_t maxWorldSize = 4096;

/// The pieces of [offset, size, offset, size, …], empty ones left out and
/// adjacent ones joined.
static std::vector<Piece> parsePieces(const ManifestNode &node,
                                      int64_t dimSize) {
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

static Block parseBlock(const ManifestNode &node, const Shape &shape) {
  std::vector<ManifestNode> dims = node.getArray();
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

static std::vector<TensorInfo> parseTensors(const ManifestNode &list,
                                            int64_t worldSize) {
  std::vector<TensorInfo> tensors;
  std::set<std::string> names;
  for (const ManifestNode &node : list.getArray()) {
    TensorInfo &info = tensors.emplace_back();
    info.name = node["name"].getString();
    if (!names.insert(info.name).second)
      node.fail("'" + info.name + "' is listed twice");
    info.dtype = node["dtype"].getDtype();
    info.shape = node["shape"].getShape();
    if (node.has("placements"))
      info.placements = node["placements"].getStrings();
    for (const ManifestNode &shard : node["shards"].getArrayOf(worldSize))
      info.shards.push_back(parseBlock(shard, info.shape));
    if (node.has("symbolic_shape")) {
      ManifestNode sizes = node["symbolic_shape"];
      for (std::string &text : sizes.getStrings())
        info.symbolicShape.push_back(SymbolicSize::parse(std::move(text)));
      if (info.symbolicShape.size() != info.shape.size())
        sizes.fail("has " + std::to_string(info.symbolicShape.size()) +
                   " sizes, expected " + std::to_string(info.shape.size()));
    }
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
static void parseUpdates(const ManifestNode &list,
                         std::vector<TensorInfo> &infos) {
  std::vector<ManifestNode> nodes = list.getArray();
  for (size_t i = 0; i < nodes.size(); ++i) {
    TensorInfo &info = infos[i];
    if (nodes[i].has("init"))
      info.init = nodes[i]["init"].getElement(info.dtype);
    if (nodes[i].has("updated"))
      info.isUpdated = nodes[i]["updated"].getBool();
    info.isRightOperand = !info.isUpdated; // unless a program reads it itself
    if (info.isUpdated)
      checkCovered(info, "updated parameter");
  }
}

static OpInfo parseOp(const ManifestNode &node) {
  OpInfo op;
  op.fqn = node["fqn"].getString();
  op.op = node["op"].getString();
  op.kind = node["kind"].getString();
  op.flops = node["flops"].getInt(0, INT64_MAX);
  op.bytes = node["bytes"].getInt(0, INT64_MAX);
  if (node.has("dtype"))
    op.dtype = node["dtype"].getDtype();
  if (node.has("product")) {
    ManifestNode product = node["product"];
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

/// Finds the values of the symbols from the sizes of `tensors`.
static void findSymbols(const std::vector<TensorInfo> &tensors,
                        const ManifestNode &list,
                        std::map<std::string, int64_t> &symbols) {
  std::vector<ManifestNode> nodes = list.getArray();
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t d = 0; d < tensors[i].symbolicShape.size(); ++d) {
      const SymbolicSize &size = tensors[i].symbolicShape[d];
      if (!size.isLinear)
        continue;
      int64_t value = 0;
      if (!size.symbol.empty())
        value = symbols
                    .emplace(size.symbol,
                             size.solve(tensors[i].shape[d]).value_or(0))
                    .first->second;
      if (size.evaluate(value) != tensors[i].shape[d])
        nodes[i]["symbolic_shape"].getArray()[d].fail(
            "found '" + size.text + "' for a size of " +
            std::to_string(tensors[i].shape[d]) +
            (size.symbol.empty()
                 ? ""
                 : ", where " + size.symbol + " is " + std::to_string(value)));
    }
}

/// Says of the program's parameters which ones it also reads otherwise than as
/// right operands.
static void parseRightOperands(const ManifestNode &node, const Program &program,
                               std::vector<TensorInfo> &parameters) {
  std::vector<bool> isListed(program.parameters.size());
  if (node.has("right_operands"))
    for (int64_t position : node["right_operands"].getInts(
             0, static_cast<int64_t>(isListed.size()) - 1))
      isListed[position] = true;
  for (size_t i = 0; i < isListed.size(); ++i)
    if (!isListed[i])
      parameters[program.parameters[i]].isRightOperand = false;
}

/// Parses a program, and adds its collectives and ops to those of `manifest`.
static Program parseProgram(const ManifestNode &node, Manifest &manifest) {
  Program program;
  program.name = node["name"].getString();
  program.entries = node["entries"].getStrings();
  if (size_t expected = 1 + manifest.variants.size();
      program.entries.size() != expected)
    node["entries"].fail("has " + std::to_string(program.entries.size()) +
                         " functions, expected one for each of " +
                         std::to_string(expected) + " CPUs");
  if (manifest.isForCuda)
    program.deviceCode = node["device_code"].getString();
  program.arenaBytes = node["arena_bytes"].getInt(0, INT64_MAX / 2);
  program.inputs = parseTensors(node["inputs"], manifest.worldSize);
  program.outputs = parseTensors(node["outputs"], manifest.worldSize);
  for (const TensorInfo &output : program.outputs)
    checkCovered(output, "output");
  findSymbols(program.inputs, node["inputs"], program.symbols);
  findSymbols(program.outputs, node["outputs"], program.symbols);
  program.parameters = node["parameters"].getInts(
      0, static_cast<int64_t>(manifest.parameters.size()) - 1);
  parseRightOperands(node, program, manifest.parameters);
  program.collectives.first = manifest.collectives.size();
  for (const ManifestNode &each : node["collectives"].getArray())
    manifest.collectives.push_back(parseCollective(each, manifest.worldSize));
  program.collectives.count =
      manifest.collectives.size() - program.collectives.first;
  program.ops.first = manifest.ops.size();
  for (const ManifestNode &each : node["ops"].getArray())
    manifest.ops.push_back(parseOp(each));
  program.ops.count = manifest.ops.size() - program.ops.first;
  return program;
}

/// Whether the same tensors are inputs of both.
static bool takeTheSame(const Program &x, const Program &y) {
  auto getTypes = [](const Program &program) {
    std::map<std::string, std::string> types;
    for (const TensorInfo &info : program.inputs)
      types[info.name] = info.getTypeString();
    return types;
  };
  return getTypes(x) == getTypes(y);
}

static void parsePrograms(const ManifestNode &list, Manifest &manifest) {
  for (const ManifestNode &node : list.getArray()) {
    Program program = parseProgram(node, manifest);
    for (const Program &other : manifest.programs) {
      if (other.name == program.name)
        node.fail("'" + program.name + "' is listed twice");
      if (takeTheSame(other, program))
        node.fail("'" + program.name + "' takes the same inputs as '" +
                  other.name + "'");
    }
    manifest.programs.push_back(std::move(program));
  }
  if (manifest.programs.empty())
    list.fail("is empty");
}

Manifest Manifest::parse(std::string_view text) {
  json document;
  try {
    document = parseJson(text);
  } catch (const Error &error) {
    throw inputError(std::string("manifest: ") + error.what());
  }
  ManifestNode root(document, "");
  int64_t schema = root["schema"].getInt(0, INT64_MAX);
  if (schema != TPRT_MANIFEST_SCHEMA)
    throw inputError("manifest: schema " + std::to_string(schema) +
                     ", expected " + std::to_string(TPRT_MANIFEST_SCHEMA));

  Manifest manifest;
  manifest.producer = root["producer"].getString();
  ManifestNode target = root["target"];
  manifest.triple = target["triple"].getString();
  manifest.features = target["features"].getStrings();
  if (target.has("variants"))
    for (const ManifestNode &variant : target["variants"].getArray())
      manifest.variants.push_back(variant["features"].getStrings());

  if (target.has("device")) {
    if (std::string device = target["device"].getString(); device != "cuda")
      target["device"].fail("found '" + device + "', expected 'cuda'");
    manifest.isForCuda = true;
    manifest.architectures = target["architectures"].getInts(0, 1000);
  }

  manifest.worldSize = root["world_size"].getInt(1, maxWorldSize);
  ManifestNode mesh = root["mesh"];
  manifest.meshName = mesh["name"].getString();
  int64_t meshSize = 1;
  for (const ManifestNode &axis : mesh["axes"].getArray()) {
    manifest.axes.push_back(
        {axis["name"].getString(), axis["size"].getInt(1, maxWorldSize)});
    meshSize = std::min(meshSize * manifest.axes.back().size, maxWorldSize + 1);
  }
  if (meshSize != manifest.worldSize)
    root["world_size"].fail("found " + std::to_string(manifest.worldSize) +
                            ", but the mesh's axes hold " +
                            std::to_string(meshSize) + " ranks");

  manifest.parameters = parseTensors(root["parameters"], manifest.worldSize);
  parseUpdates(root["parameters"], manifest.parameters);
  parsePrograms(root["programs"], manifest);
  return manifest;
}

bool Manifest::hasState() const {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const TensorInfo &info) { return info.isUpdated; });
}

int64_t Manifest::getArenaBytes() const {
  int64_t bytes = 0;
  for (const Program &program : programs)
    bytes = std::max(bytes, program.arenaBytes);
  return bytes;
}

std::string tprt::describeCollective(const Manifest &manifest, int64_t id) {
  int64_t number = id;
  std::string name;
  for (const Program &program : manifest.programs)
    if (const auto &[first, count] = program.collectives;
        manifest.programs.size() > 1 && first <= id && id < first + count) {
      number -= first;
      name = " of '" + program.name + "'";
    }
  return "collective " + std::to_string(number) + name + " (" +
         describe(manifest.collectives[id]) + ")";
}
