//===- SymbolicShapes.cpp - numbers for a program's symbols ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SymbolicShapes.h"
#include "Import/Aten/TorchTensors.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::tp;

namespace {
/// A symbol's number, and the dimension that has determined it.
struct Binding {
  int64_t number;
  std::string place;
};
using Bindings = std::map<std::string, Binding>;

/// Evaluates an expression as sympy prints it: a symbol, a number, or
/// `Name(argument, …)`, whose arguments `key=…` don't matter. Sizes of inputs
/// are symbols and, for derived dimensions, sums and products.
class Evaluator {
public:
  explicit Evaluator(const Bindings &bindings) : bindings(bindings) {}

  /// None if the expression has an unbound symbol, isn't understood, or has
  /// more than 64 bits.
  std::optional<int64_t> run(StringRef text) {
    rest = text;
    auto result = evaluate(0);
    return rest.empty() ? result : std::nullopt;
  }

  /// The symbols that have no number, after run().
  llvm::StringSet<> unbound;

private:
  static constexpr unsigned kMaxDepth = 64;
  using Result = std::optional<int64_t>;

  Result symbol(StringRef name) {
    auto it = bindings.find(name.str());
    if (it != bindings.end())
      return it->second.number;
    unbound.insert(name);
    return std::nullopt;
  }

  Result combine(StringRef name, llvm::ArrayRef<Result> operands) {
    if (operands.empty() || llvm::is_contained(operands, std::nullopt))
      return std::nullopt;
    int64_t result = *operands[0];
    for (Result operand : operands.drop_front()) {
      int64_t value = *operand;
      bool overflows = false;
      if (name == "Add")
        overflows = llvm::AddOverflow(result, value, result);
      else if (name == "Mul")
        overflows = llvm::MulOverflow(result, value, result);
      else if (name == "Max")
        result = std::max(result, value);
      else if (name == "Min")
        result = std::min(result, value);
      else if ((name == "FloorDiv" || name == "CleanDiv") && value > 0)
        result = llvm::divideFloorSigned(result, value);
      else if ((name == "Mod" || name == "PythonMod") && value > 0)
        result = llvm::mod(result, value);
      else
        return std::nullopt;
      if (overflows)
        return std::nullopt;
    }
    return result;
  }

  Result evaluate(unsigned depth) {
    if (depth > kMaxDepth)
      return std::nullopt;
    rest = rest.ltrim();
    int64_t number;
    if (!rest.consumeInteger(10, number))
      return number;
    StringRef name =
        rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    rest = rest.substr(name.size());
    if (!rest.consume_front("("))
      return symbol(name);
    if (name == "Symbol") {
      StringRef text = rest.take_until([](char c) { return c == ')'; });
      rest = rest.substr(text.size());
      if (!rest.consume_front(")"))
        return std::nullopt;
      return symbol(text.split(',').first.trim(" '\""));
    }
    llvm::SmallVector<Result> operands;
    while (!rest.consume_front(")")) {
      operands.push_back(evaluate(depth + 1));
      rest = rest.ltrim();
      if (!rest.consume_front(",") && !rest.starts_with(")"))
        return std::nullopt;
    }
    if (name == "Integer" && operands.size() == 1)
      return operands[0];
    return combine(name, operands);
  }

  const Bindings &bindings;
  StringRef rest;
};
} // namespace

static std::optional<int64_t> evaluate(const SymbolicSize &size,
                                       const Bindings &bindings) {
  return size.expression.empty() ? size.value
                                 : Evaluator(bindings).run(size.expression);
}

/// If the expression has one unbound symbol, and grows linearly with it, gives it
/// the number for which the expression is `value`.
static void solve(const SymbolicSize &size, int64_t value,
                  const std::string &place, Bindings &bindings) {
  Evaluator evaluator(bindings);
  if (size.expression.empty() || evaluator.run(size.expression) ||
      evaluator.unbound.size() != 1)
    return;
  std::string symbol = evaluator.unbound.begin()->first().str();
  Bindings attempt = bindings;
  auto evaluateAt = [&](int64_t number) {
    attempt[symbol] = {number, place};
    return evaluate(size, attempt);
  };
  auto at0 = evaluateAt(0), at1 = evaluateAt(1);
  int64_t slope, offset;
  if (!at0 || !at1 || llvm::SubOverflow(*at1, *at0, slope) || slope <= 0 ||
      llvm::SubOverflow(value, *at0, offset) || offset % slope != 0 ||
      evaluateAt(offset / slope) != value)
    return;
  bindings[symbol] = attempt[symbol];
}

