//===- TorchStorages.cpp - in-place writes of tensors and their views -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchTensors.h"
#include "llvm/ADT/StringSet.h"
#include <ATen/ops/as_strided.h>

using namespace mlir;
using namespace mlir::tp;

static const c10::StorageImpl *keyOf(const at::Tensor &tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

StridedLayout mlir::tp::layoutOf(const at::Tensor &tensor) {
  auto copy = [](at::IntArrayRef list) {
    return llvm::SmallVector<int64_t>(list.begin(), list.end());
  };
  return {copy(tensor.sizes()), copy(tensor.strides()),
          tensor.storage_offset()};
}

bool mlir::tp::mayHaveGradient(Value value) {
  SmallVector<Value> open{value};
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!seen.insert(next).second || !nn::expr::isFloat(next))
      continue;
    Operation *op = next.getDefiningOp();
    if (!op || isa<nn::ModuleOp>(op))
      return true;
    if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
      if (!parameter.getFrozen())
        return true;
      continue;
    }
    if (!isa<nn::StopGradientOp>(op))
      llvm::append_range(open, op->getOperands());
  }
  return false;
}

/// Whether a tensor is without the gradient of its base, or the other way round.
bool TensorTable::isForeignGradient(const TrackedTensor &tracked) {
  return tracked.gradientNumber != ownerOf(tracked.meta).gradientNumber;
}

TensorTable::Storage &TensorTable::storageOf(const at::Tensor &meta) {
  return storages[keyOf(meta)];
}

TrackedTensor &TensorTable::ownerOf(const at::Tensor &meta) {
  return *find(storageOf(meta).base);
}

TrackedTensor &TensorTable::trackView(const at::Tensor &meta, Value value,
                                      const at::Tensor &source) {
  TrackedTensor *from = find(source);
  unsigned number = from ? from->gradientNumber : 0;
  auto stop = value.getDefiningOp<nn::StopGradientOp>();
  bool isStopped = stop && stop.getInput() == valueOf(source);
  if (isStopped || (from && !gradEnabled && !from->isDetached))
    number = ++numGradients;
  TrackedTensor &tracked = track(meta, value);
  tracked.gradientNumber = number;
  tracked.isDetached = !gradEnabled;
  return tracked;
}

at::Tensor TensorTable::makeAlias(const at::Tensor &meta, Value value) {
  at::Tensor alias = meta.alias();
  TrackedTensor *tracked = find(meta);
  bool isDetached = tracked->isDetached;
  unsigned number = tracked->gradientNumber;
  TrackedTensor &result = track(alias, value);
  result.isDetached = isDetached;
  result.gradientNumber = number;
  return alias;
}

//===----------------------------------------------------------------------===//
// Reads and writes
//===----------------------------------------------------------------------===//

Value TensorTable::readBase(Storage &storage) {
  if (!storage.value)
    return valueOf(storage.base);
  if (storage.isDetached && gradEnabled) {
    storage.value = stopGradientAfter(b, storage.value);
    storage.isDetached = false;
  }
  return findVisible(storage.value);
}

Value TensorTable::readView(const at::Tensor &meta, std::string &why) {
  Storage &storage = storageOf(meta);
  if (!storage.base.defined() ||
      storage.base.scalar_type() != meta.scalar_type()) {
    why = "its base has another element type";
    return Value();
  }
  auto view = StridedView::find(layoutOf(storage.base), layoutOf(meta), why);
  if (!view)
    return Value();
  Value base = readBase(storage);
  if (!base) {
    why = "its base isn't a result of the module that has computed it";
    return Value();
  }
  return view->read(b, base);
}

/// Reads a tensor again if another one of its storage has been written.
bool TensorTable::refresh(TrackedTensor &tracked, std::string &why) {
  Storage &storage = storageOf(tracked.meta);
  if (tracked.version == storage.version || tracked.poisoned)
    return true;
  bool isForeign = isForeignGradient(tracked);
  if (storage.hasForeignGradient || (storage.losesGradient && !isForeign)) {
    why = "it shares memory with a tensor that was written and has another "
          "gradient, because of detach() or torch.no_grad(); clone() one of "
          "them";
    return false;
  }
  Value value = readView(tracked.meta, why);
  if (!value)
    return false;
  tracked.value = isForeign ? b.stopGradient(value) : value;
  if (tracked.isConstant())
    tracked.data = at::Tensor();
  tracked.version = storage.version;
  return true;
}

