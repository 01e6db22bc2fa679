//===- ParameterPatterns.cpp - Parameter patterns of training files -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainingStep.h"
#include "tp/Plan/Pattern.h"

using namespace mlir;
using namespace mlir::tp;

/// Whether `pattern` matches `fqn` or a module that contains it.
static bool matches(StringRef pattern, StringRef fqn) {
  for (size_t dot = fqn.find('.');; dot = fqn.find('.', dot + 1)) {
    if (plan::matchFqn(pattern, fqn.take_front(dot)))
      return true;
    if (dot == StringRef::npos)
      return false;
  }
}

bool tp::matchesAny(ArrayRef<std::string> patterns, StringRef fqn) {
  return llvm::any_of(patterns,
                      [&](StringRef pattern) { return matches(pattern, fqn); });
}

LogicalResult tp::checkPatterns(const TrainingConfig &config,
                                ArrayRef<std::string> modules,
                                ArrayRef<StringAttr> parameters) {
  plan::ModuleTree tree;
  for (const std::string &module : modules)
    tree.addModule(module);
  for (StringAttr fqn : parameters)
    tree.addParameter(fqn);
  bool isWrong = false;
  auto checkParameters = [&](ArrayRef<std::string> patterns,
                             ArrayRef<FileLineColLoc> locs, StringRef what) {
    for (auto [pattern, loc] : llvm::zip(patterns, locs)) {
      if (llvm::any_of(parameters,
                       [&](StringAttr fqn) { return matches(pattern, fqn); }))
        continue;
      isWrong = true;
      emitError(loc) << what << ": pattern '" << pattern
                     << "' matches no parameter: "
                     << tree.explainNoParameter(pattern,
                                                plan::MatchMode::Fnmatch);
    }
  };
  checkParameters(config.frozen, config.frozenLocs, "frozen");
  if (config.optimizer)
    checkParameters(config.optimizer->noDecay, config.noDecayLocs, "no_decay");
  auto checkModules = [&](ArrayRef<std::string> patterns,
                          ArrayRef<FileLineColLoc> locs, StringRef what) {
    for (auto [pattern, loc] : llvm::zip(patterns, locs)) {
      if (llvm::any_of(modules, [&](StringRef module) {
            return plan::matchFqn(pattern, module);
          }))
        continue;
      isWrong = true;
      emitError(loc) << what << ": pattern '" << pattern
                     << "' matches no module: "
                     << tree.explainMismatch(pattern, plan::MatchMode::Fnmatch);
    }
  };
  checkModules(config.checkpoint, config.checkpointLocs, "checkpoint");
  checkModules(config.keep, config.keepLocs, "keep");
  if (isWrong)
    return failure();
  for (auto [pattern, loc] : llvm::zip(config.keep, config.keepLocs)) {
    if (llvm::any_of(modules, [&](StringRef module) {
          return plan::matchFqn(pattern, module) &&
                 matchesAny(config.checkpoint, module);
        }))
      continue;
    isWrong = true;
    emitError(loc) << "keep: pattern '" << pattern
                   << "' matches no module that 'checkpoint' matches, nor one "
                      "inside of these";
  }
  return failure(isWrong);
}
