//===- FsdpGroups.cpp - Parameters that FSDP moves together ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's fully_shard makes one group of the parameters of each module that
// it is called on, except those of inner modules that it was called on before.
// Users call it on a model's blocks and then on the root. If a plan doesn't
// name the blocks, the numbered modules are taken for blocks: the modules of a
// list, or siblings whose names differ only in a number at the end.
//
//===----------------------------------------------------------------------===//

#include "FsdpGroups.h"
#include "tp/Dialect/TP/Elements.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Plan/Pattern.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

/// The most bytes of global parameters in a group if a model has no blocks: the
/// bucket_cap_mb of DistributedDataParallel.
constexpr int64_t kGroupBytes = 25 << 20;

namespace {

/// A module, or a container such as nn.ModuleList.
struct Node {
  /// Empty if the module isn't called.
  StringRef className;
  bool hasParameters = false;
  std::map<std::string, Node> children;

  bool isLeaf() const {
    return llvm::none_of(
        children, [](auto &child) { return child.second.hasParameters; });
  }
};

class GroupFinder {
public:
  GroupFinder(ModuleOp model, CheckedPlan &plan) : plan(plan) {
    model.walk([&](Operation *op) {
      if (auto module = dyn_cast<ModuleOpInterface>(op)) {
        tree.addModule(module.getFqn());
        modules.insert(module.getFqn());
        getNode(module.getFqn()).className = module.getClassName();
      } else if (auto parameter = dyn_cast<ParameterOpInterface>(op)) {
        if (!parameter->hasAttr(kBufferAttr))
          addParameter(parameter);
      }
    });
  }

  LogicalResult run(const DataAxis *axis) {
    if (axis->modules) {
      if (failed(takeModules(*axis->modules)))
        return failure();
    } else {
      for (bool mayBeLeaves : {false, true})
        if (heads.empty())
          findBlocks(root, "", mayBeLeaves);
      if (heads.empty()) {
        takeBuckets();
        return success();
      }
    }
    for (ParameterOpInterface parameter : parameters)
      setGroup(parameter, getHead(parameter.getFqn()));
    return success();
  }

private:
  Node &getNode(StringRef fqn) {
    Node *node = &root;
    for (StringRef token : llvm::split(fqn, '.'))
      if (!token.empty())
        node = &node->children[token.str()];
    return *node;
  }

  void addParameter(ParameterOpInterface parameter) {
    if (!names.insert(parameter.getFqn()).second)
      return;
    parameters.push_back(parameter);
    Node *node = &root;
    node->hasParameters = true;
    for (StringRef token : llvm::split(getHolder(parameter.getFqn()), '.'))
      if (!token.empty()) {
        node = &node->children[token.str()];
        node->hasParameters = true;
      }
  }

  static StringRef getHolder(StringRef parameter) {
    size_t dot = parameter.rfind('.');
    return dot == StringRef::npos ? StringRef() : parameter.take_front(dot);
  }

  void setGroup(ParameterOpInterface parameter, StringRef group) {
    plan.fsdpGroups[parameter.getFqnAttr()] =
        StringAttr::get(parameter.getContext(), group);
  }

  /// The innermost head that contains the parameter; the root's FQN is empty.
  StringRef getHead(StringRef parameter) const {
    StringRef module = getHolder(parameter);
    while (!module.empty() && !heads.contains(module))
      module = getHolder(module);
    return module;
  }

  LogicalResult takeModules(ArrayRef<ModulePattern> patterns) {
    bool valid = true;
    for (const ModulePattern &pattern : patterns) {
      bool matched = pattern.text.empty();
      for (StringRef module : modules.keys())
        if (matchFqn(pattern.text, module)) {
          heads.insert(module);
          matched = true;
        }
      if (matched)
        continue;
      valid = false;
      emitError(pattern.loc)
          << "modules: pattern '" << pattern.text << "' matches no module: "
          << tree.explainMismatch(pattern.text, MatchMode::Fnmatch);
    }
    return success(valid);
  }

  /// Takes the outermost numbered modules as blocks. With `mayBeLeaves`, which
  /// is only tried if no others are found, modules without inner modules count,
  /// too.
  void findBlocks(const Node &node, const std::string &fqn, bool mayBeLeaves) {
    std::map<std::string, SmallVector<const Node *>> bySeries;
    for (auto &[name, child] : node.children)
      if (llvm::isDigit(name.back()))
        bySeries[getSeries(name)].push_back(&child);
    for (auto &[name, child] : node.children) {
      if (!child.hasParameters)
        continue;
      std::string path = fqn.empty() ? name : fqn + "." + name;
      if (llvm::isDigit(name.back()) &&
          areBlocks(getSeries(name), bySeries[getSeries(name)], mayBeLeaves))
        heads.insert(path);
      else
        findBlocks(child, path, mayBeLeaves);
    }
  }

  static std::string getSeries(StringRef name) {
    return name.rtrim("0123456789").str();
  }

  static bool areBlocks(StringRef series, ArrayRef<const Node *> members,
                        bool mayBeLeaves) {
    auto isAlike = [&](const Node *member) {
      return !member->className.empty() &&
             member->className == members.front()->className;
    };
    bool areAlike = members.size() > 1 && llvm::all_of(members, isAlike);
    if (mayBeLeaves)
      return series.empty() && areAlike;
    return (series.empty() || areAlike) &&
           llvm::none_of(members, [](const Node *member) {
             return member->hasParameters && member->isLeaf();
           });
  }

  /// In a model without blocks, parameters that are read one after another make
  /// a group, up to some size. The first group is the root's.
  void takeBuckets() {
    StringRef group;
    int64_t bytes = 0;
    for (ParameterOpInterface parameter : parameters) {
      int64_t own = getTensorBytes(parameter.getType());
      if (bytes + own > kGroupBytes && bytes != 0) {
        group = parameter.getFqn();
        bytes = 0;
      }
      bytes += own;
      setGroup(parameter, group);
    }
  }

  CheckedPlan &plan;
  ModuleTree tree;
  Node root;
  llvm::StringSet<> modules, names;
  /// In the order of their first uses.
  SmallVector<ParameterOpInterface> parameters;
  /// The modules, besides the root, that have a group.
  llvm::StringSet<> heads;
};

} // namespace

LogicalResult plan::findFsdpGroups(ModuleOp model, CheckedPlan &plan) {
  const DataAxis *axis = nullptr;
  for (const DataAxis &data : plan.file.data)
    if (data.style == DataAxis::FSDP && (!axis || data.modules)) {
      if (axis && axis->modules)
        return emitError(data.loc)
               << "modules are named for another mesh dimension already; a "
                  "parameter is in one group over all of them";
      axis = &data;
    }
  return axis ? GroupFinder(model, plan).run(axis) : success();
}
