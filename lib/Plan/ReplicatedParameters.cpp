//===- ReplicatedParameters.cpp - Large replicated weights ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ReplicatedParameters.h"
#include "tp/Dialect/TP/Elements.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

/// A weight is large when it has this many bytes.
static constexpr int64_t kLargeBytes = int64_t(1) << 20;

void plan::checkReplicatedParameters(CheckedPlan &plan, ModuleOp model) {
  int64_t ranks = 1;
  for (const MeshAxis &axis : plan.file.mesh)
    ranks *= axis.size;
  // FSDP splits all parameters. Over other data-parallel mesh dimensions,
  // parameters are meant to be replicated.
  for (const DataAxis &data : plan.file.data) {
    if (data.style == DataAxis::FSDP)
      return;
    ranks /= plan.file.mesh[data.axis].size;
  }
  if (ranks == 1 || plan.parameters.empty())
    return;
  // The propagation places what a model writes itself, such as a cache.
  llvm::DenseSet<StringAttr> seen;
  model.walk([&](AssignOpInterface op) { seen.insert(op.getFqnAttr()); });
  std::string largest;
  int64_t count = 0, bytes = 0, largestBytes = 0;
  model.walk([&](ParameterOpInterface parameter) {
    int64_t own = getTensorBytes(parameter.getType());
    if (parameter.getType().getRank() < 2 || own < kLargeBytes ||
        plan.parameters.contains(parameter.getFqnAttr()) ||
        !seen.insert(parameter.getFqnAttr()).second)
      return;
    ++count;
    bytes += own;
    if (own > largestBytes) {
      largestBytes = own;
      largest = parameter.getFqn().str();
    }
  });
  if (!count)
    return;
  FileLineColLoc loc = plan.file.groups.front().loc;
  plan.findings.push_back(
      {"replicated-parameter", loc,
       "no entry matches '" + largest + "'" +
           (count > 1
                ? " and " + std::to_string(count - 1) + " more large parameters"
                : "") +
           ": each rank holds all of it",
       "each rank holds " + printBytes(bytes - bytes / ranks) +
           " more than its share",
       "give the module a style, or write '" + largest +
           ": [Replicate]' if that is intended"});
}
