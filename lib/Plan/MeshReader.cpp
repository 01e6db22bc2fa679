//===- MeshReader.cpp - The mesh of a plan --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MeshReader.h"
#include "PlanKeys.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

int64_t MeshReader::getNumRanks() const {
  int64_t ranks = 1;
  for (const MeshAxis &axis : plan.mesh)
    ranks *= axis.size;
  return ranks;
}

void MeshReader::read(const YamlValue *mesh, const YamlValue *worldSize,
                      FileLineColLoc rootLoc) {
  if (!mesh)
    return report(rootLoc,
                  "key 'mesh' is missing; write one such as mesh: {tp: 2}");
  bool hasDims = false;
  if (mesh->isMap())
    for (size_t i = 0; i < mesh->getNumFields(); ++i)
      hasDims |=
          mesh->getKey(i).text == "dims" && !mesh->getField(i).isScalar();
  if (!hasDims) {
    readAxes(*mesh);
  } else {
    Fields fields = readFields(*mesh, "mesh", getMeshKeys());
    readAxes(*fields["dims"]);
    if (fields["devices"] && !plan.mesh.empty())
      readDevices(*fields["devices"]);
  }
  if (!worldSize)
    return;
  std::optional<int64_t> size = worldSize->getInteger();
  if (!size || *size < 1)
    return reportValue(*worldSize,
                       "world_size must be an integer of at least 1");
  if (!plan.mesh.empty() && getNumRanks() > *size)
    report(mesh->loc, "the mesh has " + Twine(getNumRanks()) +
                          " ranks, more than the world_size of " +
                          Twine(*size));
}

void MeshReader::readAxes(const YamlValue &axes) {
  if (!axes.isMap() || axes.getNumFields() == 0)
    return report(axes.loc, "mesh must name at least one dimension and its "
                            "size, such as {tp: 2}");
  bool valid = true;
  int64_t ranks = 1;
  forEachField(axes, "mesh", [&](const YamlValue &key, const YamlValue &field) {
    auto isNameChar = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    if (key.text.empty() || llvm::isDigit(key.text[0]) ||
        !llvm::all_of(key.text, isNameChar)) {
      valid = false;
      return report(key.loc, "mesh dimension '" + key.text +
                                 "' must be named by letters, digits and "
                                 "underscores, a letter first");
    }
    std::optional<int64_t> size = field.getInteger();
    if (!size || *size < 1) {
      valid = false;
      return reportValue(field, "mesh dimension '" + key.text +
                                    "' must have an integer size of at least "
                                    "1");
    }
    if (llvm::MulOverflow(ranks, *size, ranks) || ranks > kMaxRanks) {
      valid = false;
      ranks = 1;
      return report(field.loc,
                    "the mesh has more than " + Twine(kMaxRanks) + " ranks");
    }
    plan.mesh.push_back({key.text, *size});
  });
  if (!valid)
    plan.mesh.clear();
}

bool MeshReader::addDevices(const YamlValue &value, size_t depth) {
  if (value.isList() && depth < plan.mesh.size()) {
    int64_t expected = plan.mesh[depth].size;
    int64_t found = value.items.size();
    if (found != expected) {
      report(value.loc,
             "devices has " + Twine(found) + " entries where mesh dimension '" +
                 plan.mesh[depth].name + "' has size " + Twine(expected));
      return false;
    }
    return llvm::all_of(value.items, [&](const YamlValue &item) {
      return addDevices(item, depth + 1);
    });
  }
  std::optional<int64_t> rank = value.getInteger();
  if (rank && depth == plan.mesh.size() && *rank >= 0 &&
      *rank < getNumRanks()) {
    plan.devices.push_back(*rank);
    return true;
  }
  reportValue(value, "devices must hold the ranks 0 to " +
                         Twine(getNumRanks() - 1) +
                         ", in one list or in nested lists of the mesh's "
                         "shape");
  return false;
}

void MeshReader::readDevices(const YamlValue &devices) {
  bool isFlat = devices.isList() &&
                llvm::all_of(devices.items, [](const YamlValue &item) {
                  return item.isScalar();
                });
  bool valid = true;
  if (isFlat) {
    int64_t found = devices.items.size();
    if (found != getNumRanks())
      return report(devices.loc, "devices has " + Twine(found) +
                                     " ranks, but the mesh has " +
                                     Twine(getNumRanks()));
    for (const YamlValue &item : devices.items)
      valid = valid && addDevices(item, plan.mesh.size());
  } else {
    valid = addDevices(devices, 0);
  }
  llvm::DenseSet<int64_t> seen;
  for (int64_t rank : plan.devices)
    if (valid && !seen.insert(rank).second) {
      valid = false;
      report(devices.loc, "devices has rank " + Twine(rank) + " twice");
    }
  if (!valid)
    plan.devices.clear();
}
