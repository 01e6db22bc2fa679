//===- TorchEmission.cpp - IR of the ops of a graph -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchCall.h"
#include "TorchOps.h"
#include "TorchSchema.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace mlir::tp;

/// The problem of the first invalid op, or an empty string.
template <typename Ops>
static std::string findInvalid(Ops &&ops) {
  auto isUnsigned = [](Type type) {
    return getElementTypeOrSelf(type).isUnsignedInteger();
  };
  for (Operation &op : ops) {
    std::string why;
    ScopedDiagnosticHandler handler(op.getContext(),
                                    [&](Diagnostic &diagnostic) {
                                      why = diagnostic.str();
                                      return success();
                                    });
    if (succeeded(verify(&op)))
      continue;
    if (llvm::any_of(op.getOperandTypes(), isUnsigned) ||
        llvm::any_of(op.getResultTypes(), isUnsigned))
      return " on uint8 tensors, which can be moved and converted; convert "
             "them first, as in x.to(torch.int32)";
    return " with these operands: " + why;
  }
  return "";
}

/// A problem with arguments that no op supports, or an empty string.
static std::string checkTypes(MLIRContext *context,
                              llvm::ArrayRef<c10::IValue> inputs,
                              bool takesComplex) {
  std::string why;
  for (const c10::IValue &input : inputs) {
    if (input.isComplexDouble())
      why = " with a complex number";
    forEachTensor(input, [&](const at::Tensor &tensor) {
      at::ScalarType type = tensor.scalar_type();
      if (!convertType(context,
                       takesComplex ? c10::toRealValueType(type) : type))
        why = std::string(" with an operand of element type ") +
              c10::toString(tensor.scalar_type());
    });
  }
  return why;
}

/// A problem with arguments that the op's handler doesn't read, or an empty
/// string.
static std::string checkArguments(const AtenOp &op,
                                  const c10::FunctionSchema &schema,
                                  llvm::ArrayRef<c10::IValue> inputs) {
  for (auto [i, argument] : llvm::enumerate(schema.arguments())) {
    StringRef name = argument.name();
    if (i > 0 && argument.alias_info() && argument.alias_info()->isWrite())
      return (" that writes its argument '" + name +
              "': use the result of the form without it")
          .str();
    if (i >= inputs.size() ||
        llvm::any_of(
            std::initializer_list<StringRef>{op.reads, op.inType, op.noEffect},
            [&](StringRef list) { return AtenOp::isIn(list, name); }))
      continue;
    std::optional<c10::IValue> expected = argument.default_value();
    if (expected && inputs[i] == *expected)
      continue;
    std::string why = (" with argument '" + name + "'").str();
    if (expected)
      why += (inputs[i].isTensor() ? "" : " = " + c10::str(inputs[i])) +
             ", expected " + c10::str(*expected);
    return why;
  }
  return "";
}

static bool hasComplex(llvm::ArrayRef<c10::IValue> values) {
  bool found = false;
  for (const c10::IValue &value : values)
    forEachTensor(
        value, [&](const at::Tensor &tensor) { found |= tensor.is_complex(); });
  return found;
}

/// Counts dimensions of complex operands from the front: the pairs of reals
/// have one more at the end.
static void wrapDims(const c10::FunctionSchema &schema,
                     std::vector<c10::IValue> &inputs) {
  int64_t rank = 0;
  for (const c10::IValue &input : inputs)
    forEachTensor(input, [&](const at::Tensor &tensor) {
      rank = std::max(rank, tensor.dim());
    });
  auto wrap = [&](int64_t dim) { return dim < 0 ? dim + rank : dim; };
  for (auto [argument, input] : llvm::zip(schema.arguments(), inputs)) {
    if (!AtenOp::isIn("dim dims dim0 dim1", argument.name()))
      continue;
    if (input.isInt())
      input = wrap(input.toInt());
    else if (input.isIntList())
      input = [&] {
        std::vector<int64_t> dims = input.toIntVector();
        llvm::transform(dims, dims.begin(), wrap);
        return c10::IValue(dims);
      }();
  }
}

void OpRunner::check(const TorchOp &op) {
  // Ops on lists and constants need no handler.
  if (computesTensors(op.schema) && !isKnown(*op.schema))
    problem(ImportProblem::UnsupportedOp, op.place,
            "unsupported op '" + c10::toString(*op.schema) + "'");
}

