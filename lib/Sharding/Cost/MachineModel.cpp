//===- MachineModel.cpp - Descriptions of machines ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// YAML, JSON and dlti attributes are all read into one tree of named values, so
// errors in all of them are reported alike.
//
//===----------------------------------------------------------------------===//

#include "tp/Sharding/Cost/MachineModel.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Support/FieldReader.h"
#include "tp/Support/InputFile.h"
#include "tp/Support/YamlReader.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>

using namespace mlir;
using namespace mlir::tp;

/// Entries of a dlti.target_system_spec.
static constexpr StringLiteral kDeviceKey = "device";
static constexpr StringLiteral kLinkPrefix = "link.";

double Machine::getFlops(Type element) const {
  if (element.isF64())
    return flopsF64;
  if (element.isF16())
    return flopsF16;
  return element.isBF16() ? flopsBF16 : flopsF32;
}

size_t Machine::getLink(int64_t a, int64_t b) const {
  for (size_t i = 0; i + 1 < links.size(); ++i)
    if (a / links[i].ranks == b / links[i].ranks)
      return i;
  return links.size() - 1;
}

//===----------------------------------------------------------------------===//
// From a tree of values
//===----------------------------------------------------------------------===//

static constexpr NamedValue<LinkAlgorithm> kAlgorithms[] = {
    {"ring", LinkAlgorithm::Ring},
    {"direct", LinkAlgorithm::Direct},
};

/// A positive whole number that a double holds exactly.
static ValueType getCount() { return ValueType::integer(1, int64_t(9e15)); }

static ArrayRef<KeySpec> getFlopsKeys() {
  const ValueType flops = ValueType::numberAbove(0);
  static const KeySpec keys[] = {
      {"f64", flops, "FLOP/s of f64", KeySpec::Required},
      {"f32", flops, "FLOP/s of f32, and of integers", KeySpec::Required},
      {"f16", flops, "FLOP/s of f16", KeySpec::Required},
      {"bf16", flops, "FLOP/s of bf16", KeySpec::Required},
  };
  return keys;
}

static ArrayRef<KeySpec> getEfficiencyKeys() {
  const ValueType share = ValueType::numberAbove(0, 1);
  static const KeySpec keys[] = {
      {"contraction", share,
       "the share of 'flops' that large contractions reach; 1 by default"},
      {"half_extent", ValueType::number(0),
       "the smallest of a contraction's extents m, n and k at which it reaches "
       "half of that share; 0 by default"},
      {"attention", share,
       "the share of 'flops' that attention reaches, which then skips what a "
       "causal mask hides; by default it is like other contractions"},
      {"memory", share,
       "the share of 'memory_bandwidth' that ops reach; 1 by default"},
  };
  return keys;
}

static ArrayRef<KeySpec> getDeviceKeys() {
  static const KeySpec keys[] = {
      {"flops", ValueType(getMapSchema(getFlopsKeys())),
       "the speed of contractions, by element type", KeySpec::Required},
      {"elementwise", ValueType::numberAbove(0),
       "the speed of all other arithmetic, in elements/s", KeySpec::Required},
      {"memory_bandwidth", ValueType::numberAbove(0),
       "the speed of reading and writing memory, in bytes/s",
       KeySpec::Required},
      {"memory_capacity", getCount(), "the size of the memory, in bytes",
       KeySpec::Required},
      {"launch", ValueType::number(0),
       "the fixed time of an op, in seconds; 0 by default"},
      {"efficiency", ValueType(getMapSchema(getEfficiencyKeys())),
       "the shares of the device's peaks that ops reach; all by default"},
      {"fusion", ValueType::boolean(),
       "whether elementwise ops are fused into their users; true by default"},
      {"overlap", ValueType::number(0, 1),
       "the speed of computing during a started collective, as a share of the "
       "usual one; 0 by default"},
  };
  return keys;
}

static ArrayRef<KeySpec> getNodeKeys() {
  static const KeySpec keys[] = {
      {"devices", getCount(), "the number of devices of a node",
       KeySpec::Required},
      {"memory_bandwidth", ValueType::numberAbove(0),
       "the memory bandwidth that all ranks of a node share, in bytes/s; not "
       "shared by default"},
  };
  return keys;
}

static ArrayRef<KeySpec> getCollectiveKeys() {
  static const KeySpec keys[] = {
      {"kind", ValueType::oneOf(getCollectiveKinds()),
       "which collective was measured", KeySpec::Required},
      {"ranks", getCount(), "the number of ranks that took part",
       KeySpec::Required},
      {"latency", ValueType::number(0), "the fixed time, in seconds",
       KeySpec::Required},
      {"bandwidth", ValueType::numberAbove(0),
       "the rate at which a rank receives, in bytes/s", KeySpec::Required},
  };
  return keys;
}

