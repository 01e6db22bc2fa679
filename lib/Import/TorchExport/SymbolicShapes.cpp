//===- SymbolicShapes.cpp - numbers for a program's symbols ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SymbolicShapes.h"
#include "Import/Aten/TorchTensors.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace mlir::tp;

namespace {
/// A symbol's number, and the dimension that has determined it.
struct Binding {
  int64_t number;
  std::string place;
};
using Bindings = std::map<std::string, Binding>;

/// A number plus multiples of symbols.
struct LinearForm {
  int64_t constant = 0;
  std::map<std::string, int64_t> factors = {};

  bool isConstant() const { return factors.empty(); }
};

/// Reads an expression as sympy prints it: a symbol, a number, or
/// `Name(argument, …)`, whose arguments `key=…` don't matter. Symbols that are
/// bound become numbers.
class ExpressionReader {
public:
  explicit ExpressionReader(const Bindings &bindings) : bindings(bindings) {}

  /// None if the expression isn't linear in the unbound symbols, isn't
  /// understood, or has numbers of more than 64 bits.
  std::optional<LinearForm> run(StringRef text) {
    rest = text;
    auto result = read(0);
    return rest.empty() ? result : std::nullopt;
  }

private:
  static constexpr unsigned kMaxDepth = 64;
  using Result = std::optional<LinearForm>;

  LinearForm symbol(StringRef name) {
    auto it = bindings.find(name.str());
    if (it != bindings.end())
      return {it->second.number};
    return {0, {{name.str(), 1}}};
  }

  static Result add(LinearForm sum, const LinearForm &other) {
    if (llvm::AddOverflow(sum.constant, other.constant, sum.constant))
      return std::nullopt;
    for (const auto &[name, factor] : other.factors) {
      int64_t &total = sum.factors[name];
      if (llvm::AddOverflow(total, factor, total))
        return std::nullopt;
      if (total == 0)
        sum.factors.erase(name);
    }
    return sum;
  }

  static Result multiply(const LinearForm &x, const LinearForm &y) {
    if (!x.isConstant() && !y.isConstant())
      return std::nullopt;
    LinearForm product = x.isConstant() ? y : x;
    int64_t number = x.isConstant() ? x.constant : y.constant;
    if (number == 0)
      return LinearForm();
    if (llvm::MulOverflow(product.constant, number, product.constant))
      return std::nullopt;
    for (auto &[name, factor] : product.factors)
      if (llvm::MulOverflow(factor, number, factor))
        return std::nullopt;
    return product;
  }

  static Result combine(StringRef name, const LinearForm &x,
                        const LinearForm &y) {
    if (name == "Add")
      return add(x, y);
    if (name == "Mul")
      return multiply(x, y);
    if (!x.isConstant() || !y.isConstant())
      return std::nullopt;
    int64_t a = x.constant, b = y.constant;
    if (name == "Max")
      return LinearForm{std::max(a, b)};
    if (name == "Min")
      return LinearForm{std::min(a, b)};
    if ((name == "FloorDiv" || name == "CleanDiv") && b > 0)
      return LinearForm{llvm::divideFloorSigned(a, b)};
    if ((name == "Mod" || name == "PythonMod") && b > 0)
      return LinearForm{llvm::mod(a, b)};
    return std::nullopt;
  }

  Result read(unsigned depth) {
    if (depth > kMaxDepth)
      return std::nullopt;
    rest = rest.ltrim();
    int64_t number;
    if (!rest.consumeInteger(10, number))
      return LinearForm{number};
    StringRef name =
        rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    rest = rest.substr(name.size());
    if (!rest.consume_front("(")) {
      if (name.empty())
        return std::nullopt;
      return symbol(name);
    }
    if (name == "Symbol") {
      StringRef text = rest.take_until([](char c) { return c == ')'; });
      rest = rest.substr(text.size());
      if (!rest.consume_front(")"))
        return std::nullopt;
      return symbol(text.split(',').first.trim(" '\""));
    }
    llvm::SmallVector<Result> operands;
    while (!rest.consume_front(")")) {
      operands.push_back(read(depth + 1));
      rest = rest.ltrim();
      if (!rest.consume_front(",") && !rest.starts_with(")"))
        return std::nullopt;
    }
    if (name == "Integer" && operands.size() == 1)
      return operands[0];
    if (operands.empty() || llvm::is_contained(operands, std::nullopt))
      return std::nullopt;
    Result result = operands[0];
    for (const Result &operand : llvm::drop_begin(operands))
      if (!(result = combine(name, *result, *operand)))
        return std::nullopt;
    return result;
  }

  const Bindings &bindings;
  StringRef rest;
};
} // namespace

static std::optional<LinearForm> readForm(const SymbolicSize &size,
                                          const Bindings &bindings) {
  if (!size.expression.empty())
    return ExpressionReader(bindings).run(size.expression);
  if (!size.value)
    return std::nullopt;
  return LinearForm{*size.value};
}

static std::optional<int64_t> evaluate(const SymbolicSize &size,
                                       const Bindings &bindings) {
  auto form = readForm(size, bindings);
  if (!form || !form->isConstant())
    return std::nullopt;
  return form->constant;
}

/// If the expression has one unbound symbol, and grows linearly with it, gives
/// it the number for which the expression is `value`.
static void solve(const SymbolicSize &size, int64_t value,
                  const std::string &place, Bindings &bindings) {
  auto form = readForm(size, bindings);
  if (!form || form->factors.size() != 1)
    return;
  auto [symbol, factor] = *form->factors.begin();
  int64_t multiple;
  if (factor <= 0 || llvm::SubOverflow(value, form->constant, multiple) ||
      multiple % factor != 0)
    return;
  bindings[symbol] = {multiple / factor, place};
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

/// The expression without what sympy says about symbols and numbers:
/// "FloorDiv(s0, 2)".
static std::string abbreviate(std::string expression) {
  for (const char *pattern :
       {"Symbol\\('([^']*)'[^)]*\\)", "Integer\\((-?[0-9]+)\\)"})
    for (llvm::Regex regex(pattern); regex.match(expression);)
      expression = regex.sub("\\1", expression);
  return expression;
}

SmallVector<std::string>
mlir::tp::printShape(llvm::ArrayRef<SymbolicSize> shape,
                     const ExportedProgram &program,
                     const ExportShapes &shapes) {
  // Numbers among the inputs aren't inputs of the imported function.
  Bindings numbers;
  for (auto [input, sizes] : llvm::zip_equal(program.inputs, shapes))
    if (input.kind == ExportInput::Number)
      solve(input.number, sizes.front(), describeDim(input, 0), numbers);
  SmallVector<std::string> texts;
  for (const SymbolicSize &size : shape) {
    auto form = readForm(size, numbers);
    if (!form) {
      texts.push_back(abbreviate(size.expression));
      continue;
    }
    std::string text;
    for (const auto &[symbol, factor] : form->factors)
      text += (text.empty() ? "" : "+") +
              (factor == 1 ? "" : std::to_string(factor) + "*") + symbol;
    if (text.empty() || form->constant > 0)
      text += (text.empty() ? "" : "+") + std::to_string(form->constant);
    else if (form->constant < 0)
      text += std::to_string(form->constant);
    texts.push_back(text);
  }
  return texts;
}
