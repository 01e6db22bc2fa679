//===- LocalForms.cpp - Ops of one rank -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LocalForms.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "tp/Dialect/TP/Blocks.h"
#include "tp/Dialect/TP/Shardings.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Sharding/SplitInference.h"

using namespace mlir;
using namespace mlir::tp;

FailureOr<LocalForm>
LocalForms::compute(ShardingRuleOpInterface op,
                    ArrayRef<ShardingAttr> operands) const {
  LocalForm form;
  form.results = getResultShardings(op);
  MeshOp mesh = this->mesh; // an op's accessors aren't const
  if (llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>))
    form.results.assign(op->getNumResults(),
                        ShardingAttr::getReplicated(
                            FlatSymbolRefAttr::get(mesh.getSymNameAttr()), 0));
  if (form.results.size() != op->getNumResults())
    return op->emitError(
        "has no placement; tp-propagate gives one to every op");
  FailureOr<OpSplit> split = inferSplit(op, mesh, rank, operands, form.results);
  if (failed(split))
    return failure();
  form.split = std::move(*split);
  for (auto [type, sharding] : llvm::zip(op->getResultTypes(), form.results)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    form.types.push_back(
        tensor ? Type(getLocalType(tensor, sharding, mesh, rank)) : type);
  }
  return form;
}

LocalForm *LocalForms::get(ShardingRuleOpInterface op,
                           ArrayRef<ShardingAttr> operands) {
  bool isNewClass;
  WordList key = {classes.get(op, isNewClass)};
  for (ShardingAttr sharding : operands)
    key.push_back(toWord(sharding.getAsOpaquePointer()));
  for (ShardingAttr sharding : getResultShardings(op))
    key.push_back(toWord(sharding.getAsOpaquePointer()));
  auto [number, isNew] = numbers.insert(key);
  // The rule of a destination-style op can depend on the op's inits.
  if (!isNew && !isa<DestinationStyleOpInterface>(op.getOperation()))
    return &forms[number];
  FailureOr<LocalForm> form = compute(op, operands);
  if (failed(form))
    return nullptr;
  if (isNew)
    return &forms.emplace_back(std::move(*form));
  forms[number] = std::move(*form);
  return &forms[number];
}

DictionaryAttr LocalForms::getAttrs(Operation *op, const LocalForm &form) {
  DictionaryAttr global = op->getRawDictionaryAttrs();
  auto &[last, local] = attrs[&form];
  if (global == last)
    return local;
  NamedAttrList list(global);
  list.erase(kShardingAttr);
  list.erase(kShardingsAttr);
  if (getParameter(op)) {
    list.set(kShardingAttr, form.results.front());
    list.set(kGlobalTypeAttr, TypeAttr::get(op->getResult(0).getType()));
  }
  last = global;
  return local = list.getDictionary(op->getContext());
}
