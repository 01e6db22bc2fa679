//===- BalanceStages.cpp - Stages of equal predicted time -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BalanceStages.h"
#include "tp/Sharding/Cost/CostModel.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

/// The machine whose times count if the plan names none.
constexpr StringLiteral kDefaultMachine = "cpu";

std::optional<SmallVector<size_t>>
plan::balance(ArrayRef<StageLoad> loads, size_t numGroups, int64_t maxBytes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  size_t size = loads.size();
  SmallVector<StageLoad> before(1); // sums of the first loads
  for (const StageLoad &load : loads)
    before.push_back({before.back().seconds + load.seconds,
                      before.back().bytes + load.bytes});
  // The best cost of the first `end` loads in `groups` groups, where `combine`
  // adds the time of a last group that begins at `begin`.
  SmallVector<SmallVector<double>> best;
  SmallVector<SmallVector<size_t>> begins;
  auto solve = [&](function_ref<double(double, double)> combine) {
    best.assign(numGroups + 1, SmallVector<double>(size + 1, kInfinity));
    begins.assign(numGroups + 1, SmallVector<size_t>(size + 1, 0));
    best[0][0] = 0;
    for (size_t groups = 1; groups <= numGroups; ++groups)
      for (size_t end = groups; end <= size; ++end)
        for (size_t begin = groups - 1; begin < end; ++begin) {
          if (before[end].bytes - before[begin].bytes > maxBytes)
            continue;
          double cost = combine(best[groups - 1][begin],
                                before[end].seconds - before[begin].seconds);
          if (cost < best[groups][end]) {
            best[groups][end] = cost;
            begins[groups][end] = begin;
          }
        }
    return best[numGroups][size];
  };
  double slowest =
      solve([](double others, double own) { return std::max(others, own); });
  if (slowest == kInfinity)
    return std::nullopt;
  // Sums of times in another order may differ in their last bits.
  double limit = slowest * (1 + 1e-9);
  solve([&](double others, double own) {
    return own > limit ? kInfinity : others + own * own;
  });
  SmallVector<size_t> result(numGroups - 1);
  size_t end = size;
  for (size_t groups = numGroups; groups > 1; --groups)
    result[groups - 2] = end = begins[groups][end];
  return result;
}

namespace {

class StageBalancer {
public:
  StageBalancer(ModuleOp model, const ModuleCalls &modules, CheckedPlan &plan)
      : model(model), modules(modules), plan(plan),
        pipeline(*plan.file.pipeline) {}

  LogicalResult run() {
    pipeline.split.clear();
    const MeshAxis &axis = plan.file.mesh[pipeline.axis];
    auto numStages = static_cast<size_t>(axis.size * pipeline.stagesPerRank);
    FailureOr<Machine> machine = getMachine();
    if (failed(machine))
      return failure();
    findBlocks();
    if (blocks.empty())
      return emitError(pipeline.splitLoc)
             << "there is no place to cut: the model has no list of modules "
                "that every run calls, such as layers.0, layers.1; name the "
                "modules that begin the stages";
    if (blocks.size() < numStages)
      return emitError(pipeline.splitLoc)
             << "the model can be cut into at most " << blocks.size()
             << (blocks.size() == 1 ? " stage" : " stages")
             << ", one for each module of its lists ('"
             << blocks.front().getFqn() << "', …), and the pipeline has "
             << numStages
             << "; use fewer stages, or name the modules that begin them";
    measure(*machine);
    int64_t maxBytes = std::numeric_limits<int64_t>::max();
    if (pipeline.machine)
      maxBytes = machine->memoryCapacity / pipeline.stagesPerRank;
    auto begins = balance(loads, numStages, maxBytes);
    if (!begins)
      return emitError(pipeline.splitLoc)
             << "no cut between the model's modules gives each stage at most "
             << maxBytes
             << " bytes of parameters, its share of the memory of a rank of '"
             << pipeline.machine->text << "' (" << machine->memoryCapacity
             << " bytes, " << pipeline.stagesPerRank
             << (pipeline.stagesPerRank == 1 ? " stage" : " stages")
             << " per rank); use more ranks";
    for (size_t begin : *begins) {
      plan.stages.push_back(blocks[begin]);
      pipeline.split.push_back(
          {blocks[begin].getFqn().str(), pipeline.splitLoc});
    }
    plan.stageLoads.assign(numStages, {});
    size_t stage = 0;
    for (auto [block, load] : llvm::enumerate(loads)) {
      stage += stage < begins->size() && (*begins)[stage] == block;
      plan.stageLoads[stage].seconds += load.seconds;
      plan.stageLoads[stage].bytes += load.bytes;
    }
    return success();
  }

private:
  FailureOr<Machine> getMachine() {
    if (!pipeline.machine)
      return *findMachine(kDefaultMachine);
    FailureOr<Machine> machine =
        readMachine(pipeline.machine->text, model.getContext());
    if (failed(machine))
      return emitError(pipeline.machine->loc)
             << "the machine of the pipeline can't be read";
    return machine;
  }

  static bool isNumbered(StringRef fqn) {
    StringRef name = fqn.drop_front(fqn.rfind('.') + 1);
    return !name.empty() && llvm::all_of(name, llvm::isDigit);
  }

  /// Finds the first calls of the modules of lists that aren't in another list.
  void findBlocks() {
    for (auto &[fqn, calls] : modules) {
      ModuleOpInterface first = calls.front();
      if (!isNumbered(fqn) || !isOnEveryPath(first))
        continue;
      auto outer = first->getParentOfType<ModuleOpInterface>();
      while (outer && !isNumbered(outer.getFqn()))
        outer = outer->getParentOfType<ModuleOpInterface>();
      if (!outer)
        blocks.push_back(first);
    }
  }

  /// Adds up the ops and parameters from each block's begin to that of the next.
  /// What comes before the first block belongs to it.
  void measure(const Machine &machine) {
    loads.assign(blocks.size(), {});
    DenseSet<StringAttr> counted;
    size_t next = 0;
    auto function = blocks.front()->getParentOfType<FunctionOpInterface>();
    function.getFunctionBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (next < blocks.size() && op == blocks[next])
        ++next;
      StageLoad &load = loads[std::max<size_t>(next, 1) - 1];
      if (auto parameter = dyn_cast<ParameterOpInterface>(op)) {
        if (counted.insert(parameter.getFqnAttr()).second)
          load.bytes += plan.getBytesPerRank(parameter);
      } else if (!isa<ModuleOpInterface>(op)) {
        load.seconds += getSeconds(getWork(op), machine);
      }
    });
  }

  ModuleOp model;
  const ModuleCalls &modules;
  CheckedPlan &plan;
  PipelineAxis &pipeline;
  /// In the order in which the model runs them.
  SmallVector<ModuleOpInterface> blocks;
  SmallVector<StageLoad> loads;
};

} // namespace

LogicalResult plan::balanceStages(ModuleOp model, const ModuleCalls &modules,
                                  CheckedPlan &plan) {
  return StageBalancer(model, modules, plan).run();
}
