//===- TorchCall.cpp - a call of an op in a TorchScript graph -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchCall.h"
#include <ATen/ops/result_type.h>

using namespace mlir;
using namespace mlir::tp;

const c10::IValue *TorchCall::find(StringRef name) const {
  for (auto [i, argument] : llvm::enumerate(schema.arguments()))
    if (StringRef(argument.name()) == name && i < arguments.size()) {
      // Users and tests only see the declared arguments.
      if (!AtenOp::isIn(op.reads, name))
        reason = ("internal error: its handler reads '" + name + "' undeclared")
                     .str();
      return arguments[i].isNone() ? nullptr : &arguments[i];
    }
  return nullptr;
}

void TorchCall::misread(StringRef name, const c10::IValue &value,
                        const char *expected) const {
  reason = ("with '" + name + "' of type " + value.type()->str() +
            ", expected " + expected)
               .str();
}

at::Tensor TorchCall::constantOf(const at::Tensor &tensor) const {
  if (!tensor.is_meta())
    return tensor;
  TrackedTensor *tracked = table.find(tensor);
  return tracked && tracked->isConstant() ? tracked->data : at::Tensor();
}

bool TorchCall::has(StringRef name) const {
  const c10::IValue *value = find(name);
  return value && !(value->isTensor() && !value->toTensor().defined());
}

bool TorchCall::isTensor(StringRef name) const {
  const c10::IValue *value = find(name);
  return value && value->isTensor();
}

bool TorchCall::isNumber(StringRef name) const {
  const c10::IValue *value = find(name);
  if (!value || !value->isTensor())
    return value && value->isScalar();
  return value->toTensor().dim() == 0 &&
         constantOf(value->toTensor()).defined();
}

bool TorchCall::isString(StringRef name) const {
  const c10::IValue *value = find(name);
  return value && value->isString();
}

bool TorchCall::isComplex(StringRef name) const {
  const c10::IValue *value = find(name);
  return value && value->isTensor() && value->toTensor().is_complex();
}

Value TorchCall::tensor(StringRef name) {
  if (!has(name))
    return Value();
  return table.valueOf(find(name)->toTensor());
}

llvm::SmallVector<Value> TorchCall::tensors(StringRef name) {
  llvm::SmallVector<Value> result;
  if (const c10::IValue *value = find(name))
    for (const c10::IValue &element : value->toListRef())
      result.push_back(element.isTensor() && element.toTensor().defined()
                           ? table.valueOf(element.toTensor())
                           : Value());
  return result;
}

Scalar TorchCall::scalar(StringRef name) {
  const c10::IValue *value = find(name);
  if (!value)
    return Scalar::of(int64_t(0));
  if (value->isBool())
    return Scalar::of(int64_t(value->toBool()));
  if (value->isInt())
    return Scalar::of(value->toInt());
  if (value->isDouble())
    return Scalar::of(value->toDouble());
  if (value->isTensor()) {
    at::Tensor constant = constantOf(value->toTensor());
    if (!constant.defined() || constant.numel() != 1) {
      misread(name, *value,
              "a number that is known when the model is imported");
      return Scalar::of(int64_t(0));
    }
    if (at::isFloatingType(constant.scalar_type()))
      return Scalar::of(constant.item<double>());
    return Scalar::of(constant.to(at::kLong).item<int64_t>());
  }
  misread(name, *value, "a number");
  return Scalar::of(int64_t(0));
}

llvm::SmallVector<int64_t> TorchCall::integers(StringRef name) {
  llvm::SmallVector<int64_t> result;
  const c10::IValue *value = find(name);
  if (value && value->isInt())
    result.push_back(value->toInt());
  else if (value && value->isIntList())
    for (int64_t element : value->toIntList())
      result.push_back(element);
  else if (value && !(value->isList() && value->toListRef().empty()))
    misread(name, *value, "integers");
  return result;
}

llvm::SmallVector<double> TorchCall::reals(StringRef name) {
  llvm::SmallVector<double> result;
  const c10::IValue *value = find(name);
  if (value && value->isDoubleList())
    for (double element : value->toDoubleList())
      result.push_back(element);
  else if (value)
    misread(name, *value, "numbers");
  return result;
}

std::string TorchCall::string(StringRef name) {
  const c10::IValue *value = find(name);
  if (value && !value->isString())
    misread(name, *value, "a string");
  return value && value->isString() ? value->toStringRef() : "";
}

std::optional<ConstantIndex>
TorchCall::toIndex(const at::Tensor &tensor) const {
  at::Tensor constant = constantOf(tensor);
  if (!constant.defined() || constant.scalar_type() == at::kBool)
    return std::nullopt;
  ConstantIndex index;
  index.shape.assign(constant.sizes().begin(), constant.sizes().end());
  at::Tensor data = constant.to(at::kLong).contiguous();
  const int64_t *values = static_cast<const int64_t *>(data.const_data_ptr());
  index.values.assign(values, values + data.numel());
  return index;
}

std::optional<ConstantIndex> TorchCall::constantIndex(StringRef name,
                                                      unsigned i) {
  return toIndex(find(name)->toListRef()[i].toTensor());
}

std::optional<ConstantIndex> TorchCall::constantIndex(StringRef name) {
  return toIndex(find(name)->toTensor());
}

bool TorchCall::isCausalMask(StringRef name) {
  at::Tensor mask = constantOf(find(name)->toTensor());
  return mask.defined() && table.isCausalMask(mask);
}

Type TorchCall::promote(ArrayRef<StringRef> names) {
  const c10::IValue *first = find(names[0]), *second = find(names[1]);
  at::ScalarType type;
  if (first->isTensor() && second->isTensor())
    type = at::result_type(first->toTensor(), second->toTensor());
  else if (first->isTensor())
    type = at::result_type(first->toTensor(), second->toScalar());
  else
    type = at::result_type(first->toScalar(), second->toTensor());
  return convertType(context, type);
}

LogicalResult TorchCall::assign(StringRef name, Value value) {
  const at::Tensor &meta = find(name)->toTensor();
  TrackedTensor *tracked = table.find(meta);
  if (!tracked || !table.ownerOf(meta).isAssignable())
    return unsupported("which writes its argument '" + name +
                       "', which isn't a buffer of the model");
  if (std::string why; !table.overwrite(meta, value, why))
    return unsupported("which writes its argument '" + name + "': " + why);
  return success();
}

Value TorchCall::view() {
  std::string why;
  Value value = table.readView(results.front(), why);
  if (!value)
    reason = "with a result that is no view: " + why;
  return value;
}

StridedLayout TorchCall::layout(StringRef name) {
  return layoutOf(find(name)->toTensor());
}
