//===- TorchRepeats.cpp - Constants that repeat themselves ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchRepeats.h"
#include "llvm/ADT/STLExtras.h"
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/equal.h>

using namespace mlir;
using namespace mlir::tp;

/// `constant`, with a stride of 0 along the dimensions along which all its
/// slices are equal. Looks at integers and booleans alone, and not at large
/// tensors.
static at::Tensor shareRepeats(const at::Tensor &constant) {
  constexpr int64_t kMaxElements = 1 << 24;
  if (!constant.defined() || constant.is_meta() ||
      constant.layout() != at::kStrided || constant.numel() < 2 ||
      constant.numel() > kMaxElements ||
      !at::isIntegralType(constant.scalar_type(), /*includeBool=*/true))
    return constant;
  at::Tensor core = constant;
  for (int64_t dim = 0; dim < core.dim(); ++dim) {
    if (core.size(dim) == 1)
      continue;
    at::Tensor first = core.narrow(dim, 0, 1);
    if (core.stride(dim) == 0 || at::equal(core, first.expand_as(core)))
      core = first;
  }
  return core.expand(constant.sizes());
}

/// Whether each element of the result is computed from those at its place.
static bool isPointwise(const c10::FunctionSchema &schema) {
  if (schema.is_mutable() || schema.returns().size() != 1)
    return false;
  // Python's operators have no tags.
  if (llvm::is_contained({"__and__", "__or__", "__xor__"},
                         StringRef(schema.name()).split("::").second))
    return true;
  auto handle = c10::Dispatcher::singleton().findSchema(schema.operator_name());
  return handle && handle->hasTag(at::Tag::pointwise);
}

/// Runs a pointwise op on one slice along the dimensions along which all of its
/// inputs repeat, and expands the result. Returns false if there are none, or if
/// the op isn't pointwise.
static bool runOnSlices(const TorchOp &op, c10::Stack &stack) {
  if (!op.schema || !isPointwise(*op.schema))
    return false;
  int64_t rank = 0;
  for (const c10::IValue &input : stack)
    forEachTensor(input, [&](const at::Tensor &tensor) {
      rank = std::max(rank, tensor.dim());
    });
  // Dimensions are counted from the last one, as they are broadcast.
  std::vector<int64_t> sizes(rank, 1);
  llvm::SmallBitVector repeats(rank, true);
  for (const c10::IValue &input : stack)
    forEachTensor(input, [&](const at::Tensor &tensor) {
      for (int64_t i = 0; i < tensor.dim(); ++i) {
        int64_t dim = tensor.dim() - 1 - i, size = tensor.size(dim);
        if (size == 1)
          continue;
        sizes[rank - 1 - i] = size;
        if (tensor.stride(dim) != 0 || size == 0)
          repeats.reset(i);
      }
    });
  for (int64_t i = 0; i < rank; ++i)
    if (sizes[rank - 1 - i] == 1)
      repeats.reset(i);
  if (repeats.none())
    return false;
  for (c10::IValue &input : stack)
    input = mapTensors(input, [&](const at::Tensor &tensor) {
      at::Tensor slice = tensor;
      for (unsigned i : repeats.set_bits())
        if (static_cast<int64_t>(i) < slice.dim())
          slice = slice.narrow(slice.dim() - 1 - i, 0, 1);
      return slice;
    });
  op.execute(stack);
  for (c10::IValue &output : stack)
    output = mapTensors(
        output, [&](const at::Tensor &tensor) { return tensor.expand(sizes); });
  return true;
}

/// Copies the tensors that repeat themselves. Returns whether there are any.
static bool copyRepeats(c10::Stack &stack) {
  bool found = false;
  for (c10::IValue &input : stack)
    input = mapTensors(input, [&](const at::Tensor &tensor) {
      bool repeats = false;
      if (!tensor.defined() || tensor.layout() != at::kStrided)
        return tensor;
      for (int64_t dim = 0; dim < tensor.dim(); ++dim)
        repeats |= tensor.size(dim) > 1 && tensor.stride(dim) == 0;
      found |= repeats;
      return repeats ? tensor.contiguous() : tensor;
    });
  return found;
}

void mlir::tp::runSharingRepeats(const TorchOp &op, c10::Stack &stack) {
  if (runOnSlices(op, stack))
    return;
  c10::Stack inputs = stack;
  try {
    op.execute(stack);
  } catch (const c10::Error &) { // it may need other strides
    if (!copyRepeats(inputs))
      throw;
    stack = std::move(inputs);
    op.execute(stack);
  }
  for (c10::IValue &output : stack)
    output = mapTensors(output, shareRepeats);
}
