//===- PlanSchema.cpp - The JSON schema of plans --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Plan/PlanSchema.h"
#include "PlanKeys.h"
#include "mlir/IR/MLIRContext.h"
#include "tp/Plan/Style.h"
#include "llvm/Support/Regex.h"
#include <map>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;
namespace json = llvm::json;

/// `if` and `then` of a map that has `keys`.
static json::Object ifHas(ArrayRef<StringRef> keys, json::Object then) {
  return json::Object{{"if", json::Object{{"required", json::Array(keys)}}},
                      {"then", std::move(then)}};
}

/// What a map without `keys` satisfies.
static json::Object hasNone(ArrayRef<StringRef> keys) {
  json::Object properties;
  for (StringRef key : keys)
    properties[key] = false;
  return json::Object{{"properties", std::move(properties)}};
}

/// What a map that has `key`, a map that isn't empty, satisfies.
static json::Object hasFilled(StringRef key) {
  return json::Object{
      {"required", json::Array{key}},
      {"properties", json::Object{{key, json::Object{{"minProperties", 1}}}}}};
}

//===----------------------------------------------------------------------===//
// Styles
//===----------------------------------------------------------------------===//

static json::Object getArgumentSchema(ArgumentSpec::Type type) {
  using Type = ArgumentSpec::Type;
  // As Python's None, `null` means the default.
  auto orNull = [](json::Object schema) {
    return anyOf({std::move(schema), makeReference("null")});
  };
  switch (type) {
  case Type::Bool:
    return ValueType::boolean().toSchema();
  case Type::Int:
    return ValueType::integer().toSchema();
  case Type::Ints:
    return orNull(
        ValueType::list(ValueType::integer(1), /*minItems=*/1).toSchema());
  case Type::Text:
    return orNull(ValueType::text().toSchema());
  case Type::Layout:
    return makeReference("layout");
  case Type::Layouts:
    return anyOf(
        {makeReference("layout"),
         ValueType::list(ValueType(makeReference("layout"))).toSchema()});
  case Type::InputLayouts:
    return anyOf(
        {makeReference("layout"),
         ValueType::list(ValueType(makeReference("inputLayout"))).toSchema()});
  case Type::KeywordLayouts:
    return orNull(
        json::Object{{"type", "object"},
                     {"additionalProperties", makeReference("inputLayout")}});
  }
  llvm_unreachable("all types are handled");
}

/// The former names of a style's arguments, with today's names. Which ones an
/// entry may use can depend on its arguments; these are all.
static std::map<StringRef, StringRef> getFormerNames(const Style &style,
                                                     MLIRContext *context) {
  auto loc = FileLineColLoc::get(context, "", 1, 1);
  PlanEntry entry{"", loc, style.getName().str(), loc, {}};
  std::map<StringRef, StringRef> names;
  auto add = [&] {
    for (const ArgumentAlias &alias : style.getAliases(entry))
      if (llvm::none_of(style.getArguments(), [&](const ArgumentSpec &spec) {
            return spec.name == alias.former;
          }))
        names.try_emplace(alias.former, alias.name);
  };
  add();
  // An entry that uses every name of any style.
  for (StringRef name : getStyleNames(context))
    for (const ArgumentSpec &spec : lookupStyle(context, name)->getArguments())
      entry.arguments.push_back({spec.name.str(), loc, YamlValue(loc)});
  add();
  return names;
}

/// The arguments of a style, as a schema of the map that has them.
static json::Object getArgumentsSchema(const Style &style,
                                       MLIRContext *context) {
  json::Object properties{{"style", true}};
  json::Array required;
  std::map<StringRef, ArgumentSpec::Type> types;
  for (const ArgumentSpec &spec : style.getArguments()) {
    json::Object schema = getArgumentSchema(spec.type);
    if (!spec.defaultText.empty())
      schema["description"] = (spec.defaultText + " by default").str();
    if (spec.required && spec.defaultText.empty())
      required.push_back(spec.name);
    properties[spec.name] = std::move(schema);
    types[spec.name] = spec.type;
  }
  for (auto [former, name] : getFormerNames(style, context)) {
    json::Object schema = getArgumentSchema(types.at(name));
    schema["description"] = ("'" + name + "' today").str();
    schema["deprecated"] = true;
    properties[former] = std::move(schema);
  }
  json::Object schema{{"properties", std::move(properties)},
                      {"additionalProperties", false}};
  if (!required.empty())
    schema["required"] = std::move(required);
  return schema;
}

/// "X" as plans may spell it, too.
static std::string getPattern(ArrayRef<StringRef> names) {
  return "^\\s*(" +
         llvm::join(llvm::map_range(names,
                                    [](StringRef name) {
                                      return llvm::Regex::escape(name);
                                    }),
                    "|") +
         ")(\\(\\))?\\s*$";
}

