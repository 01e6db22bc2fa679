//===- MeshUse.cpp - What each mesh dimension is used for -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MeshUse.h"
#include "tp/Plan/Edit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::planning;

StringRef planning::getName(AxisRole role) {
  switch (role) {
  case AxisRole::Tensor:
    return "tensor";
  case AxisRole::DDP:
    return "ddp";
  case AxisRole::FSDP:
    return "fsdp";
  }
  llvm_unreachable("all roles are there");
}

plan::AxisSet MeshUse::getTensorAxes() const {
  plan::AxisSet axes;
  for (auto [axis, role] : llvm::enumerate(roles))
    if (role == AxisRole::Tensor)
      axes.push_back(axis);
  return axes;
}

std::string MeshUse::describe() const {
  std::string text;
  for (auto [axis, role] : llvm::zip_equal(mesh, roles))
    text += (text.empty() ? "" : ", ") + axis.name + "=" +
            std::to_string(axis.size) + " " + getName(role).str();
  return text;
}

/// The roles that the dimension after those of `use` may have.
static SmallVector<AxisRole> getNextRoles(const MeshUse &use) {
  size_t axis = use.roles.size();
  if (use.mesh[axis].size == 1) // splits nothing
    return {AxisRole::DDP};
  SmallVector<AxisRole> roles = {AxisRole::DDP, AxisRole::FSDP,
                                 AxisRole::Tensor};
  for (size_t i = 0; i < axis; ++i) {
    bool isData = use.mesh[i].size > 1 && use.roles[i] != AxisRole::Tensor;
    if (isData)
      llvm::erase(roles, AxisRole::DDP);
    if (isData && use.roles[i] == AxisRole::FSDP)
      llvm::erase(roles, AxisRole::FSDP);
  }
  return roles;
}

std::vector<MeshUse> planning::getMeshUses(ArrayRef<plan::MeshAxis> mesh) {
  std::vector<MeshUse> uses = {{mesh.vec(), {}}};
  for (size_t axis = 0; axis < mesh.size(); ++axis) {
    std::vector<MeshUse> longer;
    for (const MeshUse &use : uses)
      for (AxisRole role : getNextRoles(use)) {
        longer.push_back(use);
        longer.back().roles.push_back(role);
      }
    uses = std::move(longer);
  }
  return uses;
}

std::string planning::printPlan(const MeshUse &use,
                                ArrayRef<plan::PlanEntry> entries) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto getAxisName = [&](unsigned axis) { return use.mesh[axis].name; };
  os << "mesh: {";
  llvm::interleaveComma(use.mesh, os, [&](const plan::MeshAxis &axis) {
    os << axis.name << ": " << axis.size;
  });
  os << "}\n";
  plan::AxisSet tensor = use.getTensorAxes();
  if (tensor.size() < use.mesh.size()) {
    os << "data_parallel:\n";
    for (auto [axis, role] : llvm::zip_equal(use.mesh, use.roles))
      if (role != AxisRole::Tensor)
        os << "  " << axis.name << ": " << getName(role) << '\n';
  }
  if (tensor.empty())
    return text;
  os << "mesh_dim: ";
  if (tensor.size() == 1)
    os << getAxisName(tensor.front());
  else
    os << '[' << llvm::join(llvm::map_range(tensor, getAxisName), ", ") << ']';
  os << '\n';
  if (entries.empty()) {
    os << "plan: {}\n";
    return text;
  }
  os << "plan:\n";
  for (const plan::PlanEntry &entry : entries)
    os << "  " << plan::printEntry(entry) << '\n';
  return text;
}
