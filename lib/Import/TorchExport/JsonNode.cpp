//===- JsonNode.cpp - JSON with the paths of its values -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "JsonNode.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;
namespace json = llvm::json;

void JsonNode::fail(const llvm::Twine &expected) const {
  std::string found;
  llvm::raw_string_ostream(found) << *value;
  if (size_t end = 40; found.size() > end) {
    while ((found[end] & 0xC0) == 0x80) // inside of a character
      --end;
    found = found.substr(0, end) + "…";
  }
  throw ExportError("'" + llvm::Twine(path) + "' is " + found + ", expected " +
                    expected);
}

const json::Object &JsonNode::getObject() const {
  if (const json::Object *object = value->getAsObject())
    return *object;
  fail("an object");
}

JsonNode JsonNode::operator[](StringRef key) const {
  if (auto member = find(key))
    return *member;
  throw ExportError("'" + llvm::Twine(path) + "' has no '" + key + "'");
}

std::optional<JsonNode> JsonNode::find(StringRef key) const {
  const json::Value *member = getObject().get(key);
  if (!member || member->kind() == json::Value::Null)
    return std::nullopt;
  return JsonNode(*member, path + "." + key);
}

std::pair<StringRef, JsonNode> JsonNode::getUnion() const {
  const json::Object &object = getObject();
  if (object.size() != 1)
    fail("an object with one member");
  const auto &[key, member] = *object.begin();
  return {key, JsonNode(member, path + "." + StringRef(key))};
}

void JsonNode::forEach(llvm::function_ref<void(JsonNode)> f) const {
  const json::Array *array = value->getAsArray();
  if (!array)
    fail("a list");
  for (auto [i, element] : llvm::enumerate(*array))
    f(JsonNode(element, path + "[" + llvm::Twine(i) + "]"));
}

void JsonNode::forEachMember(
    llvm::function_ref<void(StringRef, JsonNode)> f) const {
  for (const auto &[key, member] : getObject())
    f(key, JsonNode(member, path + "." + StringRef(key)));
}

std::string JsonNode::getText() const {
  if (auto text = value->getAsString())
    return text->str();
  fail("a text");
}

bool JsonNode::getBool() const {
  if (auto flag = value->getAsBoolean())
    return *flag;
  fail("true or false");
}

int64_t JsonNode::getInteger() const {
  if (auto integer = value->getAsInteger())
    return *integer;
  fail("an integer of 64 bits");
}

double JsonNode::getReal() const {
  if (auto real = value->getAsNumber())
    return *real;
  auto special = llvm::StringSwitch<std::optional<double>>(
                     value->getAsString().value_or(""))
                     .Case("Infinity", HUGE_VAL)
                     .Case("-Infinity", -HUGE_VAL)
                     .Case("NaN", std::nan(""))
                     .Default(std::nullopt);
  if (special)
    return *special;
  fail("a number");
}
