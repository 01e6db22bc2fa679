//===- Heads.cpp - Heads that ranks don't divide --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A projection's columns are split and then reshaped into heads. Each rank must
// hold whole heads; otherwise, the columns have to be gathered first. If there
// are more ranks than heads, they also split the columns of a head, which is
// fine as long as no op needs these whole.
//
//===----------------------------------------------------------------------===//

#include "PlacementFlow.h"
#include "Plan/Evenness.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

class HeadCheck final : public FlowCheck {
public:
  explicit HeadCheck(FlowContext &context) : context(context) {}

  void visitTakenApart(const TakenApart &apart,
                       const KnownLayout &known) override {
    if (known.origin && seen.insert(apart.operand).second)
      met[known.origin->loc].push_back({apart, known});
  }

  void finish() override {
    for (auto &[loc, places] : met) {
      llvm::SmallSetVector<StringAttr, 4> modules;
      for (const Place &place : places)
        if (ModuleOpInterface module = place.known.originModule)
          modules.insert(module.getFqnAttr());
      std::string narrower = narrow(modules.getArrayRef());
      for (const Place &place : places)
        report(place, narrower);
    }
  }

private:
  struct Place {
    TakenApart apart;
    KnownLayout known;
  };

  void report(const Place &place, StringRef narrower) {
    auto [operand, dim, majorSize, module] = place.apart;
    const LayoutStep &origin = *place.known.origin;
    const MeshGroup &group = context.getGroup();
    auto type = cast<RankedTensorType>(operand->get().getType());
    int64_t size = type.getDimSize(dim);
    int64_t bytes = getReceivedBytes(Placement::shard(dim),
                                     Placement::replicate(), type, group.size);
    std::string edit = narrower.str();
    if (edit.empty() && majorSize == 1)
      edit = "ask for another output layout here, such as Replicate";
    else if (edit.empty())
      edit = "use a size of the mesh dimension that divides " +
             std::to_string(majorSize) + ": " + listDivisors(majorSize);
    if (majorSize > 1 && isFused(*operand, majorSize))
      edit = "this is a packed weight of " + std::to_string(majorSize) +
             " parts: write {style: packed_colwise, blocks: " +
             std::to_string(majorSize) + "}";
    context.add(
        {"heads", origin.loc,
         describeModule(module) + " reshapes a dimension of size " +
             std::to_string(size) + " to " + std::to_string(majorSize) + " × " +
             std::to_string(size / majorSize) + "; " +
             std::to_string(majorSize) + " can't be split evenly over " +
             group.describe() + ", as " + origin.argument + " asks",
         "each rank receives " + printBytes(bytes) +
             (majorSize == 1 ? "" : ", unless the parts can be split unevenly"),
         edit});
  }

  /// Whether the parts are used separately, as query, key and value are.
  static bool isFused(OpOperand &operand, int64_t majorSize) {
    for (Value result : operand.getOwner()->getResults())
      for (Operation *user : result.getUsers())
        if (auto slice = dyn_cast<nn::SliceOp>(user))
          if (slice.getInput().getType().getDimSize(slice.getDim()) ==
              majorSize)
            return true;
    return false;
  }

  /// How to exclude `modules` from those that their entry matches, such as the
  /// key and value projections of w[qkv]; empty if it matches no others.
  std::string narrow(ArrayRef<StringAttr> modules) {
    if (modules.empty())
      return "";
    const PlanEntry *entry = nullptr;
    for (const ModuleLayouts &layouts : context.plan.modules)
      if (layouts.group == context.groupIndex && layouts.fqn == modules.front())
        entry = layouts.entry;
    MatchMode mode = context.plan.file.groups[context.groupIndex].match;
    // Sorted, because modules are called in any order.
    std::set<std::string> affected, others;
    for (StringAttr fqn : modules)
      affected.insert(getPattern(fqn, mode));
    for (const ModuleLayouts &layouts : context.plan.modules) {
      std::string pattern = getPattern(layouts.fqn, mode);
      if (layouts.entry == entry && !affected.contains(pattern))
        others.insert(pattern);
    }
    if (!entry || others.empty())
      return "";
    return "narrow the pattern to '" + llvm::join(others, "' and '") +
           "', so that it doesn't match '" + llvm::join(affected, "' and '") +
           "'";
  }

  FlowContext &context;
  llvm::DenseSet<OpOperand *> seen;
  llvm::MapVector<Attribute, SmallVector<Place>> met;
};

} // namespace

std::unique_ptr<FlowCheck> plan::createHeadCheck(FlowContext &context) {
  return std::make_unique<HeadCheck>(context);
}
