//===- OpClasses.cpp - Ops that are alike ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Sharding/Propagation/OpClasses.h"
#include "mlir/IR/OperationSupport.h"
#include "tp/Interfaces/ModelOpInterfaces.h"
#include "tp/Support/ListInterner.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::tp;

unsigned OpClasses::Alike::getHashValue(Operation *op) {
  WordList words = {toWord(op->getName().getAsOpaquePointer())};
  // The name distinguishes parameters, but it doesn't affect how they are split.
  if (!getParameter(op))
    words.push_back(op->getName().hashOpProperties(op->getPropertiesStorage()));
  for (Value operand : op->getOperands())
    words.push_back(toWord(operand.getType().getAsOpaquePointer()));
  for (Type type : op->getResultTypes())
    words.push_back(toWord(type.getAsOpaquePointer()));
  return llvm::hash_combine_range(words.begin(), words.end());
}

bool OpClasses::Alike::isEqual(Operation *a, Operation *b) {
  if (a == b)
    return true;
  if (a == getEmptyKey() || a == getTombstoneKey() || b == getEmptyKey() ||
      b == getTombstoneKey())
    return false;
  if (a->getName() != b->getName() ||
      a->getNumRegions() != b->getNumRegions() ||
      !llvm::equal(a->getOperandTypes(), b->getOperandTypes()) ||
      !llvm::equal(a->getResultTypes(), b->getResultTypes()) ||
      !(getParameter(a) ||
        a->getName().compareOpProperties(a->getPropertiesStorage(),
                                         b->getPropertiesStorage())))
    return false;
  if (a->getNumRegions() == 0)
    return true;
  // Values inside the regions must correspond; those outside only need the same
  // type.
  DenseMap<Value, Value> inside;
  return OperationEquivalence::isEquivalentTo(
      a, b,
      [&](Value x, Value y) {
        auto it = inside.find(x);
        return success(it == inside.end() ? x.getType() == y.getType()
                                          : it->second == y);
      },
      [&](Value x, Value y) { inside[x] = y; },
      OperationEquivalence::IgnoreLocations |
          OperationEquivalence::IgnoreDiscardableAttrs);
}
