//===- WeightedModule.h - Modules around one weight -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The common part of the styles for nn.Linear and nn.Embedding. A module is
// recognized by its contents instead of its class name, so that subclasses
// count, too: a single nn.linear or nn.embedding with a parameter as its
// weight, and no submodules.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_PLAN_STYLES_WEIGHTEDMODULE_H
#define TP_LIB_PLAN_STYLES_WEIGHTEDMODULE_H

#include "tp/Plan/Style.h"

namespace mlir::tp::plan {

struct WeightedModule {
  bool isEmbedding = false;
  ParameterOpInterface weight;
  SmallVector<ParameterOpInterface> biases;
};

/// The weight of a module around one weight; nullopt for any other module.
std::optional<WeightedModule> findWeight(ModuleOpInterface module);

/// A layout, and the argument that asks for it.
struct NamedLayout {
  Placement placement;
  StringRef argument;
  FileLineColLoc loc;
};

/// How a weight is split, and the layouts at the module's boundary.
struct WeightSplit {
  enum class Kind { Colwise, Rowwise } kind;
  /// The layout that the input has; by default the one that the split
  /// computation needs.
  std::optional<NamedLayout> declaredInput = {};
  /// The layout of the output; by default the layout that the split computation
  /// gives, after a reduction if it is Partial.
  std::optional<NamedLayout> output = {};
  /// For a packed weight, as in Placement.
  int64_t blocks = 1;
  SmallVector<int64_t> segments = {};

  bool isColwise() const { return kind == Kind::Colwise; }
  bool isPacked() const { return blocks > 1 || !segments.empty(); }
  /// `Shard(dim)`, in the segments of a packed weight.
  Placement getShard(int64_t dim) const;
};

/// Splits the weight and bias of `requests.getModule()` and lays out its first
/// input and output. Reports an error at `loc` when the module isn't around one
/// weight.
void splitWeight(const WeightSplit &split, FileLineColLoc loc,
                 ModuleRequests &requests);

/// The same for a parameter of a module that is never called. The parameter's
/// rank and use decide what it is: one with one dimension is a bias.
void splitParameter(ParameterOpInterface parameter, const WeightSplit &split,
                    FileLineColLoc loc, ModuleRequests &requests);

/// A style that splits the weight of a module.
class WeightStyle : public Style {
public:
  unsigned getAspects() const override { return Parameters | Inputs | Outputs; }
  bool accepts(ModuleOpInterface module) const override {
    return findWeight(module).has_value();
  }
  void apply(const Arguments &arguments,
             ModuleRequests &requests) const override {
    splitWeight(getSplit(arguments), arguments.getEntryLoc(), requests);
  }
  void applyToParameter(ParameterOpInterface parameter,
                        const Arguments &arguments,
                        ModuleRequests &requests) const override {
    splitParameter(parameter, getSplit(arguments), arguments.getEntryLoc(),
                   requests);
  }

protected:
  virtual WeightSplit getSplit(const Arguments &arguments) const = 0;
};

/// "Shard(0)", "Replicate()", "Partial("sum")".
std::string printPython(const Placement &placement);

} // namespace mlir::tp::plan

#endif // TP_LIB_PLAN_STYLES_WEIGHTEDMODULE_H
