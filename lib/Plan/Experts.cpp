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
  SmallVector<unsigned> tokenAxes;
  for (const DataAxis &data : plan.file.data)
    tokenAxes.push_back(data.axis);
  if (plan.file.context)
    tokenAxes.push_back(plan.file.context->axis);
  bool hasExperts = false;
  WalkResult result = model.walk([&](nn::GroupedMatmulOp product) {
    hasExperts = true;
    auto check = [&](ArrayRef<unsigned> axes, StringRef what, int64_t count) {
      int64_t numRanks = 1;
      for (unsigned axis : axes)
        numRanks *= plan.file.mesh[axis].size;
      if (count % numRanks == 0)
        return true;
      std::string names;
      for (auto [i, axis] : llvm::enumerate(axes))
        names += (i == 0                 ? "'"
                  : i + 1 == axes.size() ? " and '"
                                         : ", '") +
                 plan.file.mesh[axis].name + "'";
      InFlightDiagnostic error =
          emitError(experts.loc)
          << "the " << numRanks << " ranks of " << names
          << (axes.size() == 1 ? " don't" : " together don't") << " divide the "
          << count << " " << what
          << "; expert_parallel needs a mesh dimension "
             "whose size divides the experts, and a "
             "number of tokens that all ranks that "
             "split them divide";
      error.attachNote(product.getLoc()) << "the experts are here";
      return false;
    };
    auto rows = product.getInput().getDefiningOp<nn::IndexSelectOp>();
    if (!check(experts.axis, "experts",
               product.getWeight().getType().getDimSize(0)) ||
        (rows &&
         !check(tokenAxes, "tokens", rows.getInput().getType().getDimSize(0))))
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
