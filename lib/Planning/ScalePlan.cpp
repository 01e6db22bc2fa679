//===- ScalePlan.cpp - A plan on other numbers of ranks -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes that split something unevenly are left out: every rank waits for the
// one with the largest block, so they are never the better choice, and each
// of them takes a program for every shape of a block.
//
//===----------------------------------------------------------------------===//

#include "PlanCost.h"
#include "mlir/IR/Diagnostics.h"
#include "tp/Dialect/NN/NN.h"
#include "tp/Planning/Passes.h"
#include "tp/Sharding/Cost/MachineModel.h"
#include "tp/Support/OutputFile.h"
#include "tp/Transforms/Utils.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::tp {
#define GEN_PASS_DEF_SCALEPLAN
#include "tp/Planning/Passes.h.inc"
} // namespace mlir::tp

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::planning;

static int64_t countRanks(ArrayRef<plan::MeshAxis> mesh) {
  int64_t ranks = 1;
  for (const plan::MeshAxis &axis : mesh)
    ranks *= axis.size;
  return ranks;
}

/// Why the ranks don't get equal blocks; nullopt if they do.
static std::optional<std::string>
findUnevenness(const plan::CheckedPlan &checked) {
  for (const plan::Finding &finding : checked.findings)
    if (finding.check == "uneven" || finding.check == "heads")
      return finding.message;
  auto check = [&](const llvm::DenseMap<Value, int64_t> &dims, int64_t ranks,
                   StringRef what) -> std::optional<std::string> {
    // The same size whatever the order of the map.
    std::optional<int64_t> smallest;
    for (auto [input, dim] : dims) {
      int64_t size = cast<ShapedType>(input.getType()).getDimSize(dim);
      if (size % ranks && (!smallest || size < *smallest))
        smallest = size;
    }
    if (!smallest)
      return std::nullopt;
    return llvm::formatv("{0} of {1} isn't divisible by {2}", what, *smallest,
                         ranks)
        .str();
  };
  int64_t dataRanks = 1;
  for (const plan::DataAxis &data : checked.file.data)
    dataRanks *= checked.file.mesh[data.axis].size;
  if (auto reason = check(checked.batchDims, dataRanks, "a batch"))
    return reason;
  if (const auto &context = checked.file.context)
    return check(checked.sequenceDims, checked.file.mesh[context->axis].size,
                 "a sequence");
  return std::nullopt;
}

namespace {

/// A size of the mesh dimension that is varied.
struct Point {
  int64_t size;
  int64_t ranks; ///< of the mesh
  PlanCost cost;
};

struct LeftOut {
  int64_t size;
  std::string reason;
};

struct Curve {
  std::string axis;
  std::vector<Point> points; ///< by size
  std::vector<LeftOut> leftOut;
};

class ScalePlanPass final : public tp::impl::ScalePlanBase<ScalePlanPass> {
public:
  using ScalePlanBase::ScalePlanBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(run()))
      signalPassFailure();
  }

private:
  LogicalResult run();
  LogicalResult predictOwn(const plan::PlanFile &file);
  Curve scale(const plan::PlanFile &file, unsigned axis);
  LogicalResult write(const plan::PlanFile &file, ArrayRef<Curve> curves);

  std::string machineName;
  /// Of the plan as it is.
  PlanCost own;
};

} // namespace

/// Predicts the plan as it is. Its errors are the user's; what lint, the search
/// and the report remark about it is what tp-parallelize says.
LogicalResult ScalePlanPass::predictOwn(const plan::PlanFile &file) {
  ScopedDiagnosticHandler handler(&getContext(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  FailureOr<PlannedModel> planned = checkPlanFor(getOperation(), file, train);
  if (failed(planned))
    return failure();
  FailureOr<PlanCost> cost = predictPlan(std::move(*planned), train, machine);
  if (failed(cost))
    return failure();
  own = *cost;
  return success();
}

Curve ScalePlanPass::scale(const plan::PlanFile &file, unsigned axis) {
  const int64_t ownSize = file.mesh[axis].size;
  const int64_t otherRanks = countRanks(file.mesh) / ownSize;
  SmallVector<int64_t> sizes = {ownSize};
  for (int64_t size = 1; size <= maxRanks / otherRanks; size *= 2)
    if (size != ownSize)
      sizes.push_back(size);
  llvm::sort(sizes);
  Curve curve{file.mesh[axis].name, {}, {}};
  for (int64_t size : sizes) {
    if (size == ownSize) {
      curve.points.push_back({size, size * otherRanks, own});
      continue;
    }
    plan::PlanFile scaled = file;
    scaled.mesh[axis].size = size;
    // That a plan doesn't fit the model on other ranks is no error.
    std::string problem;
    ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
          problem.empty())
        problem = diagnostic.str();
      return success();
    });
    FailureOr<PlannedModel> planned =
        checkPlanFor(getOperation(), std::move(scaled), train);
    if (failed(planned)) {
      curve.leftOut.push_back({size, problem});
      continue;
    }
    if (auto reason = findUnevenness(planned->plan)) {
      curve.leftOut.push_back({size, *reason});
      continue;
    }
    FailureOr<PlanCost> cost = predictPlan(std::move(*planned), train, machine);
    if (failed(cost))
      curve.leftOut.push_back({size, problem});
    else
      curve.points.push_back({size, size * otherRanks, *cost});
  }
  return curve;
}