bool TensorTable::overwrite(const at::Tensor &meta, Value value,
                            std::string &why) {
  TrackedTensor &tracked = *find(meta);
  Value before = valueOf(meta);
  // An op that changes the gradient alone writes nothing.
  if (auto stop = value.getDefiningOp<nn::StopGradientOp>();
      stop && stop.getInput() == before) {
    tracked.value = value;
    tracked.gradientNumber = ++numGradients;
  }
  if (value == before || value == tracked.value)
    return true;
  Storage &storage = storageOf(meta);
  std::optional<StridedView> view;
  if (storage.isTorn)
    why = "PyTorch has a view of it that the importer has copied";
  else if (storage.base.scalar_type() != meta.scalar_type())
    why = "its base has another element type";
  else
    view = StridedView::find(layoutOf(storage.base), layoutOf(meta), why);
  if (view && !view->isWritable())
    why = "it repeats elements";
  Value base = readBase(storage);
  if (!base)
    why = "its base isn't a result of the module that has computed it";
  if (!why.empty())
    return false;
  if (isForeignGradient(tracked)) {
    storage.losesGradient |= mayHaveGradient(base);
    storage.hasForeignGradient |= gradEnabled && mayHaveGradient(value);
  }
  storage.value = view->write(b, base, value);
  storage.isDetached = !gradEnabled;
  for (Scope &scope : scopes)
    if (storage.number <= scope.numStorages)
      scope.written.insert(&storage);
  tracked.value = value;
  tracked.isDetached = !gradEnabled;
  if (tracked.isConstant())
    tracked.data = at::Tensor();
  tracked.version = ++storage.version;
  return true;
}

void TensorTable::promote(const at::Tensor &constant) {
  Promotion &promotion = promotedStorages[keyOf(constant)];
  if (promotion.meta.defined())
    return;
  // PyTorch knows the tensor that a view was made from.
  at::Tensor base = constant;
  if (constant.is_view())
    base = at::Tensor(constant._base());
  int64_t count = constant.storage().nbytes() / constant.element_size();
  if (base.scalar_type() != constant.scalar_type() || base.numel() != count)
    base = at::as_strided(constant, {count}, {1}, 0);
  promotion = {base, standIn(base)};
  storageOf(promotion.meta).number = 0;
}

