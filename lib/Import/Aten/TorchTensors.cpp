//===- TorchTensors.cpp - PyTorch's tensors and their MLIR values ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchTensors.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Dialect/TP/TP.h"
#include "llvm/Support/ErrorHandling.h"
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/view_as_real.h>

using namespace mlir;
using namespace mlir::tp;

Type mlir::tp::convertType(MLIRContext *context, at::ScalarType type) {
  Builder b(context);
  switch (type) {
  case at::kFloat:
    return b.getF32Type();
  case at::kDouble:
    return b.getF64Type();
  case at::kHalf:
    return b.getF16Type();
  case at::kBFloat16:
    return b.getBF16Type();
  case at::kLong:
    return b.getI64Type();
  case at::kInt:
    return b.getI32Type();
  case at::kShort:
    return b.getIntegerType(16);
  case at::kChar:
    return b.getIntegerType(8);
  case at::kByte:
    return b.getIntegerType(8, /*isSigned=*/false);
  case at::kBool:
    return b.getI1Type();
  default:
    return Type();
  }
}

RankedTensorType mlir::tp::convertTensorType(MLIRContext *context,
                                             const at::Tensor &tensor) {
  Type elementType =
      convertType(context, c10::toRealValueType(tensor.scalar_type()));
  if (!elementType)
    return RankedTensorType();
  llvm::SmallVector<int64_t> shape(tensor.sizes().begin(),
                                   tensor.sizes().end());
  if (tensor.is_complex())
    shape.push_back(2);
  return RankedTensorType::get(shape, elementType);
}

static const char *safetensorsName(at::ScalarType type) {
  switch (type) {
  case at::kFloat:
    return "F32";
  case at::kDouble:
    return "F64";
  case at::kHalf:
    return "F16";
  case at::kBFloat16:
    return "BF16";
  case at::kLong:
    return "I64";
  case at::kInt:
    return "I32";
  case at::kShort:
    return "I16";
  case at::kChar:
    return "I8";
  case at::kByte:
    return "U8";
  default:
    return "BOOL";
  }
}

WeightTensor mlir::tp::describeWeight(const std::string &name,
                                      const at::Tensor &tensor) {
  WeightTensor weight;
  weight.name = name;
  weight.dtype = safetensorsName(tensor.scalar_type());
  weight.shape.assign(tensor.sizes().begin(), tensor.sizes().end());
  weight.bytes = tensor.numel() * tensor.element_size();
  weight.elementBytes = tensor.element_size();
  if (tensor.is_meta())
    return weight;
  weight.load = [tensor] {
    auto data = std::make_shared<at::Tensor>();
    try {
      *data = tensor.contiguous();
    } catch (const c10::Error &) {
      // When an expanded tensor is copied, only the allocation can fail.
      throw std::bad_alloc();
    }
    return std::shared_ptr<const char>(
        data, static_cast<const char *>(data->const_data_ptr()));
  };
  return weight;
}

at::Tensor mlir::tp::makeMeta(const at::Tensor &tensor) {
  at::Tensor meta = at::empty_strided(
      tensor.sizes(), tensor.strides(),
      tensor.options().device(at::kMeta).requires_grad(false));
  // A number that PyTorch has wrapped stays weak in type promotion.
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
    meta.unsafeGetTensorImpl()->set_wrapped_number(true);
  return meta;
}

DataKey::DataKey(const at::Tensor &tensor)
    : data(tensor.is_meta() ? tensor.storage().unsafeGetStorageImpl()
                            : tensor.const_data_ptr()),
      sizes(tensor.sizes().vec()), strides(tensor.strides().vec()),
      type(tensor.scalar_type()) {}

TrackedTensor &TensorTable::track(const at::Tensor &meta, Value value) {
  TrackedTensor &tracked = tensors[meta.unsafeGetTensorImpl()];
  tracked = TrackedTensor();
  tracked.meta = meta;
  tracked.value = value;
  Storage &storage = storageOf(meta);
  if (!storage.base.defined()) {
    storage.base = meta;
    storage.number = storages.size();
  }
  tracked.version = storage.version;
  return tracked;
}

TrackedTensor &TensorTable::trackPoison(const at::Tensor &meta) {
  TrackedTensor &tracked = track(meta, Value());
  tracked.poisoned = true;
  return tracked;
}

at::Tensor TensorTable::parameter(const at::Tensor &data,
                                  const std::string &fqn, bool isBuffer,
                                  bool isSaved) {
  at::Tensor &known = parameterMetas[DataKey(data)];
  if (known.defined() && data.numel() > 0)
    return known;
  at::Tensor meta = makeMeta(data);
  meta.set_requires_grad(data.requires_grad());
  TrackedTensor &tracked = track(meta, Value());
  tracked.data = data;
  tracked.fqn = fqn;
  tracked.isBuffer = isBuffer;
  tracked.isSaved = isSaved;
  storageOf(meta).number = 0;
  buffers.push_back(meta);
  known = meta;
  return meta;
}

bool TensorTable::isCausalMask(const at::Tensor &constant) {
  if (constant.scalar_type() != at::kBool || constant.dim() < 2 ||
      constant.size(-1) != constant.size(-2))
    return false;
  auto [mask, isNew] =
      masks.try_emplace({DataKey(constant), constant._version()});
  if (!isNew)
    return mask->second.isCausal;
  // Expanded dimensions hold one element.
  at::Tensor core = constant;
  for (int64_t dim = 0; dim < core.dim() - 2; ++dim)
    if (core.stride(dim) == 0 && core.size(dim) > 1)
      core = core.narrow(dim, 0, 1);
  mask->second = {constant, at::equal(core, at::tril(at::ones_like(core)))};
  return mask->second.isCausal;
}

