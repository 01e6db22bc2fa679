//===- ExportRunner.h - run an exported program -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_TORCHEXPORT_EXPORTRUNNER_H
#define TP_LIB_IMPORT_TORCHEXPORT_EXPORTRUNNER_H

#include "ExportedProgram.h"
#include "Import/Aten/ModelBuilder.h"
#include "Vmap.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::tp {

/// Runs a program on meta tensors. The program is a list of ops; the ops of a
/// module's call are a part of it, which becomes an nn.module.
class ExportRunner {
public:
  /// `signatures` describe modules that tp_trace.py has exported.
  ExportRunner(const ExportedProgram &program, ModelBuilder &builder,
               const ForwardSignatures &signatures);

  /// Binds a value of the program to a tensor or a number.
  void bind(ValueId id, c10::IValue value) { values[id] = std::move(value); }
  /// Binds a value of the program to the parameter or buffer `input`.
  void bindParameter(const ExportInput &input, ValueId value,
                     const at::Tensor &data);

  /// Runs the program as the call of its root. Returns what it returns, or none
  /// if a problem left this unknown.
  std::optional<c10::IValue> run();

  /// The indices of the program's outputs that are tensors, after run().
  llvm::ArrayRef<size_t> getTensorOutputs() const { return tensorOutputs; }

private:
  /// A part of the program's list of ops.
  struct Range {
    size_t begin, end;
  };
  /// An operand of a module's call: a value, and its argument.
  struct Operand {
    ValueId id;
    std::string name;
    int64_t position;
  };
  struct Call {
    ExportFrame frame;
    llvm::SmallVector<Operand> operands;
    /// Its results, before others that are used after it; the root has no
    /// others.
    llvm::SmallVector<ValueId> results;
    bool isRoot = false;
    bool isTraced = false;
    /// How many ops at the beginning are aliases of the operands.
    unsigned numAliases = 0;
  };

  void runSteps(Range range, unsigned depth);
  void runStep(const ExportStep &step);
  bool checkResult(const ExportStep &step, ValueId id,
                   const c10::IValue &value);
  size_t findEnd(Range range, unsigned depth);
  std::optional<c10::IValue> evaluate(const ExportArgument &argument);
  std::optional<c10::IValue> collect(const ExportTree &tree, size_t &next);

  void callModule(const Call &call, Range range,
                  llvm::function_ref<void()> runBody);
  Call describeCall(Range range, unsigned depth);
  Call describeRoot();
  void readTracedSignature(const ForwardSignature &signature, Range range,
                           Call &call);
  bool readSignature(Range range, Call &call);
  void addCaptured(Range range, Call &call, int64_t position);
  llvm::SetVector<ValueId> getReads(Range range) const;
  bool isDefinedIn(ValueId id, Range range) const;
  bool isTensor(ValueId id) const;
  bool isOperand(ValueId id);

  void assignBuffers(ValueId id, llvm::StringRef place);

  const ExportedProgram &program;
  ImportBuilder &b;
  TensorTable &table;
  OpRunner &ops;
  Vmap vmap;
  const ForwardSignatures &signatures;
  std::vector<std::optional<c10::IValue>> values;
  /// For each value the first op that defines it, and the last that reads it.
  std::vector<size_t> definitions, lastReads;
  /// The meta tensors of parameters and buffers.
  std::map<ValueId, at::Tensor> parameters;
  /// The buffers that the program writes, by their next values.
  llvm::DenseMap<ValueId, llvm::SmallVector<ValueId, 1>> nextValues;
  std::map<std::string, unsigned> numCalls;
  llvm::SmallVector<size_t> tensorOutputs;
};

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHEXPORT_EXPORTRUNNER_H
