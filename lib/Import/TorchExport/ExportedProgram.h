//===- ExportedProgram.h - a program of torch.export ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of a program of torch.export that the importer needs; its schema is
// torch/_export/serde/schema.py. Names of values are replaced by numbers, and
// graphs in graphs are inlined. A read of a tensor that an op has written in
// place is a read of the op's result.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_IMPORT_TORCHEXPORT_EXPORTEDPROGRAM_H
#define TP_LIB_IMPORT_TORCHEXPORT_EXPORTEDPROGRAM_H

#include "JsonNode.h"
#include "mlir/Support/LLVM.h"
#include <ATen/core/ivalue.h>
#include <map>

namespace mlir::tp {

/// A value of the program: an index into ExportedProgram::values.
using ValueId = unsigned;

/// A value or a constant.
struct ExportOperand {
  std::optional<ValueId> value;
  c10::IValue constant;
};

/// An argument of an op, or a result of the program.
struct ExportArgument {
  std::string name;
  llvm::SmallVector<ExportOperand, 1> operands;
  /// For a list, the type of its elements; else null, and there is one operand.
  c10::TypePtr elementType;
  /// The kind of an argument that the importer doesn't know, or empty.
  std::string unknownKind;
};

/// One call of a module, as far as an op belongs to it.
struct ExportFrame {
  std::string fqn;
  std::string className;
  /// How many calls of the module were before.
  unsigned call = 0;

  /// As the program's list of calls names it: "layers.0", "layers.0@1".
  std::string getCallName() const;
  bool operator==(const ExportFrame &other) const {
    return fqn == other.fqn && call == other.call;
  }
};

/// An op, in the order of their execution.
struct ExportStep {
  /// "torch.ops.aten.add.Tensor", "_operator.mul".
  std::string target;
  std::vector<ExportArgument> arguments;
  /// For each result the value that it becomes. A result that is a list has one
  /// for each element.
  std::vector<llvm::SmallVector<ValueId, 1>> results;
  /// The modules that the op belongs to, outermost first, without the root.
  /// None if it isn't known.
  std::optional<std::vector<ExportFrame>> modules;
  /// file:line in the model's source, or empty.
  std::string place;
  bool isGradEnabled = true;
  /// Why the op isn't supported, for one that takes graphs; else empty.
  std::string problem;

  /// Whether the first argument and the only result are one tensor each.
  bool mapsTensor() const;
  /// Whether the op writes its first argument, and returns it.
  bool isInPlace() const;
};

/// The size of a dimension, or another integer.
struct SymbolicSize {
  /// As sympy prints it, e.g. "Mul(Integer(2), Symbol('s0'))", or empty for a
  /// number.
  std::string expression;
  /// The number, or what the expression was for the example inputs.
  std::optional<int64_t> value;
};

struct ExportTensor {
  at::ScalarType type = at::kFloat;
  std::vector<SymbolicSize> shape;
};

/// An input of the program's graph.
struct ExportInput {
  /// The last three are arguments of forward. The graph doesn't use the others
  /// among these, which are constants.
  enum Kind { Parameter, Buffer, Constant, Tensor, Number, Other };
  Kind kind = Other;
  ValueId value = 0;
  /// The FQN, or the name of forward's argument.
  std::string name;
  /// Whether a state_dict has it.
  bool isSaved = true;
  ExportTensor tensor; ///< of a Tensor
  SymbolicSize number; ///< of a Number

  bool isArgument() const { return kind >= Tensor; }
};

/// A structure of lists, tuples and dictionaries: a treespec of PyTorch.
struct ExportTree {
  enum Kind { Leaf, Tuple, List, Dict };
  Kind kind = Leaf;
  std::vector<std::string> keys; ///< of a Dict
  std::vector<ExportTree> children;
  /// The Python type, if it is none of these; else empty.
  std::string unknownType;

  bool isLeaf() const { return kind == Leaf && unknownType.empty(); }
  unsigned countLeaves() const;
};

/// The arguments and results of a module's call, as
/// `preserve_module_call_signature` or the program itself states them.
struct ExportSignature {
  /// One entry for each leaf of the arguments: the argument's name and its
  /// position, and the value.
  struct Argument {
    std::string name;
    int64_t position;
    std::optional<ValueId> value;
  };
  std::vector<Argument> arguments;
  std::vector<ExportOperand> results;
};

/// The bounds of a size, inclusive.
struct ExportRange {
  std::optional<int64_t> min, max;
};

struct ExportedProgram {
  struct Value {
    std::string name;
    /// What the program says about the result of an op, if it is a tensor.
    std::optional<ExportTensor> tensor;
    /// Set for a constant argument of an inlined graph.
    std::optional<c10::IValue> constant;
  };
  std::vector<Value> values;
  std::vector<ExportInput> inputs;
  std::vector<ExportStep> steps;
  std::vector<ExportOperand> outputs;
  /// For each output its sizes; none for one that isn't a tensor.
  std::vector<std::vector<SymbolicSize>> outputShapes;
  ExportTree outputTree;
  /// The buffers that the program writes, and their next values.
  std::vector<std::pair<ValueId, ValueId>> bufferMutations;
  /// The inputs that the program writes.
  std::vector<std::string> writtenInputs;
  /// The arguments of the program itself.
  ExportSignature signature;
  /// By ExportFrame::getCallName().
  std::map<std::string, ExportSignature> signatures;
  /// By symbol.
  std::map<std::string, ExportRange> ranges;
  std::string rootClass;
};

/// Reads the JSON of a program. Throws an ExportError if it isn't one, or is of
/// another version of the schema.
ExportedProgram readExportedProgram(JsonNode root);

/// Parses the JSON text `name` of an archive. Throws an ExportError.
llvm::json::Value parseRecord(StringRef text, StringRef name);

/// The meta data of a stored or an input tensor.
at::ScalarType readScalarType(JsonNode node);
SymbolicSize readSize(JsonNode node);

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_TORCHEXPORT_EXPORTEDPROGRAM_H
