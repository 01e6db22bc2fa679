//===- TorchCall.h - a call of an op in a TorchScript graph -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_ATEN_TORCHCALL_H
#define TP_LIB_IMPORT_ATEN_TORCHCALL_H

#include "AtenCall.h"
#include "TorchTensors.h"
#include <ATen/core/function_schema.h>

namespace mlir::tp {

/// An AtenCall of evaluated arguments: meta tensors and constants.
class TorchCall : public AtenCall {
public:
  /// `op` is the op of the schema; `arguments` are in the schema's order.
  /// `results` are the tensors that the op returns, with lists flattened;
  /// PyTorch has computed them on meta tensors.
  TorchCall(TensorTable &table, MLIRContext *context, const AtenOp &op,
            const c10::FunctionSchema &schema,
            llvm::ArrayRef<c10::IValue> arguments,
            std::vector<at::Tensor> results)
      : table(table), context(context), op(op), schema(schema),
        arguments(arguments), results(std::move(results)),
        values(this->results.size()) {}

  bool has(StringRef name) const override;
  bool isTensor(StringRef name) const override;
  bool isNumber(StringRef name) const override;
  bool isString(StringRef name) const override;
  bool isComplex(StringRef name) const override;
  Value tensor(StringRef name) override;
  llvm::SmallVector<Value> tensors(StringRef name) override;
  Scalar scalar(StringRef name) override;
  llvm::SmallVector<int64_t> integers(StringRef name) override;
  llvm::SmallVector<double> reals(StringRef name) override;
  std::string string(StringRef name) override;
  std::optional<ConstantIndex> constantIndex(StringRef name,
                                             unsigned i) override;
  std::optional<ConstantIndex> constantIndex(StringRef name) override;
  bool isCausalMask(StringRef name) override;
  Type promote(ArrayRef<StringRef> names) override;
  unsigned numResults() const override { return results.size(); }
  RankedTensorType resultType(unsigned i) const override {
    return convertTensorType(context, results[i]);
  }
  void setResult(unsigned i, Value value) override { values[i] = value; }
  Value view() override;
  StridedLayout layout(StringRef name) override;
  LogicalResult assign(StringRef name, Value value) override;
  LogicalResult unsupported(const llvm::Twine &why) override {
    reason = why.str();
    return failure();
  }

  LogicalResult decompose() override {
    isDecomposed = true;
    return failure();
  }

  /// Whether the handler left the op to the ops that it consists of.
  bool wasDecomposed() const { return isDecomposed; }
  llvm::ArrayRef<Value> getResults() const { return values; }
  /// Why the handler failed, or which argument it has misread; else empty.
  const std::string &getReason() const { return reason; }

private:
  /// The argument, or null if there is none or it is None.
  const c10::IValue *find(StringRef name) const;
  /// Records that an argument isn't what the handler takes it for.
  void misread(StringRef name, const c10::IValue &value,
               const char *expected) const;
  /// The data behind a meta tensor that stands for a constant.
  at::Tensor constantOf(const at::Tensor &tensor) const;
  std::optional<ConstantIndex> toIndex(const at::Tensor &tensor) const;

  TensorTable &table;
  MLIRContext *context;
  const AtenOp &op;
  const c10::FunctionSchema &schema;
  llvm::ArrayRef<c10::IValue> arguments;
  std::vector<at::Tensor> results;
  llvm::SmallVector<Value> values;
  mutable std::string reason;
  bool isDecomposed = false;
};

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_TORCHCALL_H
