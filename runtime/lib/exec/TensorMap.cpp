//===- TensorMap.cpp - Tensors by name ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tprt/TensorMap.h"

#include <algorithm>
#include <set>

using namespace tprt;

std::string tprt::checkTensors(const std::vector<TensorInfo> &wanted,
                               const TensorMap &given, std::string_view kind,
                               bool allowUnused, bool convertsFloats) {
  std::string problems;
  auto report = [&](const std::string &text) {
    problems += (problems.empty() ? "" : "\n") + text;
  };
  // A few problems of each kind are enough to understand it.
  constexpr size_t maxReports = 8;
  auto reportAll = [&](const std::vector<std::string> &texts,
                       const std::string &more) {
    for (size_t i = 0; i < std::min(texts.size(), maxReports); ++i)
      report(texts[i]);
    if (texts.size() > maxReports)
      report("and " + std::to_string(texts.size() - maxReports) + " more " +
             more);
  };
  std::vector<std::string> missing, wrong, unknown;
  std::vector<std::string> wantedNames, unused;
  std::set<std::string> wantedSet;
  for (const TensorInfo &info : wanted) {
    wantedNames.push_back(info.name);
    wantedSet.insert(info.name);
  }
  for (const auto &[name, tensor] : given)
    if (!wantedSet.contains(name))
      unused.push_back(name);

  std::string quotedKind(kind);
  for (const TensorInfo &info : wanted) {
    auto found = given.find(info.name);
    if (found == given.end()) {
      if (info.init)
        continue;
      missing.push_back("missing " + quotedKind + " '" + info.name +
                        "' of type " + info.getTypeString() +
                        didYouMean(info.name, unused));
      continue;
    }
    const Tensor &tensor = found->second;
    bool sameDtype =
        tensor.dtype == info.dtype ||
        (info.dtype == Dtype::BF16 && tensor.dtype == Dtype::F32) ||
        (convertsFloats && isFloat(tensor.dtype) && isFloat(info.dtype));
    if (!sameDtype || tensor.shape != info.shape)
      wrong.push_back(quotedKind + " '" + info.name + "' has type " +
                      tensor.getTypeString() + ", expected " +
                      info.getTypeString());
  }
  if (!allowUnused)
    for (const std::string &name : unused)
      unknown.push_back("unknown " + quotedKind + " '" + name + "'" +
                        (wantedNames.empty()
                             ? ", the program takes none"
                             : ", expected " + quotedList(wantedNames, 8)) +
                        didYouMean(name, wantedNames));
  if (missing.size() > maxReports &&
      missing.size() + unknown.size() == wanted.size() + given.size())
    report("none of the program's " + std::to_string(wanted.size()) + " " +
           quotedKind + "s is there: these are another program's");
  reportAll(wrong, "have another type");
  reportAll(missing, "are missing");
  reportAll(unknown, "are unknown");
  return problems;
}

std::string tprt::checkParameters(const std::vector<TensorInfo> &wanted,
                                  const TensorMap &values,
                                  const TensorMap &blocks,
                                  const std::vector<int64_t> &ranks,
                                  std::string_view kind, bool allowUnused) {
  std::vector<TensorInfo> wantedValues, wantedBlocks;
  for (TensorInfo info : wanted) {
    if (!blocks.contains(info.name)) {
      wantedValues.push_back(info);
      continue;
    }
    if (ranks.size() != 1)
      return "there is a block of '" + info.name + "', and this process runs " +
             std::to_string(ranks.size()) +
             " ranks; blocks are for a process that runs one";
    info.shape = info.shards[ranks.front()].getShape();
    wantedBlocks.push_back(info);
  }
  std::string problems = checkTensors(wantedValues, values, kind, allowUnused,
                                      /*convertsFloats=*/true);
  std::string ofBlocks =
      checkTensors(wantedBlocks, blocks, "block of " + std::string(kind),
                   allowUnused, /*convertsFloats=*/true);
  bool areBoth = !problems.empty() && !ofBlocks.empty();
  return problems + (areBoth ? "\n" : "") + ofBlocks;
}
