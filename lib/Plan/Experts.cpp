//===- Experts.cpp - Experts that a plan splits ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Experts.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

/// The parameter that the matrices of a grouped product are, one after the
/// other; null if they are computed.
static ParameterOpInterface findParameter(Value matrices) {
  while (Operation *op = matrices.getDefiningOp()) {
    if (auto parameter = dyn_cast<ParameterOpInterface>(op))
      return parameter;
    auto transpose = dyn_cast<nn::TransposeOp>(op);
    if (!isa<nn::CastOp>(op) &&
        !(transpose && transpose.getPermutation().front() == 0))
      break;
    matrices = op->getOperand(0);
  }
  return {};
}

LogicalResult plan::checkExperts(ModuleOp model, CheckedPlan &plan) {
  if (!plan.file.experts)
    return success();
  const ExpertAxis &experts = *plan.file.experts;
  const MeshAxis &axis = plan.file.mesh[experts.axis];
  bool hasExperts = false;
  WalkResult result = model.walk([&](nn::GroupedMatmulOp product) {
    hasExperts = true;
    auto check = [&](StringRef what, int64_t count) {
      if (count % axis.size == 0)
        return true;
      InFlightDiagnostic error = emitError(experts.loc)
                                 << "the " << axis.size << " ranks of '"
                                 << axis.name << "' don't divide the " << count
                                 << " " << what
                                 << "; expert_parallel needs a mesh dimension "
                                    "whose size divides the experts and the "
                                    "tokens";
      error.attachNote(product.getLoc()) << "the experts are here";
      return false;
    };
    auto rows = product.getInput().getDefiningOp<nn::IndexSelectOp>();
    if (!check("experts", product.getWeight().getType().getDimSize(0)) ||
        (rows && !check("tokens", rows.getInput().getType().getDimSize(0))))
      return WalkResult::interrupt();
    if (ParameterOpInterface parameter = findParameter(product.getWeight()))
      plan.expertParameters.insert(parameter.getFqnAttr());
    return WalkResult::advance();
  });
  if (!hasExperts)
    return emitError(experts.loc)
           << "the model has no experts that can be split: it has no "
              "'nn.grouped_matmul'; import a transformers model with "
              "experts_implementation='grouped_mm'";
  return failure(result.wasInterrupted());
}