LogicalResult ScalePlanPass::run() {
  ModuleOp model = getOperation();
  if (planPath.empty())
    return model.emitError("tp-scale-plan needs the option 'plan'");
  if (machine.empty())
    return model.emitError("tp-scale-plan needs the option 'machine'");
  if (maxRanks < 1)
    return model.emitError("the option 'max-ranks' must be at least 1, not ")
           << int64_t(maxRanks);
  if (failed(checkHasNoPlan(model)) || failed(checkSizes(model)))
    return failure();
  FailureOr<Machine> read = readMachine(machine, &getContext());
  plan::PlanFile file;
  if (failed(read) || failed(plan::readPlan(planPath, &getContext(), file)))
    return failure();
  machineName = read->name;
  if (!file.devices.empty())
    return model.emitError("'")
           << planPath
           << "' lists the ranks of its mesh, so it can't be scaled to others";
  if (failed(predictOwn(file)))
    return failure();
  std::vector<Curve> curves;
  for (unsigned axis = 0; axis < file.mesh.size(); ++axis)
    if (!file.pipeline || file.pipeline->axis != axis)
      curves.push_back(scale(file, axis));
  return write(file, curves);
}

/// "dp = 2, pp = 4": the dimensions but `axis`.
static std::string describeOthers(ArrayRef<plan::MeshAxis> mesh,
                                  StringRef axis) {
  std::string text;
  for (const plan::MeshAxis &other : mesh)
    if (other.name != axis)
      text += (text.empty() ? " while " : ", ") + other.name + " = " +
              std::to_string(other.size);
  return text;
}

static void print(const plan::PlanFile &file, ArrayRef<Curve> curves,
                  raw_ostream &os) {
  if (curves.empty())
    os << "nothing is varied: the mesh has only the dimension of a pipeline\n";
  for (const Curve &curve : curves) {
    os << curve.axis << describeOthers(file.mesh, curve.axis) << ":\n"
       << llvm::formatv("{0,6} {1,6} {2,14} {3,16} {4,22} {5,12}\n", "size",
                        "ranks", "predicted", "bytes per rank",
                        "bytes received by all", "collectives");
    for (const Point &point : curve.points)
      os << llvm::formatv("{0,6} {1,6} {2,11:F3} ms {3,16} {4,22} {5,12}\n",
                          point.size, point.ranks, point.cost.seconds * 1e3,
                          point.cost.memoryBytes, point.cost.receivedBytes,
                          point.cost.collectives);
    for (const LeftOut &one : curve.leftOut)
      os << llvm::formatv("{0,6} left out: {1}\n", one.size, one.reason);
  }
}

LogicalResult ScalePlanPass::write(const plan::PlanFile &file,
                                   ArrayRef<Curve> curves) {
  if (report.empty()) {
    print(file, curves, llvm::outs());
    return success();
  }
  llvm::json::Array axes, list;
  for (const plan::MeshAxis &axis : file.mesh)
    axes.push_back(
        llvm::json::Object{{"name", axis.name}, {"size", axis.size}});
  for (const Curve &curve : curves) {
    llvm::json::Array points, leftOut;
    for (const Point &point : curve.points) {
      llvm::json::Object object = toJSON(point.cost);
      object["size"] = point.size;
      object["ranks"] = point.ranks;
      points.push_back(std::move(object));
    }
    for (const LeftOut &one : curve.leftOut)
      leftOut.push_back(
          llvm::json::Object{{"size", one.size}, {"reason", one.reason}});
    list.push_back(llvm::json::Object{{"axis", curve.axis},
                                      {"points", std::move(points)},
                                      {"left_out", std::move(leftOut)}});
  }
  llvm::json::Object object = toJSON(own);
  object["schema"] = 1;
  object["machine"] = machineName;
  object["mesh"] = llvm::json::Object{{"axes", std::move(axes)}};
  object["curves"] = std::move(list);
  if (llvm::Error error = writeFile(
          report,
          llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object))).str()))
    return getOperation().emitError() << llvm::toString(std::move(error));
  return success();
}
