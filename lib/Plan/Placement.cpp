//===- Placement.cpp - A placement as plans write it ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Plan/Placement.h"
#include "tp/Plan/Pattern.h"
#include "tp/Support/Schema.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

SmallVector<int64_t> Placement::getSegments(int64_t size) const {
  if (!segments.empty())
    return segments;
  return SmallVector<int64_t>(blocks, size / blocks);
}

std::string Placement::str() const {
  switch (kind) {
  case Kind::Replicate:
    return "Replicate";
  case Kind::Shard:
    if (!segments.empty())
      return "Shard(" + std::to_string(dim) + ", segments=[" +
             llvm::join(llvm::map_range(
                            segments,
                            [](int64_t size) { return std::to_string(size); }),
                        ", ") +
             "])";
    if (blocks > 1)
      return "_StridedShard(" + std::to_string(dim) +
             ", split_factor=" + std::to_string(blocks) + ")";
    return "Shard(" + std::to_string(dim) + ")";
  case Kind::Partial:
    return ("Partial(" + stringifyReductionKind(reduction) + ")").str();
  }
  llvm_unreachable("all kinds are handled");
}

namespace {

/// A Python call: a name, and arguments by position or by keyword.
struct Call {
  StringRef name;
  SmallVector<StringRef> arguments;

  /// Takes the argument at `position`, without its keyword; empty when there is
  /// none.
  StringRef get(unsigned position, ArrayRef<StringRef> keywords) const {
    if (position >= arguments.size())
      return {};
    StringRef argument = arguments[position];
    for (StringRef keyword : keywords) {
      StringRef rest = argument;
      if (rest.consume_front(keyword))
        if (rest = rest.ltrim(); rest.consume_front("="))
          return rest.ltrim();
    }
    return argument;
  }
};

} // namespace

static constexpr StringLiteral kReplicateNames[] = {"Replicate", "R"};
static constexpr StringLiteral kShardNames[] = {"Shard", "S"};
static constexpr StringLiteral kStridedShardNames[] = {"_StridedShard", "_S"};
static constexpr StringLiteral kPartialNames[] = {"Partial", "_Partial", "P"};

static std::optional<Placement> parseShard(const Call &call,
                                           std::string &error) {
  int64_t dim;
  if (call.arguments.size() == 1 && !call.get(0, {"dim"}).getAsInteger(10, dim))
    return Placement::shard(dim);
  error = "Shard needs the dimension that it splits, as in Shard(0)";
  return std::nullopt;
}

static std::optional<Placement> parseStridedShard(const Call &call,
                                                  std::string &error) {
  int64_t dim, factor;
  if (call.arguments.size() == 2 &&
      !call.get(0, {"dim"}).getAsInteger(10, dim) &&
      !call.get(1, {"split_factor", "sf"}).getAsInteger(10, factor) &&
      factor >= 1)
    return Placement::stridedShard(dim, factor);
  error =
      "_StridedShard needs a dimension and a split factor of at least 1, as "
      "in _StridedShard(0, split_factor=2)";
  return std::nullopt;
}

static std::optional<Placement> parsePartial(const Call &call,
                                             std::string &error) {
  StringRef reduction = call.get(0, {"reduce_op"}).trim("'\"");
  if (call.arguments.size() > 1) {
    error = "Partial takes one reduction";
    return std::nullopt;
  }
  if (reduction.empty())
    return Placement::partial(ReductionKind::Sum);
  if (auto kind = symbolizeReductionKind(reduction))
    return Placement::partial(*kind);
  error = ("unknown reduction '" + reduction +
           "'; Partial takes sum, avg, max, min or product")
              .str();
  return std::nullopt;
}

std::optional<Placement> plan::parsePlacement(StringRef text,
                                              std::string &error) {
  Call call;
  call.name = text.trim();
  if (call.name.starts_with("(")) {
    error = ("'" + text +
             "' is a tuple in Python; a list is written in brackets here, and "
             "None as null, as in [Shard(1), null]")
                .str();
    return std::nullopt;
  }
  if (size_t open = call.name.find('('); open != StringRef::npos) {
    if (!call.name.ends_with(")")) {
      error = ("'" + text + "' lacks a closing parenthesis").str();
      return std::nullopt;
    }
    StringRef inside = call.name.drop_front(open + 1).drop_back().trim();
    if (!inside.empty())
      inside.split(call.arguments, ',');
    for (StringRef &argument : call.arguments)
      argument = argument.trim();
    call.name = call.name.take_front(open).rtrim();
  }

  StringRef name = call.name;
  if (llvm::is_contained(kReplicateNames, name)) {
    if (call.arguments.empty())
      return Placement::replicate();
    error = "Replicate takes no argument";
    return std::nullopt;
  }
  if (llvm::is_contained(kShardNames, name))
    return parseShard(call, error);
  if (llvm::is_contained(kStridedShardNames, name))
    return parseStridedShard(call, error);
  if (llvm::is_contained(kPartialNames, name))
    return parsePartial(call, error);
  if (name == "MaskPartial" || name == "_MaskPartial") {
    error = ("'" + name +
             "' is the result of a lookup in a table that is split by rows; a "
             "plan has Partial(sum) instead, which is the same here")
                .str();
    return std::nullopt;
  }
  std::string hint = suggestNearest(name, {"Shard", "Replicate", "Partial"});
  if (hint.empty())
    hint = "; placements are Shard(dim), Replicate, Partial(reduction) and "
           "_StridedShard(dim, split_factor)";
  error = ("unknown placement '" + text + "'" + hint).str();
  return std::nullopt;
}