static ArrayRef<KeySpec> getLinkKeys() {
  static const KeySpec keys[] = {
      {"name", ValueType::text(), "what reports call the link",
       KeySpec::Required},
      {"ranks", getCount(),
       "n: the link joins ranks 0 to n-1, n to 2n-1, ...; the last link has no "
       "'ranks', and joins all"},
      {"latency", ValueType::number(0), "the time of a message, in seconds",
       KeySpec::Required},
      {"bandwidth", ValueType::numberAbove(0),
       "the rate at which a rank receives, in bytes/s", KeySpec::Required},
      {"algorithm", ValueType::name(kAlgorithms),
       "how ranks exchange data: in steps with a neighbor (ring, the default), "
       "or all with all in one step (direct)"},
      {"collectives",
       ValueType::list(ValueType(getMapSchema(getCollectiveKeys()))),
       "measurements, which replace the formula"},
  };
  return keys;
}

static ArrayRef<KeySpec> getMachineKeys() {
  static const KeySpec keys[] = {
      {"name", ValueType::text(),
       "what reports call the machine; the path by default"},
      {"device", ValueType(getMapSchema(getDeviceKeys())),
       "what each rank computes on", KeySpec::Required},
      {"node", ValueType(getMapSchema(getNodeKeys())),
       "the devices of a node; one per rank by default"},
      {"links",
       ValueType::list(ValueType(getMapSchema(getLinkKeys())), /*minItems=*/1),
       "how ranks are connected, innermost first", KeySpec::Required},
  };
  return keys;
}

namespace {

class MachineReader : public FieldReader {
public:
  /// `root` is the whole description.
  FailureOr<Machine> read(const YamlValue &root) {
    if (!root.isMap()) {
      reportValue(root, "a machine is a map of 'device', 'node' and 'links'");
      return failure();
    }
    Fields fields = readFields(root, "machine", getMachineKeys());
    if (const YamlValue *name = fields["name"])
      readText(*name, "name", machine.name);
    if (const YamlValue *device = get(fields, "device", root, "machine"))
      readDevice(*device);
    if (const YamlValue *node = fields["node"])
      readNode(*node);
    if (const YamlValue *links = get(fields, "links", root, "machine"))
      readLinks(*links);
    if (failed)
      return failure();
    return machine;
  }

private:
  const YamlValue *get(const Fields &fields, StringRef name,
                       const YamlValue &map, StringRef what) {
    const YamlValue *value = fields[name];
    if (!value)
      report(map.loc, "this " + what + " has no '" + name + "'");
    return value;
  }

  bool checkMap(const YamlValue &value, StringRef what) {
    if (value.isMap())
      return true;
    reportValue(value, "'" + what + "' must be a map");
    return false;
  }

  void readText(const YamlValue &value, StringRef name, std::string &text) {
    if (value.isScalar())
      text = value.text;
    else
      reportValue(value, "'" + name + "' must be a text");
  }

  /// Sets `number` unless `value` is outside of the range of `type`, which
  /// begins at 0.
  void readNumber(const YamlValue &value, StringRef name, const ValueType &type,
                  double &number) {
    double parsed;
    if (value.isScalar() && !value.quoted &&
        !StringRef(value.text).getAsDouble(parsed) && std::isfinite(parsed) &&
        parsed >= 0 && (parsed > 0 || !type.isAbove) &&
        parsed <= type.most.value_or(parsed)) {
      number = parsed;
      return;
    }
    std::string rule;
    llvm::raw_string_ostream os(rule);
    os << (type.isAbove ? "positive number" : "number");
    if (type.most)
      os << (type.isAbove ? " of at most " : " from 0 to ")
         << llvm::format("%g", *type.most);
    else if (!type.isAbove)
      os << " that isn't negative";
    reportValue(value, "'" + name + "' must be a " + rule);
  }

  /// Sets `number` if the field is there.
  void readNumber(const Fields &fields, StringRef name, double &number) {
    if (const YamlValue *value = fields[name])
      readNumber(*value, name, fields.getType(name), number);
  }

  /// Sets `count`, a whole number such as 80e9, if the field is there.
  void readCount(const Fields &fields, StringRef name, int64_t &count) {
    const YamlValue *value = fields[name];
    if (!value)
      return;
    double number = 0;
    readNumber(*value, name, ValueType::numberAbove(0), number);
    if (number == 0)
      return;
    if (number != std::floor(number) || number > *fields.getType(name).most)
      reportValue(*value, "'" + name + "' must be a whole number");
    else
      count = static_cast<int64_t>(number);
  }

