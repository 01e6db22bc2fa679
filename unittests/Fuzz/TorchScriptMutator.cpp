//===- TorchScriptMutator.cpp - Mutations of TorchScript source -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inserts, swaps and drops statements, and replaces tokens by names, numbers
// and calls of LibTorch's ops, so that LibTorch's compiler takes many of the
// results. TorchScriptFuzzer.cpp explains the text.
//
//===----------------------------------------------------------------------===//

#include "Import/Aten/AtenCall.h"
#include "llvm/ADT/StringExtras.h"
#include <list>
#include <random>
#include <string>
#include <torch/csrc/jit/runtime/operator.h>

using namespace mlir;
using namespace mlir::tp;
namespace jit = torch::jit;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {
class Mutator {
public:
  Mutator(StringRef text, unsigned seed) : random(seed) {
    text.split(lines, '\n');
  }

  void mutate() {
    for (unsigned i = 0, n = 1 + pick(3); i < n; ++i)
      mutateOnce();
  }
  /// Puts a statement of `other` among the others.
  void cross(StringRef other) {
    SmallVector<StringRef> statements;
    for (StringRef line : llvm::split(other, '\n'))
      if (line.starts_with(" ") && !line.trim().starts_with("return"))
        statements.push_back(line);
    if (!statements.empty())
      insertStatement(statements[pick(statements.size())].str());
  }
  std::string text() const { return llvm::join(lines, "\n"); }

private:
  size_t pick(size_t count) { return count ? random() % count : 0; }
  template <size_t N>
  std::string pick(const char *const (&texts)[N]) {
    return texts[pick(N)];
  }

  std::string number();
  std::string type();
  std::string op();
  std::string name();
  std::string argument();
  std::string argument(const c10::TypePtr &type, StringRef name);
  std::string statement();

  void mutateOnce();
  void mutateHeader();
  void mutateToken();
  void insertStatement(std::string line);
  void replace(std::string line) {
    storage.push_back(std::move(line));
    lines[current] = storage.back();
  }

  std::minstd_rand random;
  SmallVector<StringRef> lines;
  std::list<std::string> storage;
  size_t current = 0;
};
} // namespace

std::string Mutator::number() {
  static const char *const numbers[] = {"0",
                                        "1",
                                        "-1",
                                        "2",
                                        "-2",
                                        "3",
                                        "4",
                                        "5",
                                        "7",
                                        "8",
                                        "-3",
                                        "-5",
                                        "16",
                                        "64",
                                        "100",
                                        "1000",
                                        "65",
                                        "2147483647",
                                        "-2147483648",
                                        "9223372036854775807",
                                        "0.0",
                                        "-0.0",
                                        "0.5",
                                        "1.5",
                                        "-1.5",
                                        "1e-45",
                                        "1e38",
                                        "1e308",
                                        "1e20",
                                        "1j",
                                        "float('inf')",
                                        "-float('inf')",
                                        "None",
                                        "True",
                                        "False",
                                        "float('nan')",
                                        "[]",
                                        "[0]",
                                        "[1, 2]",
                                        "[-1]",
                                        "[2, -1]",
                                        "[0, 0]",
                                        "(-9223372036854775807 - 1)"};
  return pick(numbers);
}

std::string Mutator::type() {
  static const char *const types[] = {"f32", "f64", "f16", "bf16", "i64",
                                      "i32", "i16", "i8",  "ui8",  "i1"};
  return pick(types);
}

std::string Mutator::op() {
  static const std::vector<std::string> known = [] {
    std::vector<std::string> names;
    AtenTable table = makeAtenTable();
    for (StringRef name : table.keys())
      for (const char *suffix : {"", "", "_"})
        names.push_back((name + suffix).str());
    return names;
  }();
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const auto &op : jit::getAllOperators())
      if (StringRef name = op->schema().name(); name.consume_front("aten::"))
        names.push_back(name.str());
    return names;
  }();
  return pick(4) ? known[pick(known.size())] : all[pick(all.size())];
}

std::string Mutator::name() {
  static const char *const names[] = {
      "x",         "y",      "self.w", "self.b", "self.e", "self.n",
      "self.m",    "self.u", "self.h", "self.z", "self.s", "self.c",
      "self.wide", "x",      "x",      "y",      "n",      "k"};
  return pick(names);
}

