//===- GradientBuilder.h - Builder of gradients -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reverse mode, as in PyTorch's autograd: an op takes the gradient of each of
// its results, a tensor of the result's type, and gives the gradient of each of
// its operands, a tensor of the operand's type. An op that needs more of the
// forward pass than its operands and results saves it there.
//
//===----------------------------------------------------------------------===//

#ifndef TP_INTERFACES_GRADIENTBUILDER_H
#define TP_INTERFACES_GRADIENTBUILDER_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::tp {

/// Builds what an op becomes in the forward pass of a training program.
class ForwardBuilder : public ImplicitLocOpBuilder {
public:
  /// `getStep` gives the number of the training step, tensor<i64>, from 0 on;
  /// random ops draw different numbers in each step. `stream` distinguishes the
  /// random ops of a program.
  ForwardBuilder(Location loc, const OpBuilder &builder,
                 llvm::function_ref<Value()> getStep, int64_t seed,
                 int64_t &stream, SmallVectorImpl<Value> &saved)
      : ImplicitLocOpBuilder(loc, builder), step(getStep), seed(seed),
        stream(stream), saved(saved) {}

  Value getStep() { return step(); }
  int64_t getSeed() const { return seed; }
  int64_t getNextStream() { return stream++; }
  /// Saves `value` for the gradient; the i-th saved value is
  /// GradientBuilder::getSaved(i).
  void save(Value value) { saved.push_back(value); }

private:
  llvm::function_ref<Value()> step;
  int64_t seed;
  int64_t &stream;
  SmallVectorImpl<Value> &saved;
};

/// Builds the gradients of one op's operands.
class GradientBuilder : public ImplicitLocOpBuilder {
public:
  GradientBuilder(Location loc, const OpBuilder &builder,
                  ArrayRef<Value> results, ArrayRef<Value> resultGradients,
                  ArrayRef<Value> saved, const llvm::BitVector &wanted,
                  llvm::function_ref<void(unsigned, Value)> set)
      : ImplicitLocOpBuilder(loc, builder), results(results),
        resultGradients(resultGradients), saved(saved), wanted(wanted),
        set(set) {}

  /// The gradient of a result; null if nothing depends on the result.
  Value getGradient(unsigned result = 0) const {
    return resultGradients[result];
  }
  /// A result in the forward pass.
  Value getResult(unsigned result = 0) const { return results[result]; }
  Value getSaved(unsigned i) const { return saved[i]; }
  /// Whether the operand's gradient is needed.
  bool wants(unsigned operand) const { return wanted[operand]; }
  /// `gradient` has the operand's type.
  void setGradient(unsigned operand, Value gradient) { set(operand, gradient); }

private:
  ArrayRef<Value> results, resultGradients, saved;
  const llvm::BitVector &wanted;
  llvm::function_ref<void(unsigned, Value)> set;
};

} // namespace mlir::tp

#endif // TP_INTERFACES_GRADIENTBUILDER_H