  void needNumber(const Fields &fields, StringRef name, const YamlValue &map,
                  StringRef what, double &number) {
    if (get(fields, name, map, what))
      readNumber(fields, name, number);
  }

  void needCount(const Fields &fields, StringRef name, const YamlValue &map,
                 StringRef what, int64_t &count) {
    if (get(fields, name, map, what))
      readCount(fields, name, count);
  }

  void readDevice(const YamlValue &device) {
    if (!checkMap(device, "device"))
      return;
    Fields fields = readFields(device, "device", getDeviceKeys());
    if (const YamlValue *flops = get(fields, "flops", device, "device"))
      readFlops(*flops);
    needNumber(fields, "elementwise", device, "device", machine.elementwise);
    needNumber(fields, "memory_bandwidth", device, "device",
               machine.memoryBandwidth);
    needCount(fields, "memory_capacity", device, "device",
              machine.memoryCapacity);
    readNumber(fields, "launch", machine.launch);
    if (const YamlValue *efficiency = fields["efficiency"])
      readEfficiency(*efficiency);
    if (const YamlValue *fusion = fields["fusion"]) {
      if (std::optional<bool> fuses = fusion->getBool())
        machine.fusion = *fuses;
      else
        reportValue(*fusion, "'fusion' must be true or false");
    }
    readNumber(fields, "overlap", machine.overlap);
  }

  void readEfficiency(const YamlValue &efficiency) {
    if (!checkMap(efficiency, "efficiency"))
      return;
    Fields fields = readFields(efficiency, "efficiency", getEfficiencyKeys());
    readNumber(fields, "contraction", machine.efficiency.contraction);
    readNumber(fields, "half_extent", machine.efficiency.halfExtent);
    readNumber(fields, "attention", machine.efficiency.attention);
    readNumber(fields, "memory", machine.efficiency.memory);
  }

  void readFlops(const YamlValue &flops) {
    if (!checkMap(flops, "flops"))
      return;
    Fields fields = readFields(flops, "map", getFlopsKeys());
    for (auto [name, number] :
         {std::pair<StringRef, double *>{"f64", &machine.flopsF64},
          {"f32", &machine.flopsF32},
          {"f16", &machine.flopsF16},
          {"bf16", &machine.flopsBF16}})
      needNumber(fields, name, flops, "map of FLOP/s", *number);
  }

  void readNode(const YamlValue &node) {
    if (!checkMap(node, "node"))
      return;
    Fields fields = readFields(node, "node", getNodeKeys());
    needCount(fields, "devices", node, "node", machine.nodeDevices);
    readNumber(fields, "memory_bandwidth", machine.nodeMemoryBandwidth);
  }

  void readLinks(const YamlValue &links) {
    if (!links.isList() || links.items.empty()) {
      report(links.loc,
             "'links' must be a list of at least one link, found " +
                 (links.isList() ? std::string("none") : links.describe()));
      return;
    }
    for (const YamlValue &item : links.items)
      readLink(item, &item == &links.items.back());
  }

  void readLink(const YamlValue &item, bool isLast) {
    if (!checkMap(item, "links"))
      return;
    Link link;
    Fields fields = readFields(item, "link", getLinkKeys());
    if (const YamlValue *name = get(fields, "name", item, "link"))
      readText(*name, "name", link.name);
    if (const YamlValue *ranks = fields["ranks"]) {
      readCount(fields, "ranks", link.ranks);
      int64_t inner = 1;
      for (const Link &before : machine.links)
        inner = std::max(inner, before.ranks);
      if (isLast)
        report(ranks->loc, "the last link joins all ranks and has no 'ranks'");
      else if (link.ranks > 0 && (link.ranks <= inner || link.ranks % inner))
        report(ranks->loc,
               "'ranks' must be a multiple of the " + std::to_string(inner) +
                   " that the link before joins, and more; found '" +
                   std::to_string(link.ranks) + "'");
    } else if (!isLast) {
      report(item.loc,
             "this link has no 'ranks'; only the last link joins all");
    }
    needNumber(fields, "latency", item, "link", link.latency);
    needNumber(fields, "bandwidth", item, "link", link.bandwidth);
    if (const YamlValue *algorithm = fields["algorithm"])
      readAlgorithm(*algorithm, link.algorithm);
    if (const YamlValue *collectives = fields["collectives"])
      readCollectives(*collectives, link);
    machine.links.push_back(std::move(link));
  }