static json::Object getStyleMapSchema(MLIRContext *context) {
  // Many styles have the same arguments.
  std::vector<std::pair<json::Value, SmallVector<StringRef>>> groups;
  for (StringRef name : getStyleNames(context)) {
    json::Value arguments =
        getArgumentsSchema(*lookupStyle(context, name), context);
    auto it = llvm::find_if(
        groups, [&](const auto &group) { return group.first == arguments; });
    if (it == groups.end())
      it = groups.insert(it, {std::move(arguments), {}});
    it->second.push_back(name);
  }
  json::Array rules;
  for (auto &[arguments, names] : groups)
    rules.push_back(json::Object{
        {"if", json::Object{{"properties",
                             json::Object{
                                 {"style", json::Object{{"pattern",
                                                         getPattern(names)}}}}},
                            {"required", json::Array{"style"}}}},
        {"then", std::move(arguments)}});
  json::Object style = makeReference("style");
  style["description"] = "the style's name";
  return json::Object{{"type", "object"},
                      {"required", json::Array{"style"}},
                      {"properties", json::Object{{"style", std::move(style)}}},
                      {"allOf", std::move(rules)}};
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

static json::Object getGroupSchema() {
  json::Object schema = getMapSchema(getGroupKeys());
  schema["allOf"] = json::Array{ifHas({"mesh_dim"}, hasNone({"tp_mesh_dim"}))};
  return schema;
}

static json::Object getDefinitions(MLIRContext *context) {
  SmallVector<StringRef> names = getStyleNames(context);
  auto makeReferenceType = [](StringRef name) {
    return ValueType(makeReference(name));
  };
  json::Object defs;
  defs["placement"] = getPlacementSchema();
  defs["null"] = json::Object{{"enum", json::Array{nullptr, "None"}}};
  defs["layout"] = anyOf({makeReference("placement"), makeReference("null")});
  defs["inputLayout"] =
      anyOf({makeReference("layout"),
             ValueType::list(makeReferenceType("layout"), /*minItems=*/1)
                 .toSchema()});
  defs["style"] =
      anyOf({ValueType::oneOf(names).toSchema(),
             json::Object{{"type", "string"}, {"pattern", getPattern(names)}}});
  defs["styleMap"] = getStyleMapSchema(context);
  json::Object entry =
      anyOf({makeReference("style"), makeReference("placement"),
             ValueType::list(makeReferenceType("placement"), /*minItems=*/1)
                 .toSchema(),
             makeReference("styleMap")});
  entry["description"] =
      "a style, a map of a style and its arguments, or the placements of a "
      "parameter, one per mesh dimension";
  defs["entry"] = std::move(entry);
  // A map with the name of a style is one entry, for the root module.
  defs["plan"] = json::Object{
      {"if",
       json::Object{{"type", "object"},
                    {"required", json::Array{"style"}},
                    {"properties",
                     json::Object{{"style", ValueType::text().toSchema()}}}}},
      {"then", makeReference("styleMap")},
      {"else",
       anyOf({makeReference("style"), makeReference("placement"),
              json::Object{{"type", "object"},
                           {"additionalProperties", makeReference("entry")}},
              makeReference("null")})}};
  defs["dims"] = json::Object{
      {"type", "object"},
      {"minProperties", 1},
      {"propertyNames", json::Object{{"pattern", "^[A-Za-z_][A-Za-z0-9_]*$"}}},
      {"additionalProperties", ValueType::integer(1, kMaxRanks).toSchema()}};
  defs["devices"] =
      ValueType::list(
          ValueType(anyOf({ValueType::integer(0, kMaxRanks - 1).toSchema(),
                           makeReference("devices")})))
          .toSchema();
  defs["mesh"] = anyOf({makeReference("dims"), getMapSchema(getMeshKeys())});
  defs["group"] = getGroupSchema();
  return defs;
}

json::Value plan::getPlanSchema(MLIRContext *context) {
  json::Object root = getMapSchema(getPlanKeys());
  root["anyOf"] =
      json::Array{json::Object{{"required", json::Array{"plan"}}},
                  json::Object{{"required", json::Array{"parallelize"}}},
                  hasFilled("data_parallel"),
                  hasFilled("context_parallel"),
                  hasFilled("expert_parallel"),
                  json::Object{{"required", json::Array{"pipeline"}}}};
  root["allOf"] = json::Array{
      ifHas({"parallelize"}, hasNone({"plan", "mesh_dim", "tp_mesh_dim"})),
      ifHas({"mesh_dim", "plan"}, hasNone({"tp_mesh_dim"})),
      ifHas(
          {"batch"},
          json::Object{{"anyOf", json::Array{hasFilled("data_parallel"),
                                             hasFilled("expert_parallel")}}})};
  root["$defs"] = getDefinitions(context);
  return makeFileSchema(std::move(root), "tp-mlir plan",
                        "How a model is split over ranks, for "
                        "--tp-parallelize=plan=FILE.");
}
