//===- BatchInputs.cpp - Inputs that have the batch -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BatchInputs.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Plan/Pattern.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

class BatchFinder {
public:
  explicit BatchFinder(CheckedPlan &plan) : plan(plan) {}

  /// Chooses the batch dimensions if the plan doesn't name them.
  void takeFirst(FunctionOpInterface function) {
    std::optional<int64_t> size;
    for (BlockArgument argument : function.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || type.getRank() == 0)
        continue;
      if (!size)
        size = type.getDimSize(0);
      if (type.getDimSize(0) == *size)
        plan.batchDims[argument] = 0;
    }
  }

  void addInputs(FunctionOpInterface function) {
    for (BlockArgument argument : function.getArguments()) {
      auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                        kNameAttr);
      names.push_back(name ? name.str()
                           : "arg" + std::to_string(argument.getArgNumber()));
      inputs.push_back(argument);
    }
  }

  LogicalResult take(const BatchInput &batch) {
    auto found = llvm::find(names, batch.input);
    if (found == names.end()) {
      SmallVector<StringRef> candidates(names.begin(), names.end());
      std::string hint = suggestNearest(batch.input, candidates);
      if (hint.empty())
        hint = "; it has " + llvm::join(names, ", ");
      return emitError(batch.loc)
             << "the model has no input '" << batch.input << "'" << hint;
    }
    BlockArgument input = inputs[found - names.begin()];
    auto type = dyn_cast<RankedTensorType>(input.getType());
    int64_t rank = type ? type.getRank() : 0;
    int64_t dim = batch.dim < 0 ? batch.dim + rank : batch.dim;
    if (dim < 0 || dim >= rank)
      return emitError(batch.dimLoc)
             << "dimension " << batch.dim << " is out of range for input '"
             << batch.input << "', which has " << rank << " dimension"
             << (rank == 1 ? "" : "s");
    if (first && type.getDimSize(dim) != size) {
      InFlightDiagnostic error = emitError(batch.dimLoc)
                                 << "dimension " << batch.dim << " of '"
                                 << batch.input << "' has size "
                                 << type.getDimSize(dim)
                                 << ", and the batch has " << size;
      error.attachNote(first->dimLoc) << "in '" << first->input << "'";
      return error;
    }
    first = &batch;
    size = type.getDimSize(dim);
    plan.batchDims[input] = dim;
    return success();
  }

private:
  CheckedPlan &plan;
  SmallVector<std::string> names;
  SmallVector<BlockArgument> inputs;
  const BatchInput *first = nullptr;
  int64_t size = 0;
};

} // namespace

LogicalResult plan::findBatch(ModuleOp model, CheckedPlan &plan) {
  if (plan.file.data.empty())
    return success();
  BatchFinder finder(plan);
  for (auto function : model.getOps<FunctionOpInterface>()) {
    if (function.isExternal() || function.isPrivate())
      continue;
    if (plan.file.batch.empty())
      finder.takeFirst(function);
    else
      finder.addInputs(function);
  }
  bool valid = true;
  for (const BatchInput &batch : plan.file.batch)
    valid &= succeeded(finder.take(batch));
  return success(valid);
}