std::string Mutator::argument() {
  static const char *const arguments[] = {"dim=-1",
                                          "dim=0",
                                          "keepdim=True",
                                          "dtype=7",
                                          "dtype=4",
                                          "dtype=11",
                                          "dtype=0",
                                          "dtype=5",
                                          "dtype=9",
                                          "dtype=27",
                                          "alpha=2",
                                          "rounding_mode='floor'",
                                          "rounding_mode='trunc'",
                                          "3",
                                          "0",
                                          "[x, y]",
                                          "[x, x]",
                                          "(x, y)",
                                          "x.size(0)",
                                          "x.dim()",
                                          "x.shape",
                                          "x > 0",
                                          "torch.tensor([0, 1])",
                                          "torch.tensor([5, -7])",
                                          "torch.tensor(2)",
                                          "torch.tensor(1j)",
                                          "torch.ones(2, 4)",
                                          "torch.arange(4)",
                                          "torch.zeros(0)",
                                          "torch.ones(4, dtype=0)",
                                          "torch.ones(1).expand(4)",
                                          "torch.empty(0, 4, dtype=4)",
                                          "torch.ones(4, 4).tril()",
                                          "torch.tensor([True, False])",
                                          "x.T",
                                          "x[0]",
                                          "x.sum()",
                                          "str(x.size(0))",
                                          "torch.tensor(float('nan'))",
                                          "x.new_zeros(2)",
                                          "x.long()",
                                          "x.to(11)",
                                          "x.to(0)",
                                          "x.half()",
                                          "x.unsqueeze(0)",
                                          "x[None]",
                                          "x.detach()"};
  switch (pick(3)) {
  case 0:
    return number();
  case 1:
    return name();
  default:
    return pick(arguments);
  }
}

/// An argument of `type`, which LibTorch's compiler takes.
std::string Mutator::argument(const c10::TypePtr &type, StringRef name) {
  static const char *const tensors[] = {"x",
                                        "x",
                                        "x",
                                        "y",
                                        "x[0]",
                                        "x.t()",
                                        "x.unsqueeze(0)",
                                        "x.sum()",
                                        "x.long()",
                                        "x > 0",
                                        "x.half()",
                                        "x[0:0]",
                                        "x * 2",
                                        "x.detach()"};
  // float32, float64, float16, …: the names are Python's.
  static const char *const types[] = {"6", "7",  "5", "4",   "1",
                                      "0", "11", "9", "None"};
  static const char *const integers[] = {"-2", "-1", "0", "1",        "2",
                                         "3",  "4",  "5", "x.size(0)"};
  static const char *const edges[] = {"9223372036854775807",
                                      "(-9223372036854775807 - 1)",
                                      "2147483648",
                                      "-100",
                                      "65",
                                      "7"};
  static const char *const reals[] = {
      "0.0", "0.5", "-1.5", "1e308", "float('inf')", "float('nan')", "2.0"};
  static const char *const texts[] = {"'mean'",    "'none'",      "'floor'",
                                      "'trunc'",   "'tanh'",      "'constant'",
                                      "'reflect'", "'ij,jk->ik'", "'ij->ji'",
                                      "'ij,ij->'", "'ii->i'",     "''"};
  if (pick(30) == 0)
    return argument();
  if (auto optional = type->cast<c10::OptionalType>())
    return pick(3) ? argument(optional->getElementType(), name) : "None";
  if (auto list = type->cast<c10::ListType>()) {
    std::string text = "[";
    for (unsigned i = 0, n = pick(4); i < n; ++i)
      text += (i ? ", " : "") + argument(list->getElementType(), name);
    return text + "]";
  }
  if (name == "dtype")
    return pick(types);
  switch (type->kind()) {
  case c10::TypeKind::TensorType: {
    std::string tensor = pick(3) ? pick(tensors) : this->name();
    return pick(8) ? tensor : argument();
  }
  case c10::TypeKind::IntType:
  case c10::TypeKind::SymIntType:
    return pick(8) ? pick(integers) : pick(edges);
  case c10::TypeKind::FloatType:
    return pick(reals);
  case c10::TypeKind::BoolType:
    return pick(2) ? "True" : "False";
  case c10::TypeKind::NumberType:
    return pick(2) ? pick(integers) : pick(8) ? pick(reals) : number();
  case c10::TypeKind::StringType:
    return pick(texts);
  default:
    return "None";
  }
}

std::string Mutator::statement() {
  std::string name = op();
  auto ops = jit::getAllOperatorsFor(c10::Symbol::aten(name));
  if (ops.empty())
    return "x = x." + name + "(" + argument() + ")";
  const c10::FunctionSchema &schema = ops[pick(ops.size())]->schema();
  std::string call = "torch." + name + "(";
  for (const c10::Argument &argument : schema.arguments()) {
    if (argument.default_value() && pick(2)) {
      if (argument.kwarg_only())
        continue;
      break;
    }
    call += StringRef(call).ends_with("(") ? "" : ", ";
    if (argument.kwarg_only())
      call += argument.name() + "=";
    call += this->argument(argument.type(), argument.name());
  }
  call += ")";
  bool givesTensor =
      schema.returns().size() == 1 &&
      schema.returns()[0].type()->kind() == c10::TypeKind::TensorType;
  if (!givesTensor)
    return pick(2) ? call : "k = " + call;
  static const char *const forms[] = {"x = ", "x = ", "y = ", ""};
  return pick(forms) + call;
}

