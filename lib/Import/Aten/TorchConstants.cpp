//===- TorchConstants.cpp - constants as readable IR ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks and positions reach the importer as data, because PyTorch has computed
// them. Written out they would be large, unreadable, and present in full on
// every rank. So the forms that models usually build are recognized.
//
//===----------------------------------------------------------------------===//

#include "TorchTensors.h"
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/signbit.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/where.h>

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::nn::expr;

/// A constant with more elements goes to the weights file. The positions of T5,
/// 512 × 512, are written out, so that a checkpoint has all of its weights.
static constexpr int64_t kWrittenOutElements = 1 << 20;

static Scalar toScalar(const at::Tensor &element) {
  if (at::isFloatingType(element.scalar_type()))
    return Scalar::of(element.item<double>());
  return Scalar::of(element.to(at::kLong).item<int64_t>());
}

bool mlir::tp::areSame(const at::Tensor &first, const at::Tensor &second) {
  return at::equal(first, second) &&
         (!at::isFloatingType(first.scalar_type()) ||
          at::equal(at::signbit(first), at::signbit(second)));
}

static bool isSplat(const at::Tensor &flat) {
  if (areSame(flat, flat[0].expand_as(flat)))
    return true;
  return at::isFloatingType(flat.scalar_type()) &&
         at::isnan(flat).all().item<bool>();
}

/// start, start + step, … along one dimension, the same along all others.
static Value emitRange(ImportBuilder &b, const at::Tensor &t,
                       Type elementType) {
  if (t.scalar_type() == at::kBool || t.numel() < 2)
    return Value();
  int64_t varying = -1;
  for (int64_t dim = 0; dim < t.dim(); ++dim) {
    if (t.size(dim) == 1)
      continue;
    if (varying >= 0)
      return Value();
    varying = dim;
  }
  at::Tensor flat = t.reshape({-1}).to(at::kDouble);
  if (!t.is_floating_point() && flat.abs().max().item<double>() >= 0x1p53)
    return Value(); // doubles don't tell these integers apart
  double start = flat[0].item<double>();
  double step = flat[1].item<double>() - start;
  at::Tensor range =
      at::arange(flat.numel(), at::TensorOptions(at::kDouble)) * step + start;
  if (step == 0 || !areSame(range, flat))
    return Value();
  ArrayRef<int64_t> shape(t.sizes().data(), t.dim());
  return iota(b, shape, varying, elementType, start, step);
}

/// A matrix with one value on and below a diagonal, and another above it.
static Value emitTriangle(ImportBuilder &b, const at::Tensor &t,
                          Type elementType) {
  if (t.dim() < 2 || t.numel() != t.size(-1) * t.size(-2) || t.numel() < 4)
    return Value();
  at::Tensor matrix = t.reshape({t.size(-2), t.size(-1)});
  at::Tensor below = matrix[-1][0], above = matrix[0][-1];
  if (areSame(below, above))
    return Value();
  int64_t diagonal = (matrix[0] == below).sum().item<int64_t>() - 1;
  at::Tensor keep =
      at::tril(at::full(matrix.sizes(), true, at::kBool), diagonal);
  if (!areSame(matrix, at::where(keep, below, above)))
    return Value();
  Value triangle;
  if (elementType.isInteger(1)) {
    bool upper = above.item<bool>();
    triangle = b.triangle(matrix.size(0), matrix.size(1),
                          upper ? diagonal + 1 : diagonal, upper);
  } else {
    triangle =
        select(b, b.triangle(matrix.size(0), matrix.size(1), diagonal, false),
               b.scalar(elementType, toScalar(below)),
               b.scalar(elementType, toScalar(above)));
  }
  return b.reshape(triangle, {t.sizes().data(), size_t(t.dim())});
}

static Value emitElements(ImportBuilder &b, const at::Tensor &constant,
                          RankedTensorType type) {
  at::Tensor data = constant.contiguous();
  DenseElementsAttr elements;
  if (data.scalar_type() == at::kBool) {
    const bool *values = static_cast<const bool *>(data.const_data_ptr());
    elements = DenseElementsAttr::get(
        type, ArrayRef<bool>(values, size_t(data.numel())));
  } else {
    elements = DenseElementsAttr::getFromRawBuffer(
        type, ArrayRef<char>(static_cast<const char *>(data.const_data_ptr()),
                             data.nbytes()));
  }
  return nn::ConstantOp::create(b, elements);
}

Value mlir::tp::emitConstant(ImportBuilder &b, const at::Tensor &constant) {
  auto type = convertTensorType(b.getContext(), constant);
  if (!type)
    return Value();
  if (constant.numel() == 0)
    return b.splat(type.getShape(), type.getElementType(),
                   Scalar::of(int64_t(0)));

  // An expanded dimension has one distinct element.
  at::Tensor core = constant;
  for (int64_t dim = 0; dim < core.dim(); ++dim)
    if (core.stride(dim) == 0 && core.size(dim) > 1)
      core = core.narrow(dim, 0, 1);
  if (isSplat(core.reshape({-1})))
    return b.splat(type.getShape(), type.getElementType(),
                   toScalar(core.reshape({-1})[0]));
  // So does a dimension along which nothing changes.
  for (int64_t dim = 0; dim < core.dim(); ++dim) {
    at::Tensor first = core.narrow(dim, 0, 1);
    if (core.size(dim) > 1 && areSame(core, first.expand_as(core)))
      core = first;
  }

  Type elementType = type.getElementType();
  Value value = emitRange(b, core, elementType);
  if (!value)
    value = emitTriangle(b, core, elementType);
  if (!value && core.numel() <= kWrittenOutElements)
    value = emitElements(b, core, convertTensorType(b.getContext(), core));
  return value ? broadcast(b, value, type.getShape()) : Value();
}
