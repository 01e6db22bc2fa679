//===- TorchInterpreter.h - run TorchScript on meta tensors -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TP_LIB_IMPORT_TORCHSCRIPT_TORCHINTERPRETER_H
#define TP_LIB_IMPORT_TORCHSCRIPT_TORCHINTERPRETER_H

#include "AtenCall.h"
#include "TorchTensors.h"
#include "tp/Import/ForwardSignature.h"
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

namespace mlir::tp {

/// A problem that prevents the import of a model.
struct ImportProblem {
  enum Kind {
    /// An op, or a form of it, that has no handler.
    UnsupportedOp,
    /// The model's behaviour depends on the values in a tensor.
    DataDependent,
    /// PyTorch itself fails: shapes that don't fit, an exception.
    Failed,
  };
  Kind kind;
  std::string text;
  std::string fqn;
  std::string location;
  bool operator==(const ImportProblem &other) const = default;
};

/// Runs graphs as TorchScript would, on meta tensors, and builds the nn ops of
/// every op that it encounters. It doesn't stop at a problem: it skips what
/// depends on it, so one run finds all problems.
class TorchInterpreter {
public:
  /// `signatures` describe traced modules.
  TorchInterpreter(const torch::jit::Module &root, ImportBuilder &b,
                   TensorTable &table, const ForwardSignatures &signatures);

  /// Calls `forward`; `arguments` don't include the module itself. Returns none
  /// if a problem left the result unknown.
  std::optional<c10::IValue> run(std::vector<c10::IValue> arguments);

  llvm::ArrayRef<ImportProblem> getProblems() const { return problems; }

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
  bool isHoisted(const at::Tensor &tensor);
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

  // Ops.
  void runOp(torch::jit::Node &node, Frame &frame,
             std::vector<c10::IValue> inputs);
  bool runOnMeta(torch::jit::Node &node, std::vector<c10::IValue> &stack);
  bool emit(torch::jit::Node &node, llvm::ArrayRef<c10::IValue> inputs,
            llvm::ArrayRef<c10::IValue> outputs);
  /// Reports a problem and returns false.
  bool reportOpaque(torch::jit::Node &node);
  bool resolveConstants(torch::jit::Node &node,
                        std::vector<c10::IValue> &inputs);
  bool hasRoom(torch::jit::Node &node, double count);
  void setOutputs(torch::jit::Node &node, Frame &frame,
                  llvm::ArrayRef<c10::IValue> outputs);

  void problem(ImportProblem::Kind kind, torch::jit::Node &node,
               const llvm::Twine &text);
  const std::string &currentFqn() const { return fqns.back(); }
  Location locationOf(torch::jit::Node &node);

  torch::jit::Module root;
  ImportBuilder &b;
  TensorTable &table;
  const ForwardSignatures &signatures;
  /// How often each module with a signature has been called.
  std::map<std::string, unsigned> numCalls;
  AtenTable handlers;
  std::unordered_map<const c10::ivalue::Object *, std::string> moduleNames;
  /// FQNs of tensors by the location of their data in memory; tied tensors
  /// share an FQN.
  struct DataKey {
    const void *data;
    std::vector<int64_t> sizes, strides;
    at::ScalarType type;
    bool operator<(const DataKey &other) const {
      return std::tie(data, sizes, strides, type) <
             std::tie(other.data, other.sizes, other.strides, other.type);
    }
  };
  static DataKey keyOf(const at::Tensor &tensor);
  struct ParameterName {
    std::string fqn;
    at::Tensor data;
    bool isBuffer;
  };
  std::map<DataKey, ParameterName> parameterNames;
  std::vector<std::string> fqns;
  std::vector<ImportProblem> problems;
  unsigned depth = 0;
  int64_t numSteps = 0;    ///< nodes that have run
  int64_t numElements = 0; ///< of large lists and strings that nodes returned
};

/// file:line of a node, or an empty string.
std::string describeLocation(torch::jit::Node &node);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHSCRIPT_TORCHINTERPRETER_H
