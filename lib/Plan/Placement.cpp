//===- Placement.cpp - a placement as plans write it ----------------------===//

#include "tp/Plan/Placement.h"
#include "tp/Plan/Pattern.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

std::string Placement::str() const {
  switch (kind) {
  case Kind::Replicate:
    return "Replicate";
  case Kind::Shard:
    return "Shard(" + std::to_string(dim) + ")";
  case Kind::Partial:
    return ("Partial(" + stringifyReductionKind(reduction) + ")").str();
  }
  llvm_unreachable("all kinds are handled");
}

std::optional<Placement> plan::parsePlacement(StringRef text,
                                              std::string &error) {
  StringRef name = text.trim(), argument;
  if (size_t open = name.find('('); open != StringRef::npos) {
    if (!name.ends_with(")")) {
      error = ("'" + text + "' lacks a closing parenthesis").str();
      return std::nullopt;
    }
    argument = name.drop_front(open + 1).drop_back().trim();
    name = name.take_front(open).rtrim();
  }
  // Python spells arguments by position or by name.
  auto dropKeyword = [&](StringRef keyword) {
    StringRef rest = argument;
    if (rest.consume_front(keyword))
      if (rest = rest.ltrim(); rest.consume_front("="))
        argument = rest.ltrim();
  };

  if (name == "Replicate") {
    if (argument.empty())
      return Placement::replicate();
    error = "Replicate takes no argument";
    return std::nullopt;
  }
  if (name == "Shard") {
    dropKeyword("dim");
    int64_t dim;
    if (!argument.getAsInteger(10, dim))
      return Placement::shard(dim);
    error = "Shard needs the dimension that it splits, as in Shard(0)";
    return std::nullopt;
  }
  if (name == "Partial") {
    dropKeyword("reduce_op");
    argument = argument.trim("'\"");
    if (argument.empty())
      return Placement::partial(ReductionKind::Sum);
    if (auto kind = symbolizeReductionKind(argument))
      return Placement::partial(*kind);
    error = ("unknown reduction '" + argument +
             "'; Partial takes sum, avg, max, min or product")
                .str();
    return std::nullopt;
  }
  std::string hint = suggestNearest(name, {"Shard", "Replicate", "Partial"});
  if (hint.empty())
    hint = "; placements are Shard(dim), Replicate and Partial(reduction)";
  error = ("unknown placement '" + text + "'" + hint).str();
  return std::nullopt;
}

ShardingAttr plan::getSharding(const Placement &placement,
                               FlatSymbolRefAttr mesh, StringRef axis,
                               int64_t rank) {
  ShardingAttr sharding = ShardingAttr::getReplicated(mesh, rank);
  AxisRefAttr axisRef = AxisRefAttr::get(mesh.getContext(), axis);
  switch (placement.kind) {
  case Placement::Kind::Replicate:
    return sharding;
  case Placement::Kind::Shard:
    return sharding.withShard(axisRef, placement.dim);
  case Placement::Kind::Partial:
    return sharding.withPartial(axisRef, placement.reduction);
  }
  llvm_unreachable("all kinds are handled");
}
