//===- ReadArgument.cpp - arguments in an exported program ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of dtypes, layouts and memory formats are those of the schema,
// torch/_export/serde/schema.py, which aren't LibTorch's.
//
//===----------------------------------------------------------------------===//

#include "ReadArgument.h"
#include <ATen/core/jit_type.h>

using namespace mlir;
using namespace mlir::tp;

ValueId mlir::tp::lookUp(StringRef name, const ExportScope &scope) {
  auto it = scope.find(name);
  if (it == scope.end())
    throw ExportError("the program uses a value '" + name +
                      "' before it is defined");
  return it->second;
}

at::ScalarType mlir::tp::readScalarType(JsonNode node) {
  static const std::map<int64_t, at::ScalarType> types = {
      {1, at::kByte},           {2, at::kChar},
      {3, at::kShort},          {4, at::kInt},
      {5, at::kLong},           {6, at::kHalf},
      {7, at::kFloat},          {8, at::kDouble},
      {9, at::kComplexHalf},    {10, at::kComplexFloat},
      {11, at::kComplexDouble}, {12, at::kBool},
      {13, at::kBFloat16},      {28, at::kUInt16},
      {29, at::kFloat8_e4m3fn}, {30, at::kFloat8_e5m2},
      {34, at::kUInt32},        {35, at::kUInt64}};
  auto it = types.find(node.getInteger());
  if (it == types.end())
    node.fail("the number of an element type");
  return it->second;
}

static int64_t readMemoryFormat(JsonNode node) {
  switch (node.getInteger()) {
  case 1:
    return int64_t(c10::MemoryFormat::Contiguous);
  case 2:
    return int64_t(c10::MemoryFormat::ChannelsLast);
  case 3:
    return int64_t(c10::MemoryFormat::ChannelsLast3d);
  case 4:
    return int64_t(c10::MemoryFormat::Preserve);
  default:
    node.fail("the number of a memory format");
  }
}

SymbolicSize mlir::tp::readSize(JsonNode node) {
  auto [kind, body] = node.getUnion();
  SymbolicSize size;
  if (kind == "as_int") {
    size.value = body.getInteger();
  } else if (kind == "as_expr") {
    size.expression = body["expr_str"].getText();
    if (auto hint = body.find("hint"))
      size.value = (*hint)["as_int"].getInteger();
  } else {
    node.fail("an integer or an expression");
  }
  return size;
}

static ExportOperand constant(c10::IValue value) {
  return {std::nullopt, std::move(value)};
}

/// A number, or the name of a value, as the union members `as_…` of symbolic
/// arguments have it.
static ExportOperand readSymbolic(JsonNode node, const ExportScope &scope) {
  auto [kind, body] = node.getUnion();
  if (kind == "as_name")
    return {lookUp(body.getText(), scope), {}};
  if (kind == "as_int")
    return constant(body.getInteger());
  if (kind == "as_float")
    return constant(body.getReal());
  if (kind == "as_bool")
    return constant(body.getBool());
  node.fail("a name or a number");
}

static ExportOperand readTensor(JsonNode node, const ExportScope &scope) {
  return {lookUp(node["name"].getText(), scope), {}};
}

static ExportOperand readOptionalTensor(JsonNode node,
                                        const ExportScope &scope) {
  auto [kind, body] = node.getUnion();
  return kind == "as_tensor" ? readTensor(body, scope)
                             : constant(c10::IValue());
}

ExportArgument mlir::tp::readArgument(JsonNode node, const ExportScope &scope) {
  auto [kind, body] = node.getUnion();
  ExportArgument argument;
  auto one = [&](ExportOperand operand) {
    argument.operands.push_back(std::move(operand));
  };
  auto list = [&](c10::TypePtr type,
                  llvm::function_ref<ExportOperand(JsonNode)> read) {
    argument.elementType = std::move(type);
    body.forEach([&](JsonNode element) { one(read(element)); });
  };
  auto symbolic = [&](JsonNode element) {
    return readSymbolic(element, scope);
  };
  if (kind == "as_none")
    one(constant(c10::IValue()));
  else if (kind == "as_tensor")
    one(readTensor(body, scope));
  else if (kind == "as_optional_tensor")
    one(readOptionalTensor(body, scope));
  else if (kind == "as_int")
    one(constant(body.getInteger()));
  else if (kind == "as_float")
    one(constant(body.getReal()));
  else if (kind == "as_bool")
    one(constant(body.getBool()));
  else if (kind == "as_string")
    one(constant(body.getText()));
  else if (kind == "as_complex")
    one(constant(
        c10::complex<double>(body["real"].getReal(), body["imag"].getReal())));
  else if (kind == "as_sym_int" || kind == "as_sym_float" ||
           kind == "as_sym_bool")
    one(readSymbolic(body, scope));
  else if (kind == "as_scalar_type")
    one(constant(int64_t(readScalarType(body))));
  else if (kind == "as_memory_format")
    one(constant(readMemoryFormat(body)));
  else if (kind == "as_layout" && body.getInteger() == 7)
    one(constant(int64_t(c10::kStrided)));
  else if (kind == "as_device")
    one(constant(c10::Device(c10::kCPU)));
  else if (kind == "as_tensors")
    list(c10::TensorType::get(),
         [&](JsonNode element) { return readTensor(element, scope); });
  else if (kind == "as_optional_tensors")
    list(c10::OptionalType::create(c10::TensorType::get()),
         [&](JsonNode element) { return readOptionalTensor(element, scope); });
  else if (kind == "as_ints")
    list(c10::IntType::get(),
         [](JsonNode element) { return constant(element.getInteger()); });
  else if (kind == "as_floats")
    list(c10::FloatType::get(),
         [](JsonNode element) { return constant(element.getReal()); });
  else if (kind == "as_bools")
    list(c10::BoolType::get(),
         [](JsonNode element) { return constant(element.getBool()); });
  else if (kind == "as_strings")
    list(c10::StringType::get(),
         [](JsonNode element) { return constant(element.getText()); });
  else if (kind == "as_sym_ints")
    list(c10::IntType::get(), symbolic);
  else if (kind == "as_sym_floats")
    list(c10::FloatType::get(), symbolic);
  else if (kind == "as_sym_bools")
    list(c10::BoolType::get(), symbolic);
  else
    argument.unknownKind = kind;
  return argument;
}

std::string mlir::tp::readName(JsonNode node) {
  auto names = readNames(node);
  if (names.size() != 1)
    node.fail("a tensor or a number");
  return names.front();
}

std::vector<std::string> mlir::tp::readNames(JsonNode node) {
  auto [kind, body] = node.getUnion();
  std::vector<std::string> names;
  if (kind == "as_tensor")
    names.push_back(body["name"].getText());
  else if (kind == "as_tensors")
    body.forEach(
        [&](JsonNode tensor) { names.push_back(tensor["name"].getText()); });
  else if (kind == "as_optional_tensor")
    return readNames(body);
  else if (kind == "as_sym_int" || kind == "as_sym_float" ||
           kind == "as_sym_bool")
    names.push_back(body["as_name"].getText());
  else if (kind != "as_none")
    node.fail("tensors or numbers");
  return names;
}
