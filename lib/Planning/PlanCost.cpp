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

FailureOr<PlanCost> planning::predictPlan(ModuleOp model, StringRef plan,
                                          StringRef train, StringRef machine) {
  OwningOpRef<ModuleOp> program = model.clone();
  MLIRContext *context = model.getContext();
  if (!train.empty()) { // as tp-parallelize does before it applies a plan
    PassManager passes(context);
    passes.addPass(createAddLoss({train.str()}));
    if (failed(passes.run(*program)))
      return failure();
  }
  plan::CheckedPlan checked;
  if (failed(plan::parsePlan(plan, "auto-plan", context, checked.file)) ||
      failed(plan::checkPlan(*program, checked)) ||
      failed(plan::lintPlan(checked, *program)) ||
      failed(writePlan(checked, *program)))
    return failure();
  PassManager passes(context);
  ParallelizeOptions options;
  options.train = train.str();
  buildParallelizePipeline(passes, options);
  passes.addPass(createPredictMemory());
  std::string report;
  passes.addPass(createReport(report, machine));
  if (failed(passes.run(*program)))
    return failure();
  PlanCost cost = readCost(report);
  cost.findings = checked.findings.size();
  return cost;
}
