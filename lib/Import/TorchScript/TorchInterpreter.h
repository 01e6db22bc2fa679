//===- TorchInterpreter.h - run TorchScript on meta tensors -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_TORCHSCRIPT_TORCHINTERPRETER_H
#define TP_LIB_IMPORT_TORCHSCRIPT_TORCHINTERPRETER_H

#include "Import/Aten/TorchOps.h"
#include "tp/Import/ForwardSignature.h"
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

namespace mlir::tp {

/// Runs graphs as TorchScript would, and passes their ops to `ops`. It doesn't
/// stop at a problem: it skips what depends on it, so one run finds all
/// problems.
class TorchInterpreter {
public:
  /// `signatures` describe traced modules.
  TorchInterpreter(const torch::jit::Module &root, ImportBuilder &b,
                   TensorTable &table, OpRunner &ops,
                   const ForwardSignatures &signatures);

  /// Calls `forward`; `arguments` don't include the module itself. Returns none
  /// if a problem left the result unknown.
  std::optional<c10::IValue> run(std::vector<c10::IValue> arguments);

private:
  using Values = std::unordered_map<const torch::jit::Value *, c10::IValue>;
  struct Frame {
    Values values;
    const c10::ivalue::Object *self = nullptr;
  };
  using Object = c10::intrusive_ptr<c10::ivalue::Object>;
  using Result = std::optional<c10::IValue>;

  void nameModules(const Object &module, const std::string &fqn);

  // Control flow. These functions fail if execution can't go on.
  Result runGraph(torch::jit::Graph &graph, std::vector<c10::IValue> arguments,
                  const c10::ivalue::Object *self);
  bool runBlock(torch::jit::Block &block, Frame &frame);
  bool runNode(torch::jit::Node &node, Frame &frame);
  bool runIf(torch::jit::Node &node, Frame &frame);
  bool runLoop(torch::jit::Node &node, Frame &frame);

  // Nodes that the TorchScript interpreter itself executes.
  bool runStructural(torch::jit::Node &node, Frame &frame,
                     std::vector<c10::IValue> &inputs, bool &handled);
  at::Tensor toParameter(const at::Tensor &tensor);
  void getAttribute(torch::jit::Node &node, Frame &frame,
                    const c10::IValue &object);
  void setAttribute(torch::jit::Node &node, const Object &object,
                    const c10::IValue &value);
  void callMethod(torch::jit::Node &node, Frame &frame,
                  std::vector<c10::IValue> inputs);
  void callFunction(torch::jit::Node &node, Frame &frame,
                    std::vector<c10::IValue> inputs);
  bool callContext(torch::jit::Node &node, Frame &frame,
                   const c10::IValue &object, const char *name);
  bool isHoisted(const at::Tensor &tensor, bool hasSignature);
  Result callModule(const Object &module, torch::jit::Function &method,
                    std::vector<c10::IValue> arguments);
  /// The names of a call's tensor inputs, and their positions among forward's
  /// arguments.
  struct Inputs {
    llvm::SmallVector<std::string> names;
    llvm::SmallVector<int64_t> positions;
    bool areTraced = false;
  };
  void findForwardNames(torch::jit::Graph &graph,
                        llvm::ArrayRef<torch::jit::Value *> values,
                        const std::string &fqn, Inputs &inputs);

  void runOp(torch::jit::Node &node, Frame &frame,
             std::vector<c10::IValue> inputs);
  void setOutputs(torch::jit::Node &node, Frame &frame,
                  llvm::ArrayRef<c10::IValue> outputs);

  void problem(ImportProblem::Kind kind, torch::jit::Node &node,
               const llvm::Twine &text);

  torch::jit::Module root;
  ImportBuilder &b;
  TensorTable &table;
  OpRunner &ops;
  const ForwardSignatures &signatures;
  /// How often each module with a signature has been called.
  std::map<std::string, unsigned> numCalls;
  std::unordered_map<const c10::ivalue::Object *, std::string> moduleNames;
  struct ParameterName {
    std::string fqn;
    at::Tensor data;
    bool isBuffer;
    bool isSaved;
  };
  /// Tied tensors share an FQN.
  std::map<DataKey, ParameterName> parameterNames;
  unsigned depth = 0;
  int64_t numSteps = 0; ///< nodes that have run
};

/// file:line of a node, or an empty string.
std::string describeLocation(torch::jit::Node &node);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHSCRIPT_TORCHINTERPRETER_H
