//===- BatchInputs.cpp - Inputs with the batch or the sequence ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BatchInputs.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Interfaces/ShardingRuleOpInterface.h"
#include "tp/Plan/Pattern.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::plan;

namespace {

/// Finds the dimension of inputs that is `what`: the batch or the sequence.
class BatchFinder {
public:
  BatchFinder(StringRef what, llvm::DenseMap<Value, int64_t> &dims)
      : what(what), dims(dims) {}

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
        dims[argument] = 0;
    }
  }

  /// Chooses the sequence dimensions if the plan doesn't name them.
  void takeSecond(FunctionOpInterface function) {
    ArrayRef<int64_t> first;
    for (BlockArgument argument : function.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || type.getRank() < 2)
        continue;
      ArrayRef<int64_t> sizes = type.getShape().take_front(2);
      if (first.empty())
        first = sizes;
      if (sizes[1] == first[1] && (sizes[0] == first[0] || sizes[0] == 1))
        dims[argument] = 1;
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
                                 << type.getDimSize(dim) << ", and the " << what
                                 << " has " << size;
      error.attachNote(first->dimLoc) << "in '" << first->input << "'";
      return error;
    }
    first = &batch;
    size = type.getDimSize(dim);
    dims[input] = dim;
    return success();
  }

private:
  StringRef what;
  llvm::DenseMap<Value, int64_t> &dims;
  SmallVector<std::string> names;
  SmallVector<BlockArgument> inputs;
  const BatchInput *first = nullptr;
  int64_t size = 0;
};

} // namespace

/// Calls `visit` for each function that is a program.
template <typename Visit>
static void forEachProgram(ModuleOp model, Visit visit) {
  for (auto function : model.getOps<FunctionOpInterface>())
    if (!function.isExternal() && !function.isPrivate())
      visit(function);
}

/// Each rank has as many examples of every microbatch: those of all microbatches
/// are split together.
static LogicalResult checkMicrobatches(const CheckedPlan &plan) {
  const std::optional<PipelineAxis> &pipeline = plan.file.pipeline;
  if (!pipeline || pipeline->microbatches == 1)
    return success();
  int64_t numRanks = 1;
  for (const DataAxis &data : plan.file.data)
    numRanks *= plan.file.mesh[data.axis].size;
  for (auto [input, dim] : plan.batchDims) {
    int64_t size = cast<RankedTensorType>(input.getType()).getDimSize(dim);
    if (size % numRanks != 0)
      return emitError(pipeline->microbatchesLoc)
             << "the " << numRanks
             << " ranks that split the batch don't divide "
             << "the " << size << " examples of a microbatch; import the model "
             << "for a multiple of " << numRanks
             << " examples, or use 1 microbatch";
  }
  return success();
}

LogicalResult plan::findBatch(ModuleOp model, CheckedPlan &plan) {
  if (plan.file.data.empty())
    return success();
  BatchFinder finder("batch", plan.batchDims);
  forEachProgram(model, [&](FunctionOpInterface function) {
    if (plan.file.batch.empty())
      finder.takeFirst(function);
    else
      finder.addInputs(function);
  });
  bool valid = true;
  for (const BatchInput &batch : plan.file.batch)
    valid &= succeeded(finder.take(batch));
  return valid ? checkMicrobatches(plan) : failure();
}

/// Writes why the ranks of `axis` can't split the heads of `op`, if they can't.
/// A product of key heads and the query heads that share one is split along one
/// of them, or along the groups' heads once each key head is on its own.
static void explainHeads(AttentionOpInterface op, const MeshAxis &axis,
                         llvm::raw_ostream &os) {
  ShardingRule rule =
      cast<ShardingRuleOpInterface>(op.getOperation()).getShardingRule();
  const TensorFactors &query = rule.operands.front();
  if (query.size() < 4)
    return;
  SmallVector<int64_t> heads;
  for (unsigned factor : query.end()[-3])
    if (int64_t size = rule.factors[factor].size; size != 1)
      heads.push_back(size);
  int64_t numRanks = axis.size;
  if (heads.size() < 2 || heads[0] % numRanks == 0 ||
      heads[1] % numRanks == 0 ||
      (numRanks % heads[0] == 0 && heads[1] % (numRanks / heads[0]) == 0))
    return;
  os << "all_to_all splits the " << heads[0]
     << " key heads of an attention, or the " << heads[1]
     << " query heads that share each of them, and the " << numRanks
     << " ranks of '" << axis.name
     << "' divide neither; ring and all_gather take any number of heads";
}

