//===- Schema.cpp - What the maps of a file may hold ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Support/Schema.h"

using namespace mlir;
using namespace mlir::tp;
namespace json = llvm::json;

/// A whole number is written as one.
static json::Value toJson(double number) {
  auto integer = static_cast<int64_t>(number);
  return static_cast<double>(integer) == number ? json::Value(integer)
                                                : json::Value(number);
}

ValueType ValueType::boolean() {
  return ValueType(json::Object{{"type", "boolean"}});
}

ValueType ValueType::integer(std::optional<int64_t> least,
                             std::optional<int64_t> most) {
  ValueType type(json::Object{{"type", "integer"}});
  if (least)
    type.schema["minimum"] = *least;
  if (most)
    type.schema["maximum"] = *most;
  type.least = least;
  type.most = most;
  return type;
}

ValueType ValueType::number(double least, std::optional<double> most) {
  ValueType type(json::Object{{"type", "number"}, {"minimum", toJson(least)}});
  if (most)
    type.schema["maximum"] = toJson(*most);
  type.least = least;
  type.most = most;
  return type;
}

ValueType ValueType::numberAbove(double least, std::optional<double> most) {
  json::Object schema{{"type", "number"}, {"exclusiveMinimum", toJson(least)}};
  if (most)
    schema["maximum"] = toJson(*most);
  ValueType type(std::move(schema));
  type.least = least;
  type.most = most;
  type.isAbove = true;
  return type;
}

/// In YAML, an unquoted text may look like a number.
ValueType ValueType::text() {
  return ValueType(
      json::Object{{"type", json::Array{"string", "number", "boolean"}}});
}

ValueType ValueType::list(const ValueType &item, unsigned minItems) {
  json::Object schema{{"type", "array"}, {"items", item.toSchema()}};
  if (minItems)
    schema["minItems"] = minItems;
  return ValueType(std::move(schema));
}

ValueType ValueType::oneOf(ArrayRef<StringRef> names) {
  return ValueType(json::Object{{"enum", json::Array(names)}});
}

json::Object tp::anyOf(std::vector<json::Value> fragments) {
  return json::Object{{"anyOf", std::move(fragments)}};
}

/// "if `condition` holds, the map has only allowed keys, and all needed ones".
static json::Object makeRule(json::Object condition,
                             ArrayRef<StringRef> forbidden,
                             ArrayRef<StringRef> needed) {
  json::Object then;
  if (!forbidden.empty()) {
    json::Object properties;
    for (StringRef key : forbidden)
      properties[key] = false;
    then["properties"] = std::move(properties);
  }
  if (!needed.empty())
    then["required"] = json::Array(needed);
  return json::Object{{"if", std::move(condition)}, {"then", std::move(then)}};
}

json::Object tp::getMapSchema(ArrayRef<KeySpec> keys, StringRef nameKey) {
  json::Object properties;
  json::Array required, rules;
  for (const KeySpec &key : keys) {
    json::Object property = key.type.toSchema();
    property["description"] = key.description;
    properties[key.name] = std::move(property);
    if (key.need == KeySpec::Required && key.onlyFor.empty())
      required.push_back(key.name);
  }
  const auto *name = llvm::find_if(
      keys, [&](const KeySpec &key) { return key.name == nameKey; });
  if (name != keys.end())
    for (auto [spelling, usual] : name->type.names) {
      SmallVector<StringRef> forbidden, needed;
      for (const KeySpec &key : keys)
        if (!key.isFor(usual))
          forbidden.push_back(key.name);
        else if (key.need == KeySpec::Required && !key.onlyFor.empty())
          needed.push_back(key.name);
      if (forbidden.empty() && needed.empty())
        continue;
      json::Object isNamed{{"const", spelling}};
      rules.push_back(
          makeRule(json::Object{{"properties",
                                 json::Object{{nameKey, std::move(isNamed)}}},
                                {"required", json::Array{nameKey}}},
                   forbidden, needed));
    }
  json::Object schema{{"type", "object"},
                      {"properties", std::move(properties)},
                      {"additionalProperties", false}};
  if (!required.empty())
    schema["required"] = std::move(required);
  if (!rules.empty())
    schema["allOf"] = std::move(rules);
  return schema;
}

json::Object tp::getNamedSchema(ArrayRef<KeySpec> keys, StringRef nameKey) {
  SmallVector<StringRef> alone;
  for (const KeySpec &key : keys)
    if (key.name == nameKey)
      for (auto [spelling, usual] : key.type.names)
        if (llvm::none_of(keys, [&, usual = usual](const KeySpec &other) {
              return other.need == KeySpec::Required &&
                     !other.onlyFor.empty() && other.isFor(usual);
            }))
          alone.push_back(spelling);
  return anyOf(
      {ValueType::oneOf(alone).toSchema(), getMapSchema(keys, nameKey)});
}

json::Value tp::makeFileSchema(json::Object root, StringRef title,
                               StringRef description) {
  root["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  root["title"] = title;
  root["description"] = description;
  return root;
}
