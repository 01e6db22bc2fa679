//===- AtenCall.h - one call of a PyTorch operator --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The view of a model that an op's handler gets: arguments by the names of
// PyTorch's op schema, and the result types, which PyTorch itself has inferred.
// Handlers know neither LibTorch nor the archive format.
//
//===----------------------------------------------------------------------===//

#ifndef TP_LIB_IMPORT_ATEN_ATENCALL_H
#define TP_LIB_IMPORT_ATEN_ATENCALL_H

#include "StridedView.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace mlir::tp {

/// A constant index tensor.
struct ConstantIndex {
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<int64_t> values;
};

class AtenCall {
public:
  virtual ~AtenCall() = default;

  /// Whether the schema has the argument and it isn't None.
  virtual bool has(StringRef name) const = 0;
  virtual bool isTensor(StringRef name) const = 0;
  /// A number, or a constant tensor of no dimensions.
  virtual bool isNumber(StringRef name) const = 0;
  virtual bool isString(StringRef name) const = 0;
  /// Whether it is a tensor of complex numbers, whose value has a last
  /// dimension more: the real and the imaginary part.
  virtual bool isComplex(StringRef name) const = 0;

  /// Arguments. If `has` is false for the name, they return a null value, 0,
  /// false, an empty list or an empty string.
  virtual Value tensor(StringRef name) = 0;
  /// A list of tensors; None entries are null.
  virtual llvm::SmallVector<Value> tensors(StringRef name) = 0;
  /// A number, or a constant tensor of one element.
  virtual Scalar scalar(StringRef name) = 0;
  /// A list of integers; a single one counts as a list.
  virtual llvm::SmallVector<int64_t> integers(StringRef name) = 0;
  /// A list of floating-point numbers.
  virtual llvm::SmallVector<double> reals(StringRef name) = 0;
  virtual std::string string(StringRef name) = 0;
  int64_t integer(StringRef name) { return scalar(name).integer; }
  double real(StringRef name) { return scalar(name).real; }
  bool flag(StringRef name) { return scalar(name).real != 0; }

  /// Entry `i` of a list of integer tensors, if it is a constant.
  virtual std::optional<ConstantIndex> constantIndex(StringRef name,
                                                     unsigned i) = 0;
  /// An integer tensor, if it is a constant.
  virtual std::optional<ConstantIndex> constantIndex(StringRef name) = 0;
  /// Whether a constant boolean mask of shape (t, t) says j ≤ i, up to leading
  /// dimensions of size 1.
  virtual bool isCausalMask(StringRef name) = 0;

  /// The type that PyTorch's promotion rules give for the tensors and numbers
  /// of these arguments.
  virtual Type promote(ArrayRef<StringRef> names) = 0;

  /// The results: a list of tensors counts as that many.
  virtual unsigned numResults() const = 0;
  virtual RankedTensorType resultType(unsigned i = 0) const = 0;
  virtual void setResult(unsigned i, Value value) = 0;
  /// The result of an op that returns a view; null if it isn't one after all.
  virtual Value view() = 0;
  /// Where the elements of a tensor lie in memory.
  virtual StridedLayout layout(StringRef name) = 0;
  /// Writes the buffer that is the argument `name`.
  virtual LogicalResult assign(StringRef name, Value value) = 0;
  LogicalResult result(Value value) {
    setResult(0, value);
    return success();
  }

  /// Records that this form of the op isn't supported, and fails.
  virtual LogicalResult unsupported(const llvm::Twine &why) = 0;
  /// Leaves this form of a composite op to the ops that it consists of in
  /// PyTorch, and fails.
  virtual LogicalResult decompose() = 0;

  /// Integers for `n` dimensions; a single one counts for all.
  llvm::SmallVector<int64_t> integersPerDim(StringRef name, int64_t n) {
    llvm::SmallVector<int64_t> values = integers(name);
    if (values.size() == 1)
      values.assign(n, values.front());
    return values;
  }

  /// A dimension argument, negative ones counted from `rank`.
  int64_t dim(StringRef name, int64_t rank) {
    int64_t value = integer(name);
    return value < 0 ? value + rank : value;
  }
  llvm::SmallVector<int64_t> dims(StringRef name, int64_t rank) {
    llvm::SmallVector<int64_t> values = integers(name);
    for (int64_t &value : values)
      value = value < 0 ? value + rank : value;
    return values;
  }
  Type resultElement(unsigned i = 0) const {
    return resultType(i).getElementType();
  }
  ArrayRef<int64_t> resultShape(unsigned i = 0) const {
    return resultType(i).getShape();
  }
};

/// Builds the nn ops of one call and sets its results.
using AtenHandler = LogicalResult (*)(AtenCall &call, ImportBuilder &b);