llvm::json::Object plan::getPlacementSchema() {
  std::string reductions;
  for (unsigned i = 0; i <= getMaxEnumValForReductionKind(); ++i)
    if (auto kind = symbolizeReductionKind(i))
      reductions += "|" + stringifyReductionKind(*kind).str();
  auto call = [](ArrayRef<StringLiteral> names, const std::string &arguments) {
    return "(" + llvm::join(names, "|") + ")" + arguments;
  };
  // Spaces may be around each part.
  auto dim = std::string(R"((dim\s*=\s*)?-?[0-9]+\s*)");
  std::string pattern =
      call(kReplicateNames, R"((\s*\(\s*\))?)") + "|" +
      call(kShardNames, R"(\s*\(\s*)" + dim + R"(\))") + "|" +
      call(kStridedShardNames,
           R"(\s*\(\s*)" + dim +
               R"(,\s*((split_factor|sf)\s*=\s*)?0*[1-9][0-9]*\s*\))") +
      "|" +
      call(kPartialNames, R"((\s*\(\s*(reduce_op\s*=\s*)?['"]*()" +
                              reductions.substr(1) + R"()?['"]*\s*\))?)");
  // The first alternative is what an editor proposes.
  return anyOf(
      {ValueType::oneOf(
           {"Replicate", "Shard(0)", "Shard(1)", "Shard(-1)", "Partial(sum)"})
           .toSchema(),
       llvm::json::Object{{"type", "string"},
                          {"pattern", "^\\s*(" + pattern + ")\\s*$"}}});
}

//===----------------------------------------------------------------------===//
// Several mesh dimensions
//===----------------------------------------------------------------------===//

namespace {

/// The placements that split one dimension of a tensor.
class DimSplit {
public:
  DimSplit(ArrayRef<MeshAxis> mesh) : mesh(mesh) {}

  void add(const AxisPlacement &placement) { shards.push_back(&placement); }

  FailureOr<AxisListAttr> get(MLIRContext *context, int64_t dim, int64_t size,
                              function_ref<void(const Twine &)> emitError) {
    // Major to minor by the first mesh dimension.
    llvm::sort(shards, [](const auto *a, const auto *b) {
      return a->axes.front() < b->axes.front();
    });
    SmallVector<const AxisPlacement *> order;
    SmallVector<int64_t> segments;
    int64_t minorRanks = 1;
    for (const AxisPlacement *shard : llvm::reverse(shards)) {
      const Placement &placement = shard->placement;
      bool isMinor = placement.segments.empty() && placement.blocks > 1 &&
                     placement.blocks == minorRanks;
      // The later placements are major to a strided shard.
      order.insert(isMinor ? order.end() : order.begin(), shard);
      minorRanks *= getSize(shard->axes);
      if (isMinor || !placement.isSegmented())
        continue;
      if (!segments.empty()) {
        emitError("two placements give dimension " + Twine(dim) +
                  " segments of its own");
        return failure();
      }
      segments = placement.segments;
      if (segments.empty()) {
        if (placement.blocks > size || size % placement.blocks) {
          emitError("dimension " + Twine(dim) + " has size " + Twine(size) +
                    ", which isn't " + Twine(placement.blocks) +
                    " blocks of one size");
          return failure();
        }
        segments.assign(placement.blocks, size / placement.blocks);
      }
    }
    SmallVector<AxisRefAttr> axes;
    for (const AxisPlacement *shard : order)
      for (unsigned axis : shard->axes)
        axes.push_back(AxisRefAttr::get(context, mesh[axis].name));
    return AxisListAttr::get(context, axes, segments);
  }

private:
  int64_t getSize(const AxisSet &axes) const {
    int64_t size = 1;
    for (unsigned axis : axes)
      size *= mesh[axis].size;
    return size;
  }

  ArrayRef<MeshAxis> mesh;
  SmallVector<const AxisPlacement *> shards;
};

} // namespace

FailureOr<ShardingAttr>
plan::getSharding(ArrayRef<AxisPlacement> placements, ArrayRef<MeshAxis> mesh,
                  FlatSymbolRefAttr meshName, ArrayRef<int64_t> shape,
                  function_ref<void(const Twine &)> emitError) {
  MLIRContext *context = meshName.getContext();
  SmallVector<DimSplit> splits(shape.size(), DimSplit(mesh));
  SmallVector<PartialAttr> partial;
  for (const AxisPlacement &over : placements) {
    if (over.placement.isShard())
      splits[over.placement.dim].add(over);
    if (over.placement.isPartial())
      for (unsigned axis : over.axes)
        partial.push_back(PartialAttr::get(
            context, AxisRefAttr::get(context, mesh[axis].name),
            over.placement.reduction));
  }
  SmallVector<AxisListAttr> dims;
  for (auto [dim, split] : llvm::enumerate(splits)) {
    FailureOr<AxisListAttr> axes =
        split.get(context, dim, shape[dim], emitError);
    if (failed(axes))
      return failure();
    dims.push_back(*axes);
  }
  return ShardingAttr::get(context, meshName, dims, partial);
}

SmallVector<Placement>
plan::getPlacementList(ArrayRef<AxisPlacement> placements,
                       ArrayRef<MeshAxis> mesh) {
  SmallVector<Placement> list(mesh.size());
  for (const AxisPlacement &over : placements)
    for (unsigned axis : over.axes)
      list[axis] = over.placement;
  return list;
}
