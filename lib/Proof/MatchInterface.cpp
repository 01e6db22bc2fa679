//===- MatchInterface.cpp - Arguments, parameters and results -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramMatcher.h"
#include "mlir/IR/Builders.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Transforms/Utils.h"

using namespace mlir;
using namespace mlir::tp;

/// "is named 'x', but named 'y' in the reference".
static std::string compareNames(Attribute own, Attribute expected) {
  auto print = [](Attribute attribute) {
    auto name = dyn_cast_or_null<StringAttr>(attribute);
    return name ? "named '" + name.str() + "'" : std::string("without a name");
  };
  return "is " + print(own) + ", but " + print(expected) + " in the reference";
}

void ProgramMatcher::collectAxes() {
  auto addAll = [&](ArrayRef<AxisRefAttr> list) {
    for (AxisRefAttr axis : list)
      if (!llvm::is_contained(axes, axis))
        axes.push_back(axis);
  };
  auto addList = [&](AxisListAttr list) {
    addAll(list.getAxes());
    if (!list.getSegments().empty() &&
        !llvm::is_contained(segments, list.getSegments()))
      segments.push_back(list.getSegments());
  };
  auto addSharding = [&](ShardingAttr sharding) {
    if (sharding)
      llvm::for_each(sharding.getDims(), addList);
  };
  func::FuncOp function = programs.front().function;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    addSharding(getArgSharding(function, i));
    types.insert(function.getArgument(i).getType());
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    addSharding(getResultSharding(function, i));
  function.walk([&](Operation *op) {
    for (NamedAttribute attr : op->getAttrDictionary())
      addSharding(dyn_cast<ShardingAttr>(attr.getValue()));
    if (auto list = op->getAttrOfType<AxisListAttr>("axes"))
      addList(list);
    for (Type type : op->getResultTypes())
      types.insert(type);
  });
}

/// The ranks' arguments must have the types that their placements imply.
std::optional<Mismatch> ProgramMatcher::addArguments() {
  func::FuncOp function = reference.getFunction();
  Builder builder(mesh.getContext());
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    ReferenceGraph::Id id = reference.getId(function.getArgument(index));
    RankedTensorType global = reference.getType(id);
    Replica replica = {id, {}, {}};
    for (auto [number, program] : llvm::enumerate(programs)) {
      func::FuncOp own = program.function;
      auto fail = [&](const Twine &text) {
        return Mismatch{own, static_cast<unsigned>(number),
                        ("argument " + Twine(index) + " " + text).str(),
                        function, /*isInterface=*/true};
      };
      ShardingAttr sharding = getArgSharding(own, index);
      auto type = own.getArgAttrOfType<TypeAttr>(index, kGlobalTypeAttr);
      if (own.getArgAttr(index, kNameAttr) !=
          function.getArgAttr(index, kNameAttr))
        return fail(compareNames(own.getArgAttr(index, kNameAttr),
                                 function.getArgAttr(index, kNameAttr)));
      if (own.getArgAttr(index, kSymbolicShapeAttr) !=
          function.getArgAttr(index, kSymbolicShapeAttr))
        return fail("has another symbolic shape than the reference's");
      if (!global) {
        // Scalars are the same on all ranks.
        if (own.getArgument(index).getType() !=
            function.getArgument(index).getType())
          return fail("has another type than the reference's argument");
        replica.sharding = getWhole(0);
        replica.numbers.push_back(numbering.getSource(
            builder.getIndexAttr(index), own.getArgument(index).getType()));
        continue;
      }
      if (!sharding || !type)
        return fail("has no 'tp.sharding' and 'tp.global_type'");
      if (type.getValue() != global)
        return fail("is a block of a tensor of another type than the "
                    "reference's argument");
      if (replica.sharding && replica.sharding != sharding)
        return fail("has another placement than in the first program");
      replica.sharding = sharding;
      if (algebra.getLocalType(global, sharding, program.ranks) !=
          own.getArgument(index).getType())
        return fail("has another type than the ranks' blocks of it");
      replica.numbers.push_back(numbering.getSource(
          builder.getIndexAttr(index), own.getArgument(index).getType()));
    }
    func::FuncOp first = programs.front().function;
    firstNumbers[first.getArgument(index)] = replica.numbers.front();
    computed.insert(replica.numbers.front());
    add(std::move(replica));
  }
  return std::nullopt;
}

