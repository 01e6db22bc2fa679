//===- ManifestAttrs.cpp - Attributes of the artifact manifest ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/CodeGen/Program/ManifestAttrs.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Dialect/TPRT/TPRT.h"

using namespace mlir;
using namespace mlir::tp;

StringRef tp::stringifyRole(Role role) {
  switch (role) {
  case Role::Context:
    return "context";
  case Role::Rank:
    return "rank";
  case Role::Tables:
    return "tables";
  case Role::Input:
    return "input";
  case Role::Parameter:
    return "parameter";
  case Role::Output:
    return "output";
  case Role::Arena:
    return "arena";
  case Role::Numbers:
    return "numbers";
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

SmallVector<func::FuncOp> tp::getProgramFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> functions = getEntryPrograms(module);
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(tprt::kRepeatedAttr))
      functions.push_back(function);
  return functions;
}

std::optional<Role> tp::getRole(func::FuncOp program, unsigned number) {
  auto attr = program.getArgAttrOfType<StringAttr>(number, kRoleAttr);
  if (!attr)
    return std::nullopt;
  for (Role role : {Role::Context, Role::Rank, Role::Tables, Role::Input,
                    Role::Parameter, Role::Output, Role::Arena, Role::Numbers})
    if (attr.getValue() == stringifyRole(role))
      return role;
  return std::nullopt;
}

SmallVector<BlockArgument> tp::getArguments(func::FuncOp program, Role role) {
  return llvm::filter_to_vector(
      program.getArguments(), [&](BlockArgument argument) {
        return getRole(program, argument.getArgNumber()) == role;
      });
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

void tp::writeJSON(llvm::json::OStream &os, Attribute attr) {
  if (auto string = dyn_cast<StringAttr>(attr))
    return llvm::json::isUTF8(string.getValue())
               ? os.value(string.getValue())
               : os.value(llvm::json::fixUTF8(string.getValue()));
  if (auto boolean = dyn_cast<BoolAttr>(attr))
    return os.value(boolean.getValue());
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return os.value(integer.getInt());
  if (auto number = dyn_cast<FloatAttr>(attr))
    return os.value(number.getValueAsDouble());
  if (auto numbers = dyn_cast<DenseI64ArrayAttr>(attr))
    return os.array([&] {
      for (int64_t number : numbers.asArrayRef())
        os.value(number);
    });
  if (auto array = dyn_cast<ArrayAttr>(attr))
    return os.array([&] {
      for (Attribute element : array)
        writeJSON(os, element);
    });
  os.object([&] {
    for (NamedAttribute entry : cast<DictionaryAttr>(attr)) {
      os.attributeBegin(entry.getName().getValue());
      writeJSON(os, entry.getValue());
      os.attributeEnd();
    }
  });
}