/// Checks that the sequence, of `size`, can be split, and each attention over
/// it by the plan's method.
static LogicalResult checkContext(ModuleOp model, const CheckedPlan &plan,
                                  int64_t size) {
  const ContextAxis &context = *plan.file.context;
  const MeshAxis &axis = plan.file.mesh[context.axis];
  if (size < axis.size)
    return emitError(context.loc)
           << "the sequence has " << size << " positions, fewer than the "
           << axis.size << " ranks of '" << axis.name << "'";
  bool isRing = context.method == ContextMethod::Ring;
  if (isRing && size % axis.size != 0)
    return emitError(context.methodLoc)
           << "a ring needs blocks of one size, and the " << axis.size
           << " ranks of '" << axis.name << "' don't divide the sequence of "
           << size << " positions; all_gather takes any size";
  WalkResult result = model.walk([&](AttentionOpInterface op) {
    if (op.getNumRows() != size)
      return WalkResult::advance();
    std::string problem;
    llvm::raw_string_ostream os(problem);
    if (isRing && op.getNumColumns() != size)
      os << "a ring needs as many keys as queries, and an attention has "
         << op.getNumColumns() << " keys for " << size
         << " queries; all_gather takes any number";
    else if (context.method == ContextMethod::AllToAll &&
             op.getNumHeads() < axis.size)
      os << "all_to_all splits heads, and an attention has " << op.getNumHeads()
         << " head" << (op.getNumHeads() == 1 ? "" : "s") << ", fewer than the "
         << axis.size << " ranks of '" << axis.name
         << "'; ring and all_gather take any number of heads";
    else if (context.method == ContextMethod::AllToAll)
      explainHeads(op, axis, os);
    if (problem.empty())
      return WalkResult::advance();
    InFlightDiagnostic error = emitError(context.methodLoc) << problem;
    error.attachNote(op->getLoc()) << "the attention is here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult plan::findSequence(ModuleOp model, CheckedPlan &plan) {
  if (!plan.file.context)
    return success();
  const ContextAxis &context = *plan.file.context;
  BatchFinder finder("sequence", plan.sequenceDims);
  forEachProgram(model, [&](FunctionOpInterface function) {
    if (context.inputs.empty())
      finder.takeSecond(function);
    else
      finder.addInputs(function);
  });
  bool valid = true;
  for (const BatchInput &input : context.inputs)
    valid &= succeeded(finder.take(input));
  if (!valid)
    return failure();
  if (plan.sequenceDims.empty())
    return emitError(context.loc)
           << "no input has a sequence: each has fewer than two dimensions; "
              "name the dimension with inputs, such as inputs: {ids: 0}";
  for (auto [input, dim] : plan.sequenceDims) {
    auto batch = plan.batchDims.find(input);
    if (batch != plan.batchDims.end() && batch->second == dim)
      return emitError(context.loc)
             << "dimension " << dim << " of argument "
             << cast<BlockArgument>(input).getArgNumber()
             << " would be both the batch and the sequence; name the "
                "sequence's dimension with inputs, such as inputs: {ids: "
             << (dim == 0 ? 1 : 0) << "}";
  }
  auto [input, dim] = *plan.sequenceDims.begin();
  return checkContext(model, plan,
                      cast<RankedTensorType>(input.getType()).getDimSize(dim));
}