void Mutator::insertStatement(std::string statement) {
  // Before another one, with its indentation.
  SmallVector<size_t> places;
  for (auto [i, line] : llvm::enumerate(lines))
    if (line.starts_with(" "))
      places.push_back(i);
  if (places.empty())
    return;
  size_t place = places[pick(places.size())];
  StringRef indent = lines[place].take_while([](char c) { return c == ' '; });
  storage.push_back(indent.str() + StringRef(statement).ltrim().str());
  lines.insert(lines.begin() + place, storage.back());
}

void Mutator::mutateHeader() {
  SmallVector<StringRef> specs;
  lines[0].split(specs, ' ', -1, /*KeepEmpty=*/false);
  current = 0;
  if (specs.size() < 2)
    return replace("# x=2x4x" + type());
  size_t i = 1 + pick(specs.size() - 1);
  auto [name, shape] = specs[i].split('=');
  SmallVector<StringRef> parts;
  shape.split(parts, 'x');
  static const char *const sizes[] = {"0", "1", "2",  "3",
                                      "4", "5", "16", "1099511627776"};
  std::string size = pick(sizes);
  std::string newType = type();
  switch (pick(4)) {
  case 0:
    parts.back() = newType;
    break;
  case 1:
    parts.insert(parts.begin() + pick(parts.size()), size);
    break;
  case 2:
    if (parts.size() > 1)
      parts.erase(parts.begin() + pick(parts.size() - 1));
    break;
  default:
    if (parts.size() > 1)
      parts[pick(parts.size() - 1)] = size;
  }
  std::string spec = name.str() + "=" + llvm::join(parts, "x");
  specs[i] = spec;
  replace(llvm::join(specs, " "));
}

void Mutator::mutateToken() {
  SmallVector<size_t> places;
  for (auto [i, line] : llvm::enumerate(lines))
    if (i > 0 && line.starts_with(" "))
      places.push_back(i);
  if (places.empty())
    return;
  current = places[pick(places.size())];
  StringRef line = lines[current];
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  SmallVector<std::pair<size_t, size_t>> tokens; // begin, length
  for (size_t i = 0; i < line.size();) {
    size_t length = line.drop_front(i).take_while(isWord).size();
    if (length || llvm::StringRef("(),").contains(line[i]))
      tokens.push_back({i, std::max<size_t>(length, 1)});
    i += std::max<size_t>(length, 1);
  }
  if (tokens.empty())
    return;
  auto [begin, length] = tokens[pick(tokens.size())];
  StringRef before = line.take_front(begin), token = line.substr(begin, length),
            after = line.drop_front(begin + length);
  std::string with;
  if (token == ")")
    with = (before.ends_with("(") ? "" : ", ") + argument() + ")";
  else if (token == "(")
    with = "(" + argument() + (after.starts_with(")") ? "" : ", ");
  else if (token == ",") // drops the argument behind it
    return replace((before + after.drop_until([](char c) {
                     return c == ',' || c == ')' || c == ']';
                   })).str());
  else if (llvm::isDigit(token.front()))
    with = pick(4) ? number() : argument();
  else if (before.ends_with(".") && !before.ends_with("self."))
    with = op();
  else if (before.ends_with("."))
    with = StringRef(name()).split("self.").second.str();
  else if (after.starts_with("=") && !after.starts_with("=="))
    return; // the name of an argument
  else
    with = pick(3) ? name() : argument();
  if (!with.empty())
    replace((before + with + after).str());
}

void Mutator::mutateOnce() {
  size_t a = pick(lines.size()), b = pick(lines.size());
  switch (pick(12)) {
  case 0:
    return mutateHeader();
  case 1:
  case 5:
  case 6:
  case 7:
    return insertStatement(statement());
  case 2:
    if (lines[a].starts_with(" "))
      return insertStatement(lines[a].str());
    return;
  case 3:
    if (lines[a].starts_with(" "))
      lines.erase(lines.begin() + a);
    return;
  case 4:
    if (lines[a].starts_with(" ") && lines[b].starts_with(" "))
      std::swap(lines[a], lines[b]);
    return;
  default:
    return mutateToken();
  }
}

static size_t give(StringRef text, uint8_t *data, size_t maxSize) {
  size_t size = std::min(text.size(), maxSize);
  memcpy(data, text.data(), size);
  return size;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  if (seed % 32 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string text(reinterpret_cast<const char *>(data), size);
  Mutator mutator(text, seed);
  mutator.mutate();
  return give(mutator.text(), data, maxSize);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first,
                                            size_t firstSize,
                                            const uint8_t *second,
                                            size_t secondSize, uint8_t *out,
                                            size_t maxSize, unsigned seed) {
  Mutator mutator({reinterpret_cast<const char *>(first), firstSize}, seed);
  mutator.cross({reinterpret_cast<const char *>(second), secondSize});
  return give(mutator.text(), out, maxSize);
}