  void readAlgorithm(const YamlValue &value, LinkAlgorithm &algorithm) {
    if (auto known = findNamed(kAlgorithms, value.text))
      algorithm = *known;
    else
      reportValue(value, "'algorithm' must be 'ring' or 'direct'");
  }

  void readCollectives(const YamlValue &list, Link &link) {
    if (!list.isList()) {
      reportValue(list, "'collectives' must be a list");
      return;
    }
    for (const YamlValue &item : list.items) {
      if (!checkMap(item, "collectives"))
        continue;
      MeasuredCollective measured{"", 0, 0, 0};
      Fields fields = readFields(item, "collective", getCollectiveKeys());
      if (const YamlValue *kind = get(fields, "kind", item, "collective")) {
        readText(*kind, "kind", measured.kind);
        if (SmallVector<StringRef> kinds = getCollectiveKinds();
            !llvm::is_contained(kinds, measured.kind))
          report(kind->loc,
                 "unknown collective '" + measured.kind + "'" +
                     suggestOr(measured.kind, kinds,
                               "; kinds are " + llvm::join(kinds, ", ")));
      }
      needCount(fields, "ranks", item, "collective", measured.ranks);
      needNumber(fields, "latency", item, "collective", measured.latency);
      needNumber(fields, "bandwidth", item, "collective", measured.bandwidth);
      link.collectives.push_back(std::move(measured));
    }
  }

  Machine machine;
};

} // namespace

FailureOr<Machine> tp::parseMachine(StringRef text, StringRef path,
                                    MLIRContext *context) {
  std::optional<YamlValue> root = readYaml(text, path, "a machine", context);
  if (!root)
    return failure();
  FailureOr<Machine> machine = MachineReader().read(*root);
  if (succeeded(machine) && machine->name.empty())
    machine->name = path.str();
  return machine;
}

FailureOr<Machine> tp::readMachine(StringRef nameOrPath, MLIRContext *context) {
  if (const Machine *preset = findMachine(nameOrPath))
    return *preset;
  auto file = readInput(nameOrPath);
  if (file)
    return parseMachine((*file)->getBuffer(), nameOrPath, context);
  std::vector<StringRef> names = getMachineNames();
  std::string hint = suggestNearest(nameOrPath, names);
  return emitError(UnknownLoc::get(context))
         << "no machine is called '" << nameOrPath
         << "', and no file can be read there ("
         << llvm::toString(file.takeError()) << ")"
         << (hint.empty() ? "; machines are " + llvm::join(names, ", ") : hint);
}

//===----------------------------------------------------------------------===//
// From dlti
//===----------------------------------------------------------------------===//

/// The tree that a dlti attribute represents; all of its nodes have location
/// `loc`.
static YamlValue toValue(Attribute attr, FileLineColLoc loc);

/// A map of the entries whose key is a string.
static YamlValue toMap(DataLayoutEntryListRef entries, FileLineColLoc loc) {
  YamlValue map(loc);
  map.kind = YamlValue::Kind::Map;
  for (DataLayoutEntryInterface entry : entries) {
    auto key = dyn_cast<StringAttr>(entry.getKey());
    if (!key)
      continue;
    map.items.push_back(toValue(key, loc));
    map.items.push_back(toValue(entry.getValue(), loc));
  }
  return map;
}

static YamlValue toValue(Attribute attr, FileLineColLoc loc) {
  if (auto map = dyn_cast<MapAttr>(attr))
    return toMap(map.getEntries(), loc);
  if (auto spec = dyn_cast<TargetDeviceSpecInterface>(attr))
    return toMap(spec.getEntries(), loc);
  YamlValue value(loc);
  if (auto list = dyn_cast<ArrayAttr>(attr)) {
    value.kind = YamlValue::Kind::List;
    for (Attribute item : list)
      value.items.push_back(toValue(item, loc));
    return value;
  }
  value.kind = YamlValue::Kind::Scalar;
  if (auto text = dyn_cast<StringAttr>(attr)) {
    value.text = text.str();
    value.quoted = true;
  } else if (auto boolean = dyn_cast<BoolAttr>(attr)) {
    value.text = boolean.getValue() ? "true" : "false";
  } else if (auto integer = dyn_cast<IntegerAttr>(attr)) {
    value.text = std::to_string(integer.getInt());
  } else if (auto number = dyn_cast<FloatAttr>(attr)) {
    value.text = llvm::formatv("{0:e16}", number.getValueAsDouble());
  } else {
    llvm::raw_string_ostream(value.text) << attr;
  }
  return value;
}

