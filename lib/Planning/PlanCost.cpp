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
#include "tp/Support/MemoryFiles.h"
#include "tp/Training/Passes.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::planning;

/// The largest tensor among those that a rank holds, and those that live at the
/// peak of the arena.
static std::string findLargest(const llvm::json::Object &report) {
  int64_t most = 0;
  std::string largest;
  auto consider = [&](int64_t bytes, const llvm::Twine &what) {
    if (bytes <= most)
      return;
    most = bytes;
    largest = (what + ", of " + llvm::Twine(bytes) + " bytes").str();
  };
  struct Kind {
    StringRef member, name, what;
  };
  constexpr Kind kinds[] = {{"parameters", "fqn", "the parameter"},
                            {"inputs", "name", "the input"},
                            {"outputs", "name", "the output"}};
  for (const Kind &kind : kinds)
    for (const llvm::json::Value &value : *report.getArray(kind.member)) {
      const llvm::json::Object &tensor = *value.getAsObject();
      consider(*tensor.getInteger("bytes_per_rank"),
               kind.what + " '" + *tensor.getString(kind.name) + "'");
    }
  const llvm::json::Object *arena =
      report.getObject("prediction")->getObject("arena");
  if (!arena)
    return largest;
  for (const llvm::json::Value &value :
       *arena->getObject("peak")->getArray("values")) {
    const llvm::json::Object &buffer = *value.getAsObject();
    std::optional<StringRef> op = buffer.getString("op"),
                             fqn = buffer.getString("fqn");
    std::string what = "an activation";
    if (op && !op->empty())
      what += (", the result of " + *op).str();
    if (fqn && !fqn->empty())
      what += (" in '" + *fqn + "'").str();
    consider(*buffer.getInteger("bytes"), what);
  }
  return largest;
}

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
  cost.largest = findLargest(root);
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

FailureOr<PlanCost> planning::predictPlan(ModuleOp model, StringRef plan,
                                          const TrainingText &train,
                                          StringRef machine) {
  // These files hide the caller's.
  std::optional<StringRef> description;
  if (MemoryFiles *outer = MemoryFiles::getCurrent())
    description = outer->getInput(machine);
  MemoryFiles files;
  if (description)
    files.addInput(machine, *description);
  if (!train.path.empty())
    files.addInput(train.path, train.text);
  plan::PlanFile file;
  if (failed(plan::parsePlan(plan, "auto-plan", model.getContext(), file)))
    return failure();
  FailureOr<PlannedModel> planned =
      checkPlanFor(model, std::move(file), train.path);
  if (failed(planned))
    return failure();
  return predictPlan(std::move(*planned), train.path, machine);
}
