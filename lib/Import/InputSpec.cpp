//===- InputSpec.cpp - the example inputs of a model ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tp/Import/InputSpec.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::tp;

static Type parseElementType(MLIRContext *context, llvm::StringRef text) {
  Builder b(context);
  return llvm::StringSwitch<Type>(text)
      .Case("f32", b.getF32Type())
      .Case("f64", b.getF64Type())
      .Case("f16", b.getF16Type())
      .Case("bf16", b.getBF16Type())
      .Case("i64", b.getI64Type())
      .Case("i32", b.getI32Type())
      .Case("i16", b.getIntegerType(16))
      .Case("i8", b.getIntegerType(8))
      .Case("ui8", b.getIntegerType(8, /*isSigned=*/false))
      .Cases({"i1", "bool"}, b.getI1Type())
      .Default(Type());
}

llvm::Expected<InputSpec> mlir::tp::parseInputSpec(MLIRContext *context,
                                                   llvm::StringRef text) {
  auto error = [&](const llvm::Twine &why) {
    return llvm::createStringError("input '" + text + "': " + why);
  };
  auto [name, shapeAndType] = text.split('=');
  if (name.empty() || shapeAndType.empty())
    return error("expected name=SIZExSIZE...xTYPE, as in ids=2x64xi64");

  llvm::SmallVector<llvm::StringRef> parts;
  shapeAndType.split(parts, 'x');
  Type elementType = parseElementType(context, parts.back());
  if (!elementType)
    return error("unknown element type '" + parts.back() +
                 "', expected one of f32, f64, f16, bf16, i64, i32, i16, "
                 "i8, ui8, i1");
  parts.pop_back();

  llvm::SmallVector<int64_t> shape;
  int64_t elements = 1;
  for (llvm::StringRef part : parts) {
    int64_t size;
    if (part.getAsInteger(10, size) || size < 0)
      return error("'" + part +
                   "' isn't the size of a dimension, expected a "
                   "number ≥ 0");
    if (__builtin_mul_overflow(elements, size, &elements))
      return error("the tensor has more than 2^63 elements");
    shape.push_back(size);
  }
  return InputSpec{name.str(), RankedTensorType::get(shape, elementType)};
}
