//===- CastFaults.cpp - Wrong roundings and signs -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Faults.h"
#include "mlir/IR/Builders.h"
#include "tp/Dialect/NN/NN.h"

using namespace mlir;
using namespace mlir::tp;
using namespace mlir::tp::test;

namespace {

Value buildCast(OpBuilder &b, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  return nn::CastOp::create(b, value.getLoc(), type.clone(element), value);
}

bool isNarrower(Type a, Type b) {
  return isa<FloatType>(a) && isa<FloatType>(b) &&
         a.getIntOrFloatBitWidth() < b.getIntOrFloatBitWidth();
}

Type getElement(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getElementType() : Type();
}

/// Ops whose result is rounded by a cast there and back.
void addRoundings(Operation *op, std::vector<Fault> &faults) {
  if (op->getNumResults() != 1 || !getElement(op->getResult(0)) ||
      !getElement(op->getResult(0)).isF32() ||
      !isa<nn::NNDialect, TPDialect>(op->getDialect()))
    return;
  for (bool isBrain : {true, false})
    faults.push_back(
        {"insert rounding", [=](Operation *op) {
           OpBuilder b(op->getContext());
           b.setInsertionPointAfter(op);
           Value result = op->getResult(0);
           Type narrow = isBrain ? Type(b.getBF16Type()) : Type(b.getF16Type());
           Value less = buildCast(b, result, narrow);
           result.replaceAllUsesExcept(buildCast(b, less, b.getF32Type()),
                                       less.getDefiningOp());
         }});
}

/// A cast to a narrower float and back that is left out, with what reduces or
/// moves the narrower one between the two.
void addLostRounding(nn::CastOp op, std::vector<Fault> &faults) {
  if (!isNarrower(getElement(op.getInput()), getElement(op)))
    return;
  SmallVector<Operation *> between;
  Value value = op.getInput();
  while (Operation *collective = value.getDefiningOp()) {
    if (!isa<CollectiveOpInterface>(collective) || !value.hasOneUse())
      break;
    between.push_back(collective);
    value = collective->getOperand(0);
  }
  auto narrow = value.getDefiningOp<nn::CastOp>();
  if (!narrow || getElement(narrow.getInput()) != getElement(op))
    return;
  size_t numBetween = between.size();
  faults.push_back({"lose rounding", [numBetween](Operation *op) {
                      SmallVector<Operation *> between;
                      Operation *each = op->getOperand(0).getDefiningOp();
                      for (size_t i = 0; i < numBetween; ++i) {
                        between.push_back(each);
                        each = each->getOperand(0).getDefiningOp();
                      }
                      Value value = each->getOperand(0);
                      for (Operation *collective : llvm::reverse(between)) {
                        collective->setOperand(0, value);
                        value = collective->getResult(0);
                        value.setType(cast<RankedTensorType>(value.getType())
                                          .clone(getElement(op->getResult(0))));
                      }
                      op->getResult(0).replaceAllUsesWith(value);
                      op->erase();
                    }});
}

/// A cast by way of integers of another sign, or another width.
void addSigns(nn::CastOp op, std::vector<Fault> &faults) {
  MLIRContext *context = op.getContext();
  SmallVector<Type> others = {
      IntegerType::get(context, 8),
      IntegerType::get(context, 8, IntegerType::Unsigned),
      IntegerType::get(context, 16)};
  for (Type other : others) {
    if (other == getElement(op.getInput()) || other == getElement(op))
      continue;
    if (!isa<IntegerType>(getElement(op.getInput())) &&
        !isa<IntegerType>(getElement(op)))
      continue;
    faults.push_back({"signedness", [=](Operation *op) {
                        OpBuilder b(op);
                        op->setOperand(0,
                                       buildCast(b, op->getOperand(0), other));
                      }});
  }
}

} // namespace

std::vector<Fault> mlir::tp::test::getCastFaults(Operation *op) {
  std::vector<Fault> faults;
  addRoundings(op, faults);
  if (auto cast = dyn_cast<nn::CastOp>(op)) {
    addLostRounding(cast, faults);
    addSigns(cast, faults);
  }
  return faults;
}
