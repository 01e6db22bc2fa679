//===- TorchSchema.cpp - what an op's schema says -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchSchema.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <torch/csrc/utils/schema_info.h>

using namespace mlir;

bool mlir::tp::isInPlace(const c10::FunctionSchema &schema) {
  return !schema.arguments().empty() && schema.arguments()[0].alias_info() &&
         schema.arguments()[0].alias_info()->isWrite();
}

StringRef mlir::tp::baseName(const c10::FunctionSchema &schema) {
  StringRef name = schema.name();
  if (!name.consume_front("aten::"))
    name.consume_front("prim::");
  if (isInPlace(schema) && !name.ends_with("__"))
    name.consume_back("_");
  // Python's x += y on booleans and the like.
  if (isInPlace(schema) && name.starts_with("__i"))
    return llvm::StringSwitch<StringRef>(name)
        .Case("__iand__", "__and__")
        .Case("__ior__", "__or__")
        .Case("__ixor__", "__xor__")
        .Case("__ilshift__", "__lshift__")
        .Case("__irshift__", "__rshift__")
        .Default(name);
  return name;
}

bool mlir::tp::readsData(StringRef name) {
  return llvm::StringSwitch<bool>(name)
      .Cases({"aten::Int", "aten::Float", "aten::Bool", "aten::Complex"}, true)
      .Cases({"aten::item", "aten::ScalarImplicit", "aten::IntImplicit",
              "aten::FloatImplicit"},
             true)
      .Cases({"aten::is_nonzero", "aten::equal", "aten::allclose",
              "aten::_local_scalar_dense", "prim::tolist"},
             true)
      .Default(false);
}

bool mlir::tp::hasDataDependentShape(StringRef name) {
  return llvm::StringSwitch<bool>(name)
      .Cases({"nonzero", "nonzero_numpy", "masked_select", "unique", "_unique2",
              "unique_dim", "unique_consecutive", "argwhere", "bincount"},
             true)
      .Default(false);
}

bool mlir::tp::usesShapeAlone(StringRef name) {
  return llvm::StringSwitch<bool>(name)
      .Cases({"zeros_like", "ones_like", "full_like", "empty_like"}, true)
      .Cases({"new_zeros", "new_ones", "new_full", "new_empty"}, true)
      .Default(false);
}

bool mlir::tp::isRandom(const c10::FunctionSchema &schema,
                        llvm::ArrayRef<c10::IValue> inputs) {
  if (!StringRef(schema.name()).starts_with("aten::"))
    return false;
  torch::utils::SchemaInfo info(schema);
  for (auto [argument, input] : llvm::zip(schema.arguments(), inputs))
    if (!input.isTensor())
      info.addArgumentValue(argument.name(), input);
  return info.is_nondeterministic();
}

bool mlir::tp::separatesResults(StringRef name) {
  return name.starts_with("unsafe_");
}

static bool mentionsTensor(const c10::TypePtr &type) {
  if (type->kind() == c10::TypeKind::TensorType)
    return true;
  return llvm::any_of(
      type->containedTypes(),
      [](const c10::TypePtr &contained) { return mentionsTensor(contained); });
}

/// Whether the op writes data of tensors, and not just a list of them.
static bool writesTensors(const c10::Argument &argument) {
  const c10::AliasInfo *info = argument.alias_info();
  if (!info || !mentionsTensor(argument.type()))
    return false;
  return argument.type()->kind() == c10::TypeKind::TensorType
             ? info->isWrite()
             : llvm::any_of(info->containedTypes(),
                            [](const c10::AliasInfo &contained) {
                              return contained.isWrite();
                            });
}

bool mlir::tp::computesTensors(const c10::FunctionSchema *schema) {
  if (schema && llvm::any_of(schema->arguments(), writesTensors))
    return true;
  if (!schema || !llvm::any_of(schema->returns(), [](const c10::Argument &a) {
        return mentionsTensor(a.type());
      }))
    return false;
  return llvm::any_of(schema->arguments(), [](const c10::Argument &a) {
    return mentionsTensor(a.type());
  });
}
