//===- Explain.cpp - Explanation of placements and collectives ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Explain.h"
#include "Transforms/PlanWriter.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "tp/Advice/Lint/Lint.h"
#include "tp/Advice/Passes.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Plan/Pattern.h"
#include "tp/Sharding/Cost/CostModel.h"
#include "tp/Support/OutputFile.h"
#include "tp/Transforms/Passes.h"
#include "tp/Transforms/Utils.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::tp {
#define GEN_PASS_DEF_EXPLAIN
#include "tp/Advice/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;

static bool isCalled(Operation *op, StringRef name) {
  auto matches = [&](StringRef fqn) {
    return !fqn.empty() && plan::matchFqn(name, fqn);
  };
  auto parameter = dyn_cast<ParameterOpInterface>(op);
  return op->getName().getStringRef() == name || matches(getFqn(op)) ||
         (parameter && matches(parameter.getFqn()));
}

static bool isCalled(Value value, StringRef name) {
  if (Operation *op = value.getDefiningOp())
    return isCalled(op, name);
  auto argument = cast<BlockArgument>(value);
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto function = dyn_cast<func::FuncOp>(parent))
    return explain::getArgumentName(function, argument.getArgNumber()) == name;
  return isCalled(parent, name);
}

/// Keeps only the parts of `program` that match `name` (docs/Explain.md).
/// Returns whether there are any.
static bool filter(explain::Program &program, StringRef name) {
  Explanation &explanation = program.explanation;
  llvm::erase_if(explanation.values, [&](const ExplainedValue &entry) {
    return !isCalled(entry.value, name);
  });
  llvm::erase_if(explanation.movements, [&](const ExplainedMovement &movement) {
    return movement.fqn != name && !isCalled(movement.op, name) &&
           !isCalled(movement.value, name);
  });
  return !explanation.values.empty() || !explanation.movements.empty();
}

namespace {

struct ExplainPass : tp::impl::ExplainBase<ExplainPass> {
  using ExplainBase::ExplainBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(run()))
      signalPassFailure();
  }

private:
  LogicalResult run() {
    ModuleOp original = getOperation();
    OwningOpRef<ModuleOp> model = original.clone();
    std::optional<plan::CheckedPlan> plan;
    if (!planPath.empty()) {
      for (auto mesh : original.getOps<MeshOp>()) {
        InFlightDiagnostic error =
            original.emitError("the model has been given a plan before");
        error.attachNote(mesh.getLoc()) << "its mesh is declared here";
        return error;
      }
      FailureOr<plan::CheckedPlan> checked = plan::loadPlan(planPath, *model);
      if (failed(checked) || failed(plan::lintPlan(*checked, *model)) ||
          failed(plan::emitFindings(checked->findings, /*strict=*/false)) ||
          failed(writePlan(*checked, *model)))
        return failure();
      plan = std::move(*checked);
    }
    FailureOr<MeshOp> mesh =
        getMesh(*model, " to explain placements over; declare one, or give a "
                        "plan (plan=FILE)");
    if (failed(mesh))
      return failure();
    inlineModules(*model);
    FailureOr<SmallVector<func::FuncOp>> roots = getRoots(*model);
    if (failed(roots))
      return failure();
    PropagationOptions options{
        strategy, exhaustiveOps, latencyBytes, {oneShot, memory}};
    options.searchBudget = searchBudget;
    Propagation propagation(*mesh, options);
    if (failed(propagation.run(*roots)))
      return failure();
    FailureOr<Explanation> explanation =
        Explanation::explain(propagation, *mesh);
    if (failed(explanation))
      return failure();
    explain::Program program{*mesh, propagation.getFunctions(),
                             std::move(*explanation), plan ? &*plan : nullptr};
    program.total = {program.explanation.getBytes(),
                     program.explanation.getNumCollectives()};
    if (failed(setOptimizedTotal(program, *model)))
      return failure();
    CommunicationCost gap = propagation.getCost() - propagation.getLowerBound();
    if (strategy == PropagationStrategy::Optimal)
      program.gap = std::max<int64_t>(gap.volume, 0);
    if (!value.empty() && !filter(program, value))
      return original.emitError()
             << "no value with a placement has the name '" << value << "'";
    if (trials)
      explain::tryEdits(program, propagation, original, options, trials);
    explain::emitRemarks(program);
    return print(program);
  }

  /// Compiles `model`, which has the fixed placements, further as
  /// tp-parallelize does, to count its collectives.
  LogicalResult setOptimizedTotal(explain::Program &program, ModuleOp model) {
    OwningOpRef<ModuleOp> ranks = model.clone();
    PassManager passes(&getContext());
    PropagateOptions placed;
    placed.strategy = strategy;
    placed.exhaustiveOps = exhaustiveOps;
    placed.latencyBytes = latencyBytes;
    placed.searchBudget = searchBudget;
    placed.oneShot = oneShot;
    placed.memory = memory;
    passes.addPass(createPropagate(placed));
    passes.addPass(createPartition({oneShot, memory}));
    passes.addPass(createInlinerPass({}, [](OpPassManager &) {}));
    passes.addPass(createSymbolDCEPass());
    passes.addPass(createOptimizeCollectives());
    if (failed(passes.run(*ranks)))
      return failure();
    MeshOp mesh = *ranks->getOps<MeshOp>().begin();
    auto functions = getPrograms(*ranks);
    if (failed(functions))
      return failure();
    for (ArrayRef<func::FuncOp> programs : *functions)
      for (auto [index, function] : llvm::enumerate(programs))
        walkExecuted(function, [&](Operation *op) {
          auto collective = dyn_cast<CollectiveOpInterface>(op);
          if (!collective)
            return;
          program.optimized.collectives += index == 0;
          program.optimized.bytes +=
              llvm::sum_of(getReceivedBytesByRank(collective, mesh));
        });
    return success();
  }

  LogicalResult print(const explain::Program &program) {
    auto printTo = [&](raw_ostream &os) {
      if (format == ExplanationFormat::Json)
        explain::printJson(program, os);
      else
        explain::printText(program, os);
    };
    if (file.empty()) {
      printTo(llvm::outs());
      return success();
    }
    llvm::Error error = writeFile(file, [&](raw_ostream &os) {
      printTo(os);
      return llvm::Error::success();
    });
    if (error)
      return getOperation().emitError() << llvm::toString(std::move(error));
    return success();
  }
};

} // namespace
