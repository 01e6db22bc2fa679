//===- ManifestAttrs.cpp - what a program says about itself ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TP/TP.h"

using namespace mlir;
using namespace mlir::tp;

StringRef tp::stringifyRole(Role role) {
  switch (role) {
  case Role::Context:
    return "context";
  case Role::Rank:
    return "rank";
  case Role::Input:
    return "input";
  case Role::Parameter:
    return "parameter";
  case Role::Output:
    return "output";
  case Role::Arena:
    return "arena";
  }
  llvm_unreachable("unknown role");
}

SmallVector<func::FuncOp> tp::getEntryPrograms(ModuleOp module) {
  SmallVector<func::FuncOp> programs;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(kRanksAttr))
      programs.push_back(function);
  if (programs.empty())
    if (auto main = module.lookupSymbol<func::FuncOp>("main"))
      programs.push_back(main);
  return programs;
}

FailureOr<SmallVector<SmallVector<int64_t>>>
tp::findRanks(ArrayRef<func::FuncOp> programs, int64_t numRanks) {
  SmallVector<func::FuncOp> runs(numRanks);
  SmallVector<SmallVector<int64_t>> all;
  if (programs.empty())
    return all;
  for (func::FuncOp function : programs) {
    SmallVector<int64_t> &own = all.emplace_back();
    if (Attribute attr = function->getAttr(kRanksAttr)) {
      auto ranks = dyn_cast<DenseI64ArrayAttr>(attr);
      if (!ranks || ranks.empty())
        return function.emitError("'tp.ranks' must be a list of ranks, found ")
               << attr;
      llvm::append_range(own, ranks.asArrayRef());
    } else {
      llvm::append_range(own, llvm::seq<int64_t>(numRanks));
    }
    for (int64_t rank : own) {
      if (rank < 0 || rank >= numRanks)
        return function.emitError("'@")
               << function.getName() << "' runs on rank " << rank
               << ", but the mesh has " << numRanks << " ranks";
      if (runs[rank]) {
        InFlightDiagnostic diagnostic = function.emitError("rank ")
                                        << rank << " runs both '@"
                                        << runs[rank].getName() << "' and '@"
                                        << function.getName() << "'";
        diagnostic.attachNote(runs[rank].getLoc()) << "the first is here";
        return diagnostic;
      }
      runs[rank] = function;
    }
  }
  for (auto [rank, function] : llvm::enumerate(runs))
    if (!function)
      return func::FuncOp(programs.front()).emitError()
             << "no function runs on rank " << rank
             << ": each rank needs one, and has it in 'tp.ranks'";
  return all;
}

SmallVector<BlockArgument> tp::getArguments(func::FuncOp program, Role role) {
  SmallVector<BlockArgument> arguments;
  for (BlockArgument arg : program.getArguments()) {
    auto attr =
        program.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kRoleAttr);
    if (attr && attr.getValue() == stringifyRole(role))
      arguments.push_back(arg);
  }
  return arguments;
}

DictionaryAttr tp::getManifest(ModuleOp module) {
  if (auto manifest = module->getAttrOfType<DictionaryAttr>(kManifestAttr))
    return manifest;
  return DictionaryAttr::get(module.getContext());
}

void tp::setManifestEntry(ModuleOp module, StringRef name, Attribute value) {
  NamedAttrList manifest(getManifest(module));
  manifest.set(name, value);
  module->setAttr(kManifestAttr, manifest.getDictionary(module.getContext()));
}

llvm::json::Value tp::toJSON(Attribute attr) {
  if (auto string = dyn_cast<StringAttr>(attr))
    return llvm::json::fixUTF8(string.getValue());
  if (auto boolean = dyn_cast<BoolAttr>(attr))
    return boolean.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return integer.getInt();
  if (auto number = dyn_cast<FloatAttr>(attr))
    return number.getValueAsDouble();
  if (auto numbers = dyn_cast<DenseI64ArrayAttr>(attr))
    return llvm::json::Array(numbers.asArrayRef());
  if (auto array = dyn_cast<ArrayAttr>(attr)) {
    llvm::json::Array elements;
    for (Attribute element : array)
      elements.push_back(toJSON(element));
    return elements;
  }
  llvm::json::Object object;
  for (NamedAttribute entry : cast<DictionaryAttr>(attr))
    object[entry.getName().getValue()] = toJSON(entry.getValue());
  return object;
}