static std::string describeDim(const ExportInput &input, size_t dim) {
  return input.kind == ExportInput::Number
             ? "input '" + input.name + "'"
             : "dimension " + std::to_string(dim) + " of input '" + input.name +
                   "'";
}

static llvm::Error checkRanges(const ExportedProgram &program,
                               const Bindings &bindings) {
  for (const auto &[symbol, binding] : bindings) {
    auto range = program.ranges.find(symbol);
    if (range == program.ranges.end())
      continue;
    auto [min, max] = range->second;
    if ((!min || *min <= binding.number) && (!max || binding.number <= *max))
      continue;
    std::string bounds = min ? "from " + std::to_string(*min) : "";
    if (max)
      bounds += (min ? " to " : "up to ") + std::to_string(*max);
    else
      bounds += " on";
    return llvm::createStringError(
        binding.place + " gives '" + symbol + "' the value " +
        llvm::Twine(binding.number) + ", expected one " + bounds +
        ", for which the program was exported");
  }
  return llvm::Error::success();
}

llvm::Expected<ExportShapes>
mlir::tp::bindShapes(const ExportedProgram &program,
                     llvm::ArrayRef<const InputSpec *> given) {
  Bindings bindings;
  auto getSizes = [](const ExportInput &input) -> ArrayRef<SymbolicSize> {
    if (input.kind == ExportInput::Number)
      return input.number;
    return input.tensor.shape;
  };
  for (auto [input, spec] : llvm::zip_equal(program.inputs, given)) {
    if (!spec)
      continue;
    Type type = convertType(spec->type.getContext(), input.tensor.type);
    if (type != spec->type.getElementType()) {
      std::string wanted;
      llvm::raw_string_ostream(wanted) << type;
      return llvm::createStringError("input '" + input.name +
                                     "' has element type " + wanted +
                                     " in the program, which can't be changed");
    }
    if (size_t(spec->type.getRank()) != input.tensor.shape.size())
      return llvm::createStringError("input '" + input.name + "' has " +
                                     llvm::Twine(input.tensor.shape.size()) +
                                     " dimensions in the program, found " +
                                     llvm::Twine(spec->type.getRank()));
    for (auto [dim, size] : llvm::enumerate(input.tensor.shape))
      solve(size, spec->type.getDimSize(dim), describeDim(input, dim),
            bindings);
  }
  // Symbols that no given shape has determined.
  for (const ExportInput &input : program.inputs)
    for (auto [dim, size] : llvm::enumerate(getSizes(input)))
      if (size.value)
        solve(size, *size.value, describeDim(input, dim), bindings);

  if (llvm::Error error = checkRanges(program, bindings))
    return std::move(error);
  ExportShapes shapes;
  for (auto [input, spec] : llvm::zip_equal(program.inputs, given)) {
    auto &shape = shapes.emplace_back();
    for (auto [dim, size] : llvm::enumerate(getSizes(input))) {
      std::string place = describeDim(input, dim);
      auto value = evaluate(size, bindings);
      if (!value)
        return llvm::createStringError(
            place + " has the size '" + size.expression +
            "', whose value doesn't follow from the inputs");
      if (*value < 0 && input.kind != ExportInput::Number)
        return llvm::createStringError(place + " would have the size " +
                                       llvm::Twine(*value));
      if (spec && spec->type.getDimSize(dim) != *value)
        return llvm::createStringError(
            place + " is " + llvm::Twine(spec->type.getDimSize(dim)) +
            ", expected " + llvm::Twine(*value) +
            (size.expression.empty()
                 ? ", a constant of the program; export it with "
                   "dynamic_shapes to choose it"
                 : ", which follows from the other inputs"));
      shape.push_back(*value);
    }
  }
  return shapes;
}