at::Tensor TensorTable::standIn(const at::Tensor &constant) {
  at::Tensor meta = makeMeta(constant);
  track(meta, Value()).data = constant;
  return meta;
}

static void markBuffer(Value parameter) {
  parameter.getDefiningOp()->setAttr(kBufferAttr,
                                     UnitAttr::get(parameter.getContext()));
}

TrackedTensor *TensorTable::find(const at::Tensor &meta) {
  auto it = tensors.find(meta.unsafeGetTensorImpl());
  return it == tensors.end() ? nullptr : &it->second;
}

Value mlir::tp::stopGradientAfter(ImportBuilder &b, Value value) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(value);
  return b.stopGradient(value);
}

Value TensorTable::valueOf(const at::Tensor &meta) {
  TrackedTensor *tracked = find(meta);
  std::string why;
  if (!tracked || tracked->poisoned || !refresh(*tracked, why))
    return Value();
  if (tracked->value && tracked->isDetached && gradEnabled) {
    tracked->value = stopGradientAfter(b, tracked->value);
    tracked->isDetached = false;
  }
  if (tracked->value)
    return findVisible(tracked->value);
  if (!tracked->isParameter())
    return materialize(tracked->data);
  Value &local = scopes.back().locals[meta.unsafeGetTensorImpl()];
  if (!local && !tracked->isSaved) {
    local = emitConstant(b, tracked->data);
    if (local) {
      // ModelBuilder looks for buffers that are constants.
      local.getDefiningOp()->setAttr(kNameAttr, b.getStringAttr(tracked->fqn));
      writtenOut[tracked->fqn].push_back(local);
    }
  }
  if (!local)
    local = buildParameter(*tracked);
  return local;
}

Value TensorTable::buildParameter(const TrackedTensor &tracked) {
  Value parameter = nn::ParameterOp::create(
      b, convertTensorType(b.getContext(), tracked.data),
      b.getStringAttr(tracked.fqn), /*frozen=*/!tracked.data.requires_grad());
  if (tracked.isBuffer)
    markBuffer(parameter);
  weightData[tracked.fqn] = tracked.data;
  return parameter;
}

Value TensorTable::materialize(const at::Tensor &constant) {
  auto &locals = scopes.back().locals;
  auto it = locals.find(constant.unsafeGetTensorImpl());
  if (it != locals.end())
    return it->second;
  at::Tensor reals = constant.is_complex()
                         ? at::view_as_real(constant.resolve_conj())
                         : constant;
  if (Value value = emitConstant(b, reals))
    return value;
  Value value = largeConstant(reals);
  setLocal(constant, value);
  return value;
}

Value TensorTable::largeConstant(const at::Tensor &constant) {
  const std::string &module = scopes.back().fqn;
  std::string prefix = (module.empty() ? "" : module + ".") + "_constant";
  std::string fqn;
  for (unsigned i = 0; !names.insert(fqn = prefix + std::to_string(i)).second;)
    ++i;
  weightData[fqn] = constant.clone();
  Value value =
      nn::ParameterOp::create(b, convertTensorType(b.getContext(), constant),
                              b.getStringAttr(fqn), /*frozen=*/true);
  markBuffer(value);
  return value;
}

void TensorTable::enterModule(StringRef fqn, Block *body) {
  scopes.push_back({fqn.str(), body, storages.size(), {}, {}});
}

void TensorTable::leaveModule() { scopes.pop_back(); }

void TensorTable::setLocal(const at::Tensor &constant, Value value) {
  scopes.back().locals[constant.unsafeGetTensorImpl()] = value;
  keptAlive.push_back(constant);
}

//===----------------------------------------------------------------------===//
// Tensors inside of other values
//===----------------------------------------------------------------------===//

void mlir::tp::forEachTensor(const c10::IValue &value,
                             llvm::function_ref<void(const at::Tensor &)> f) {
  if (value.isTensor()) {
    if (value.toTensor().defined())
      f(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue &element : value.toListRef())
      forEachTensor(element, f);
  } else if (value.isTuple()) {
    for (const c10::IValue &element : value.toTupleRef().elements())
      forEachTensor(element, f);
  } else if (value.isGenericDict()) {
    for (const auto &entry : value.toGenericDict())
      forEachTensor(entry.value(), f);
  }
}

c10::IValue
mlir::tp::mapTensors(const c10::IValue &value,
                     llvm::function_ref<at::Tensor(const at::Tensor &)> f) {
  if (value.isTensor())
    return value.toTensor().defined() ? c10::IValue(f(value.toTensor()))
                                      : value;
  bool hasTensors = false;
  forEachTensor(value, [&](const at::Tensor &) { hasTensors = true; });
  if (!hasTensors)
    return value;
  if (value.isList()) {
    c10::impl::GenericList list(value.toList().elementType());
    for (const c10::IValue &element : value.toListRef())
      list.push_back(mapTensors(element, f));
    return list;
  }
  if (value.isTuple()) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue &element : value.toTupleRef().elements())
      elements.push_back(mapTensors(element, f));
    return c10::ivalue::Tuple::createNamed(std::move(elements),
                                           value.toTuple()->type());
  }
  c10::impl::GenericDict source = value.toGenericDict();
  c10::impl::GenericDict result(source.keyType(), source.valueType());
  for (const auto &entry : source)
    result.insert(entry.key(), mapTensors(entry.value(), f));
  return result;
}
