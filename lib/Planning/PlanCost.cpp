//===- PlanCost.cpp - The predicted cost of a plan ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlanCost.h"
#include "Transforms/PlanWriter.h"
#include "mlir/Pass/PassManager.h"
#include "tp/Advice/Lint/Lint.h"
#include "tp/Advice/Passes.h"
#include "tp/CodeGen/Passes.h"
#include "tp/Pipelines/Pipelines.h"
#include "tp/Plan/Plan.h"
#include "tp/Training/Passes.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::planning;

/// Reads the members of docs/Report.md that a cost consists of.
static PlanCost readCost(StringRef report) {
  llvm::json::Value json = llvm::cantFail(llvm::json::parse(report));
  const llvm::json::Object &root = *json.getAsObject();
  const llvm::json::Object &prediction = *root.getObject("prediction");
  PlanCost cost;
  cost.seconds = *prediction.getNumber("seconds");
  cost.collectives = root.getArray("collectives")->size();
  for (auto [members, value] : llvm::zip_equal(
           *root.getArray("rank_classes"), *prediction.getArray("by_class"))) {
    const llvm::json::Object &rank = *value.getAsObject();
    cost.receivedBytes += *members.getAsObject()->getInteger("count") *
                          *rank.getInteger("bytes_received");
    cost.memoryBytes = std::max(cost.memoryBytes,
                                *rank.getObject("memory")->getInteger("total"));
  }
  return cost;
}

llvm::json::Object planning::toJSON(const PlanCost &cost) {
  return llvm::json::Object{{"seconds", cost.seconds},
                            {"memory_bytes", cost.memoryBytes},
                            {"bytes_received", cost.receivedBytes},
                            {"collectives", cost.collectives}};
}

LogicalResult planning::checkHasNoPlan(ModuleOp model) {
  for (auto declared : model.getOps<MeshOp>()) {
    InFlightDiagnostic error =
        model.emitError("the model has been given a plan before");
    error.attachNote(declared.getLoc()) << "its mesh is declared here";
    return error;
  }
  return success();
}

FailureOr<PlannedModel>
planning::checkPlanFor(ModuleOp model, plan::PlanFile file, StringRef train) {
  PlannedModel planned;
  planned.program = model.clone();
  if (!train.empty()) { // as tp-parallelize does before it applies a plan
    PassManager passes(model.getContext());
    passes.addPass(createAddLoss({train.str()}));
    if (failed(passes.run(*planned.program)))
      return failure();
  }
  planned.plan.file = std::move(file);
  if (failed(plan::checkPlan(*planned.program, planned.plan)) ||
      failed(plan::lintPlan(planned.plan, *planned.program)))
    return failure();
  return std::move(planned);
}

FailureOr<PlanCost> planning::predictPlan(PlannedModel planned, StringRef train,
                                          StringRef machine) {
  ModuleOp program = *planned.program;
  if (failed(writePlan(planned.plan, program)))
    return failure();
  PassManager passes(program.getContext());
  ParallelizeOptions options;
  options.train = train.str();
  buildParallelizePipeline(passes, options);
  passes.addPass(createPredictMemory());
  std::string report;
  passes.addPass(createReport(report, machine));
  if (failed(passes.run(program)))
    return failure();
  PlanCost cost = readCost(report);
  cost.findings = planned.plan.findings.size();
  return cost;
}
