//===- Recomputation.cpp - What a backward pass computes again ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Recomputation.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Plan/Pattern.h"
#include "tp/Plan/Plan.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::planning;

static std::string printList(ArrayRef<std::string> patterns) {
  std::string text;
  for (StringRef pattern : patterns)
    text += ((text.empty() ? "\"" : ", \"") + pattern + "\"").str();
  return "[" + text + "]";
}

std::string Recomputation::print() const {
  std::string text = "\"checkpoint\": " + printList(checkpoint);
  if (!keep.empty())
    text += ", \"keep\": " + printList(keep);
  return text;
}

/// The FQNs of the blocks of `model`.
static llvm::SetVector<StringAttr> getBlocks(ModuleOp model) {
  // The groups of a model without blocks have names of parameters.
  llvm::SetVector<StringAttr> modules, blocks;
  model.walk(
      [&](ModuleOpInterface module) { modules.insert(module.getFqnAttr()); });
  plan::CheckedPlan sharded;
  if (succeeded(plan::parsePlan("mesh: {dp: 2}\ndata_parallel: {dp: fsdp}\n",
                                "auto-plan", model.getContext(),
                                sharded.file)) &&
      succeeded(plan::checkPlan(model, sharded)))
    for (auto &[parameter, group] : sharded.fsdpGroups)
      if (!group.empty() && modules.contains(group))
        blocks.insert(group);
  return blocks;
}

std::vector<Recomputation> planning::getRecomputations(ModuleOp model) {
  std::vector<Recomputation> ways(1);
  llvm::SetVector<StringAttr> blocks = getBlocks(model);
  llvm::SetVector<StringRef> weighted;
  model.walk([&](ParameterOpInterface parameter) {
    auto holder = parameter->getParentOfType<ModuleOpInterface>();
    if (parameter.getType().getRank() < 2 || !holder)
      return;
    for (auto outer = holder->getParentOfType<ModuleOpInterface>(); outer;
         outer = outer->getParentOfType<ModuleOpInterface>())
      if (blocks.contains(outer.getFqnAttr()))
        weighted.insert(holder.getFqn());
  });
  auto addPatterns = [](auto fqns, std::vector<std::string> &patterns) {
    for (auto fqn : fqns) {
      std::string pattern = plan::getPattern(fqn, plan::MatchMode::Fnmatch);
      if (!llvm::is_contained(patterns, pattern))
        patterns.push_back(pattern);
    }
  };
  Recomputation full;
  addPatterns(
      llvm::map_range(blocks, [](StringAttr fqn) { return fqn.getValue(); }),
      full.checkpoint);
  if (full.isNone())
    return ways;
  Recomputation selective = full;
  addPatterns(weighted, selective.keep);
  if (!selective.keep.empty())
    ways.push_back(std::move(selective));
  ways.push_back(std::move(full));
  return ways;
}

std::string planning::addKeys(StringRef training,
                              const Recomputation &recomputation) {
  if (recomputation.isNone())
    return training.str();
  // The text is a flow map, as in JSON, or a block map. Comments may precede it.
  StringRef rest = training.ltrim();
  while (rest.starts_with("#"))
    rest = rest.drop_until([](char c) { return c == '\n'; }).ltrim();
  if (rest.consume_front("{"))
    return (training.drop_back(rest.size()) + recomputation.print() + "," +
            rest)
        .str();
  // All keys of a block map are in one column.
  StringRef before = training.drop_back(rest.size());
  std::string indent(before.size() - (before.rfind('\n') + 1), ' ');
  std::string text = training.rtrim().str() + "\n" + indent +
                     "checkpoint: " + printList(recomputation.checkpoint) +
                     "\n";
  if (!recomputation.keep.empty())
    text += indent + "keep: " + printList(recomputation.keep) + "\n";
  return text;
}