/// A program may only use parameters that the reference has, each in the same
/// placement in all programs.
std::optional<Mismatch> ProgramMatcher::checkParameter(nn::ParameterOp op,
                                                       unsigned index) {
  auto fail = [&](const Twine &text) {
    return Mismatch{op, index,
                    ("parameter '" + op.getFqn() + "' " + text).str(), nullptr,
                    /*isInterface=*/true};
  };
  auto id = reference.getParameter(op.getFqn());
  if (!id)
    return fail("isn't in the reference");
  bool isFrozen =
      reference.get(*id).value.getDefiningOp<nn::ParameterOp>().getFrozen();
  if (op.getFrozen() != isFrozen)
    return fail(isFrozen ? "isn't frozen, but is in the reference"
                         : "is frozen, but isn't in the reference");
  auto sharding = op->getAttrOfType<ShardingAttr>(kShardingAttr);
  auto type = op->getAttrOfType<TypeAttr>(kGlobalTypeAttr);
  if (!sharding || !type)
    return fail("has no 'tp.sharding' and 'tp.global_type'");
  auto global = dyn_cast<RankedTensorType>(type.getValue());
  if (!global || global != reference.getType(*id))
    return fail("is a block of a tensor of another type than the reference's");
  // A rank holds one block of it.
  ShardingAttr &placed = parameterPlacements[op.getFqnAttr()];
  if (placed && placed != sharding)
    return fail("has two placements, but a rank holds one block of it");
  placed = sharding;
  auto local = getLocalTypes(global, sharding);
  if (!local || (*local)[index] != op.getType())
    return fail("has another type than the ranks' blocks of it");
  return std::nullopt;
}

/// Adds the block that the parameter declares to be.
std::optional<Mismatch> ProgramMatcher::addParameter(nn::ParameterOp op) {
  if (auto mismatch = checkParameter(op, 0))
    return mismatch;
  ReferenceGraph::Id id = *reference.getParameter(op.getFqn());
  ShardingAttr sharding = parameterPlacements.lookup(op.getFqnAttr());
  Replica replica = {id, sharding, {}};
  auto local = getLocalTypes(reference.getType(id), sharding);
  for (RankedTensorType type : *local)
    replica.numbers.push_back(numbering.get(op, {}, Type(type)));
  add(std::move(replica));
  return std::nullopt;
}

/// All programs must declare the same types and placements of results, and use
/// the reference's names.
std::optional<Mismatch> ProgramMatcher::checkResultAttributes(unsigned index) {
  func::FuncOp function = reference.getFunction();
  for (auto [number, program] : llvm::enumerate(programs)) {
    func::FuncOp own = program.function;
    auto fail = [&](const Twine &text) {
      return Mismatch{own, static_cast<unsigned>(number),
                      ("result " + Twine(index) + " " + text).str(), function,
                      /*isInterface=*/true};
    };
    auto type = own.getResultAttrOfType<TypeAttr>(index, kGlobalTypeAttr);
    ShardingAttr sharding = getResultSharding(own, index);
    if (!sharding || !type)
      return fail("has no 'tp.sharding' and 'tp.global_type'");
    if (type.getValue() != function.getResultTypes()[index])
      return fail(
          "is a block of a tensor of another type than the reference's");
    if (sharding != getResultSharding(programs.front().function, index))
      return fail("has another placement than in the first program");
    if (own.getResultAttr(index, kNameAttr) !=
        function.getResultAttr(index, kNameAttr))
      return fail(compareNames(own.getResultAttr(index, kNameAttr),
                               function.getResultAttr(index, kNameAttr)));
    if (own.getResultAttr(index, kSymbolicShapeAttr) !=
        function.getResultAttr(index, kSymbolicShapeAttr))
      return fail("has another symbolic shape than the reference's");
  }
  return std::nullopt;
}