/// Builds the IR of one op and registers its results.
OpRunner::Emission OpRunner::emit(const TorchOp &op,
                                  llvm::ArrayRef<c10::IValue> inputs,
                                  llvm::ArrayRef<c10::IValue> outputs) {
  const c10::FunctionSchema &schema = *op.schema;
  auto unsupported = [&](const llvm::Twine &why) {
    problem(ImportProblem::UnsupportedOp, op.place,
            "unsupported op '" + c10::toString(schema) + "'" + why);
    return Emission::Failed;
  };
  const AtenOp &handler = handlers.find(baseName(schema))->second;
  if (std::string why = checkArguments(handler, schema, inputs); !why.empty())
    return unsupported(why);
  if (std::string why = checkTypes(b.getContext(), inputs, handler.runOnPairs);
      !why.empty())
    return unsupported(why);

  std::vector<at::Tensor> results;
  for (const c10::IValue &output : outputs)
    forEachTensor(output,
                  [&](const at::Tensor &tensor) { results.push_back(tensor); });
  bool inPlace = isInPlace(schema);
  if (!inPlace && results.size() == 1) {
    // PyTorch returns the operand itself if an op has nothing to do.
    for (const c10::IValue &input : inputs)
      if (input.isTensor() && input.toTensor().unsafeGetTensorImpl() ==
                                  results[0].unsafeGetTensorImpl())
        return Emission::Done;
  }
  bool isComplex = hasComplex(inputs) || hasComplex(outputs);
  for (const at::Tensor &result : results)
    if (!convertTensorType(b.getContext(), result) ||
        (isComplex && !handler.runOnPairs))
      return unsupported(llvm::Twine(": element type ") +
                         c10::toString(result.scalar_type()) +
                         " of the result, expected f32, f64, f16, bf16, i64, "
                         "i32, i16, i8, ui8 or i1");
  for (const at::Tensor &result : results)
    if (result.layout() != at::kStrided)
      return unsupported(": its result is sparse");
  TrackedTensor *receiver =
      inPlace ? table.find(inputs[0].toTensor()) : nullptr;
  if (receiver) {
    TrackedTensor &owner = table.ownerOf(receiver->meta);
    if (owner.isParameter() && !owner.isAssignable())
      return unsupported(": it writes the parameter '" + owner.fqn +
                         "'; only a training step may write parameters");
    Value before = table.isGradEnabled() ? Value() : table.valueOf(owner.meta);
    if (before && !owner.isDetached && mayHaveGradient(before))
      return unsupported(
          ": it writes, while gradients are off, a tensor that has one; "
          "compute a new tensor instead, x + (y - x).detach() for a value y "
          "with the gradient of x");
  }

  std::vector<c10::IValue> arguments(inputs.begin(), inputs.end());
  if (isComplex)
    wrapDims(schema, arguments);
  TorchCall call(table, b.getContext(), handler, schema, arguments, results);
  Block *block = b.getInsertionBlock();
  Operation *last = block->empty() ? nullptr : &block->back();
  AtenHandler run = isComplex ? handler.runOnPairs : handler.run;
  if (!run) // view_as_real of a real tensor and the like
    return unsupported(" of real numbers");
  bool isDone = succeeded(run(call, b));
  if (call.wasDecomposed())
    return Emission::Decomposed;
  if (!isDone || !call.getReason().empty())
    return unsupported(" " + call.getReason());
  if (std::string why = findInvalid(llvm::make_range(
          last ? std::next(last->getIterator()) : block->begin(),
          block->end()));
      !why.empty())
    return unsupported(why);
  for (auto [result, value] : llvm::zip_equal(results, call.getResults())) {
    RankedTensorType expected = convertTensorType(b.getContext(), result);
    if (!value) {
      table.trackPoison(result).missing = "unsupported op '" +
                                          c10::toString(schema) +
                                          "': a result of it that is used";
      continue;
    }
    if (value.getType() != expected) {
      std::string found, wanted;
      llvm::raw_string_ostream(found) << value.getType();
      llvm::raw_string_ostream(wanted) << expected;
      return unsupported(" with these operands: found " + found +
                         " where PyTorch gives " + wanted);
    }
    if (receiver) {
      if (std::string why; !table.overwrite(receiver->meta, value, why))
        return unsupported(" on a view of a tensor, because " + why);
      continue;
    }
    auto source = llvm::find_if(inputs, [&](const c10::IValue &input) {
      return input.isTensor() && input.toTensor().defined() &&
             input.toTensor().is_alias_of(result);
    });
    if (source != inputs.end())
      table.trackView(result, value, source->toTensor());
    else
      table.track(result, value).isDetached = !table.isGradEnabled();
  }
  return Emission::Done;
}