/// A handler, and how it treats the arguments of all overloads of its op: lists
/// of their names in PyTorch's schemas, separated by blanks. The importer
/// checks that handlers keep to this. An argument in none of the lists must
/// have its default, and a test requires each argument to be in a list.
struct AtenOp {
  /// Null for an op that has complex operands or results in any case.
  AtenHandler run = nullptr;
  /// Arguments that the handler honors, or refuses if it doesn't support them.
  StringRef reads = {};
  /// Arguments that only affect the results' shapes and element types, which
  /// PyTorch has computed.
  StringRef inType = {};
  /// Arguments that don't affect the results' values; explainNoEffect says why.
  StringRef noEffect = {};
  /// Arguments that must have their default.
  StringRef refuses = {};

  /// The handler for complex operands or results; the arguments `dim`, `dims`,
  /// `dim0` and `dim1` aren't negative then. Without one, they are refused.
  AtenHandler runOnPairs = nullptr;

  static bool isIn(StringRef list, StringRef name);
};

/// Why an argument in some op's `noEffect` has no effect; empty for any other
/// name.
StringRef explainNoEffect(StringRef name);

/// By the op's name without namespace, overload and the trailing underscore of
/// an in-place form: "add" stands for aten::add.Tensor, aten::add_.Scalar, …
/// The name of an op that isn't PyTorch's own keeps its namespace.
/// To add an op: one handler, one line.
using AtenTable = llvm::StringMap<AtenOp>;

/// All of them.
AtenTable makeAtenTable();

/// Prints them, see Importer::printOps().
void printAtenOps(raw_ostream &os);

void addElementwiseOps(AtenTable &table);
void addContractionOps(AtenTable &table);
void addConvolutionOps(AtenTable &table);
void addNormalizationOps(AtenTable &table);
void addPoolingOps(AtenTable &table);
void addResizeOps(AtenTable &table);
void addActivationOps(AtenTable &table);
void addReductionOps(AtenTable &table);
void addShapeOps(AtenTable &table);
void addIndexOps(AtenTable &table);
void addSortOps(AtenTable &table);
void addScatterOps(AtenTable &table);
void addGroupedOps(AtenTable &table);
void addStridedOps(AtenTable &table);
void addLossOps(AtenTable &table);
void addTrigonometryOps(AtenTable &table);
void addSpecialOps(AtenTable &table);
void addBesselOps(AtenTable &table);
void addScanOps(AtenTable &table);
void addLinearSolverOps(AtenTable &table);
void addCtcOps(AtenTable &table);
void addArithmeticOps(AtenTable &table);
void addBitwiseOps(AtenTable &table);
void addDiagonalOps(AtenTable &table);
void addNormOps(AtenTable &table);
void addGridOps(AtenTable &table);
void addBagOps(AtenTable &table);
/// After those that it adds handlers to.
void addComplexOps(AtenTable &table);
void addFourierOps(AtenTable &table);
void addTransformerOps(AtenTable &table);

/// An argument that may be a tensor or a number, in the given element type.
inline Value operand(AtenCall &call, ImportBuilder &b, StringRef name,
                     Type elementType) {
  if (call.isNumber(name))
    return b.scalar(elementType, call.scalar(name));
  return nn::expr::castTo(b, call.tensor(name), elementType);
}

/// The first argument, which in-place forms call self.
inline Value inputOf(AtenCall &call) {
  return call.tensor(call.has("input") ? "input" : "self");
}

/// `f` of `self`, computed in a type of at least 32 bits.
inline LogicalResult widely(AtenCall &call, ImportBuilder &b,
                            llvm::function_ref<Value(Value)> f) {
  Type type = call.resultElement();
  Value self = nn::expr::castTo(b, call.tensor("self"), type);
  return call.result(nn::expr::castTo(b, f(b.widen(self)), type));
}

/// A handler of such a function.
template <Value (*f)(ImportBuilder &b, Value x)>
LogicalResult widely(AtenCall &call, ImportBuilder &b) {
  return widely(call, b, [&](Value x) { return f(b, x); });
}

/// `f` of `self` and the argument `other`, each a tensor or a number, computed
/// in a type of at least 32 bits.
inline LogicalResult widely(AtenCall &call, ImportBuilder &b, StringRef other,
                            llvm::function_ref<Value(Value, Value)> f) {
  Type type = call.resultElement();
  Value x = b.widen(operand(call, b, "self", type));
  Value y = b.widen(operand(call, b, other, type));
  return call.result(nn::expr::castTo(b, f(x, y), type));
}

} // namespace mlir::tp

#endif // TP_LIB_IMPORT_ATEN_ATENCALL_H