at::Tensor TensorTable::current(const at::Tensor &tensor, std::string &why) {
  if (tensor.is_meta()) {
    TrackedTensor *tracked = find(tensor);
    if (!tracked)
      return tensor;
    if (!refresh(*tracked, why))
      return at::Tensor();
    if (!tracked->value || findVisible(tracked->value))
      return tensor;
    why = "it isn't a result of the module that has computed it";
    return at::Tensor();
  }
  auto storage = tensor.has_storage() ? promotedStorages.find(keyOf(tensor))
                                      : promotedStorages.end();
  if (storage == promotedStorages.end())
    return tensor;
  Promotion &promotion = promoted[tensor.unsafeGetTensorImpl()];
  if (!promotion.meta.defined()) {
    auto &[base, meta] = storage->second;
    if (base.scalar_type() != tensor.scalar_type()) {
      why = "its base has another element type";
      return at::Tensor();
    }
    at::Tensor view =
        meta.as_strided(tensor.sizes(), tensor.strides(),
                        tensor.storage_offset() - base.storage_offset());
    Value value = readView(view, why);
    if (!value)
      return at::Tensor();
    track(view, value);
    promotion = {tensor, view};
  }
  return current(promotion.meta, why);
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// The number that all elements are; null if they differ, or if it isn't one of
/// f64.
static FloatAttr getSplat(MLIRContext *context, const at::Tensor &data) {
  if (data.numel() == 0)
    return FloatAttr();
  at::Tensor flat = data.reshape({-1}), first = flat[0];
  if (!areSame(flat, first.expand_as(flat)))
    return FloatAttr();
  auto number = first.item<double>();
  bool isExact = at::isFloatingType(data.scalar_type()) ||
                 std::abs(number) < 0x1p53; // so is the next integer
  return isExact ? Builder(context).getF64FloatAttr(number) : FloatAttr();
}

void TensorTable::assign(const at::Tensor &buffer, Value value) {
  storageOf(buffer).next = value;
}

void TensorTable::buildAssignments() {
  OpBuilder::InsertionGuard guard(b);
  for (const at::Tensor &buffer : buffers) {
    Storage &storage = storageOf(buffer);
    Value value = storage.next ? storage.next : storage.value;
    if (!value)
      continue;
    // The value is assigned where it is computed.
    while (auto module = value.getDefiningOp<nn::ModuleOp>())
      value = module.getBodyBlock()->getTerminator()->getOperand(
          cast<OpResult>(value).getResultNumber());
    TrackedTensor &tracked = *find(buffer);
    FloatAttr init;
    if (!tracked.isSaved)
      init = getSplat(b.getContext(), tracked.data);
    if (value.getDefiningOp())
      b.setInsertionPointAfterValue(value);
    else
      b.setInsertionPoint(value.getParentBlock()->getTerminator());
    nn::AssignOp::create(b, b.getStringAttr(tracked.fqn), value, init);
    // One that was read as a constant is a parameter after all.
    for (Value constant : writtenOut[tracked.fqn]) {
      b.setInsertionPointAfterValue(constant);
      constant.replaceAllUsesWith(buildParameter(tracked));
    }
  }
}

void TensorTable::completeAssignments(func::FuncOp function) {
  std::map<std::string, TrackedTensor *> byName;
  for (const at::Tensor &buffer : buffers)
    byName[find(buffer)->fqn] = find(buffer);
  llvm::StringSet<> present;
  function.walk([&](Operation *op) {
    if (auto parameter = dyn_cast<nn::ParameterOp>(op))
      present.insert(parameter.getFqn());
    auto assign = dyn_cast<nn::AssignOp>(op);
    if (!assign || !present.insert(assign.getFqn()).second)
      return;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(assign);
    const TrackedTensor &tracked = *byName.at(assign.getFqn().str());
    buildParameter(tracked);
    // What it is at first depends on how PyTorch has exported the model, and
    // nothing reads it.
    if (!tracked.isSaved)
      assign.setInitAttr(b.getF64FloatAttr(0));
  });
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

Value TensorTable::findVisible(Value value) const {
  auto isOpen = [&](const Scope &scope) {
    return scope.body == value.getParentBlock();
  };
  while (value && llvm::none_of(scopes, isOpen))
    value = results.lookup(value);
  return value;
}

void TensorTable::appendStorages(llvm::ArrayRef<at::Tensor> leaving,
                                 llvm::SmallVectorImpl<Value> &yielded) {
  Scope &scope = scopes.back();
  auto add = [&](Storage &storage) {
    Value value = storage.value ? storage.value : find(storage.base)->value;
    if (value)
      value = findVisible(value);
    if (value && value.getParentBlock() == scope.body &&
        !llvm::is_contained(yielded, value))
      yielded.push_back(value);
  };
  for (const at::Tensor &tensor : leaving)
    add(storageOf(tensor));
  for (Storage *storage : scope.written)
    add(*storage);
}

void TensorTable::close(nn::ModuleOp op, unsigned numResults) {
  for (auto [inner, result] : llvm::zip_equal(
           op.getBodyBlock()->getTerminator()->getOperands(), op.getResults()))
    results.try_emplace(inner, result);
  if (op.getNumResults() != numResults)
    numOwnResults[op] = numResults;
}

nn::ModuleOp TensorTable::dropUnused(nn::ModuleOp op) {
  auto found = numOwnResults.find(op);
  if (found == numOwnResults.end())
    return op;
  Operation *yield = op.getBodyBlock()->getTerminator();
  llvm::BitVector unused(op.getNumResults());
  llvm::SmallVector<Value> used;
  for (OpResult result : op->getResults()) {
    if (result.getResultNumber() >= found->second && result.use_empty())
      unused.set(result.getResultNumber());
    else
      used.push_back(result);
  }
  if (unused.none())
    return op;
  yield->eraseOperands(unused);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  OperationState state(op.getLoc(), op->getName(), op->getOperands(),
                       ValueRange(used).getTypes(), op->getAttrs());
  state.addRegion()->takeBody(op.getBody());
  auto result = cast<nn::ModuleOp>(b.create(state));
  for (auto [from, to] : llvm::zip_equal(used, result.getResults()))
    from.replaceAllUsesWith(to);
  op.erase();
  return result;
}