FailureOr<std::optional<Machine>> tp::getMachine(ModuleOp module) {
  TargetSystemSpecInterface spec = module.getTargetSystemSpec();
  if (!spec || !llvm::any_of(spec.getEntries(), [](auto entry) {
        auto key = dyn_cast<StringAttr>(entry.getKey());
        return key && key == kDeviceKey;
      }))
    return std::optional<Machine>();
  auto loc = module.getLoc()->findInstanceOf<FileLineColLoc>();
  if (!loc)
    loc = FileLineColLoc::get(module.getContext(), "module", 1, 1);

  // dlti has no list for the links; they are the entries "link.NAME".
  YamlValue root(loc), links(loc);
  root.kind = YamlValue::Kind::Map;
  links.kind = YamlValue::Kind::List;
  auto add = [](YamlValue &map, StringRef name, YamlValue value) {
    YamlValue key(map.loc);
    key.kind = YamlValue::Kind::Scalar;
    key.text = name.str();
    map.items.push_back(std::move(key));
    map.items.push_back(std::move(value));
  };
  for (DataLayoutEntryInterface entry : spec.getEntries()) {
    auto key = dyn_cast<StringAttr>(entry.getKey());
    if (!key)
      continue;
    YamlValue value = toValue(entry.getValue(), loc);
    StringRef name = key.getValue();
    if (!name.consume_front(kLinkPrefix)) {
      add(root, name, std::move(value));
      continue;
    }
    add(value, "name",
        toValue(StringAttr::get(module.getContext(), name), loc));
    links.items.push_back(std::move(value));
  }
  add(root, "links", std::move(links));
  FailureOr<Machine> machine = MachineReader().read(root);
  if (failed(machine))
    return failure();
  if (machine->name.empty())
    machine->name = "dlti.target_system_spec";
  return std::optional<Machine>(std::move(*machine));
}

//===----------------------------------------------------------------------===//
// To JSON
//===----------------------------------------------------------------------===//

llvm::json::Value tp::toJSON(const Machine &machine) {
  using llvm::json::Object;
  Object device{{"flops", Object{{"f64", machine.flopsF64},
                                 {"f32", machine.flopsF32},
                                 {"f16", machine.flopsF16},
                                 {"bf16", machine.flopsBF16}}},
                {"elementwise", machine.elementwise},
                {"memory_bandwidth", machine.memoryBandwidth},
                {"memory_capacity", machine.memoryCapacity},
                {"launch", machine.launch}};
  const Efficiency &efficiency = machine.efficiency;
  Object shares;
  auto addShare = [&](StringRef name, double share, double byDefault) {
    if (share != byDefault)
      shares[name] = share;
  };
  addShare("contraction", efficiency.contraction, 1);
  addShare("half_extent", efficiency.halfExtent, 0);
  addShare("attention", efficiency.attention, 0);
  addShare("memory", efficiency.memory, 1);
  if (!shares.empty())
    device["efficiency"] = std::move(shares);
  if (!machine.fusion)
    device["fusion"] = false;
  if (machine.overlap > 0)
    device["overlap"] = machine.overlap;
  Object root{{"name", machine.name}, {"device", std::move(device)}};
  if (machine.nodeDevices > 0) {
    Object node{{"devices", machine.nodeDevices}};
    if (machine.nodeMemoryBandwidth > 0)
      node["memory_bandwidth"] = machine.nodeMemoryBandwidth;
    root["node"] = std::move(node);
  }
  llvm::json::Array links;
  for (const Link &link : machine.links) {
    Object object{{"name", link.name},
                  {"latency", link.latency},
                  {"bandwidth", link.bandwidth},
                  {"algorithm", getUsualName(kAlgorithms, link.algorithm)}};
    if (link.ranks > 0)
      object["ranks"] = link.ranks;
    llvm::json::Array collectives;
    for (const MeasuredCollective &measured : link.collectives)
      collectives.push_back(Object{{"kind", measured.kind},
                                   {"ranks", measured.ranks},
                                   {"latency", measured.latency},
                                   {"bandwidth", measured.bandwidth}});
    if (!collectives.empty())
      object["collectives"] = std::move(collectives);
    links.push_back(std::move(object));
  }
  root["links"] = std::move(links);
  return root;
}

llvm::json::Value tp::getMachineSchema() {
  return makeFileSchema(getMapSchema(getMachineKeys()), "tp-mlir machine",
                        "The device, the node and the links of a machine, "
                        "for machine=FILE of tp-opt.");
}
