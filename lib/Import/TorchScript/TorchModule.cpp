//===- TorchModule.cpp - a loaded TorchScript module to MLIR --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchModule.h"

#include "TorchInterpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringSet.h"
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

using namespace mlir;
using namespace mlir::tp;
namespace jit = torch::jit;

static at::ScalarType toScalarType(Type type) {
  if (type.isF64())
    return at::kDouble;
  if (type.isF16())
    return at::kHalf;
  if (type.isBF16())
    return at::kBFloat16;
  if (type.isInteger(64))
    return at::kLong;
  if (type.isInteger(32))
    return at::kInt;
  if (type.isInteger(16))
    return at::kShort;
  if (type.isInteger(8))
    return type.isUnsignedInteger() ? at::kByte : at::kChar;
  return type.isInteger(1) ? at::kBool : at::kFloat;
}

namespace {
class ModelImporter {
public:
  ModelImporter(MLIRContext *context, const jit::Module &root, StringRef path,
                llvm::ArrayRef<InputSpec> inputs, llvm::raw_ostream &notes,
                const ForwardSignatures &signatures)
      : context(context), root(root), path(path), inputs(inputs), notes(notes),
        signatures(signatures), b(context), table(b) {}

  llvm::Expected<ImportedModel> run();

private:
  llvm::Error error(const llvm::Twine &why) {
    return llvm::createStringError("cannot import '" + path + "': " + why);
  }
  llvm::Error matchInputs(const c10::FunctionSchema &schema);
  llvm::Expected<std::vector<c10::IValue>>
  makeArguments(const c10::FunctionSchema &schema, Block &entry);
  llvm::Error collectOutputs(const c10::IValue &value, const std::string &name);
  llvm::Error report(llvm::ArrayRef<ImportProblem> problems);

  MLIRContext *context;
  const jit::Module &root;
  StringRef path;
  llvm::ArrayRef<InputSpec> inputs;
  llvm::raw_ostream &notes;
  const ForwardSignatures &signatures;
  ImportBuilder b;
  TensorTable table;
  /// For each of forward's arguments after self, the input given for it.
  llvm::SmallVector<const InputSpec *> matched;
  llvm::SmallVector<Value> outputs;
  llvm::SmallVector<std::string> outputNames;
};
} // namespace

static std::string quotedList(llvm::ArrayRef<std::string> names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

llvm::Error ModelImporter::matchInputs(const c10::FunctionSchema &schema) {
  auto arguments = llvm::ArrayRef(schema.arguments()).drop_front();
  llvm::SmallVector<std::string> names, missing;
  for (const c10::Argument &argument : arguments)
    names.push_back(argument.name());
  matched.assign(arguments.size(), nullptr);

  llvm::SmallVector<const InputSpec *> surplus;
  llvm::StringSet<> seen;
  for (const InputSpec &input : inputs) {
    if (!seen.insert(input.name).second)
      return error("input '" + input.name + "' is given twice");
    auto *it = llvm::find(names, input.name);
    if (it == names.end())
      surplus.push_back(&input);
    else
      matched[it - names.begin()] = &input;
  }
  if (!inputs.empty() && surplus.size() == inputs.size()) {
    if (inputs.size() > arguments.size())
      return error(llvm::Twine(inputs.size()) + " inputs are given, but " +
                   "forward takes " + llvm::Twine(arguments.size()) + ": " +
                   quotedList(names));
    notes << "note: no input has a name of forward's arguments (" +
                 quotedList(names) + "); they are taken by position\n";
    for (auto [i, input] : llvm::enumerate(inputs))
      matched[i] = &input;
  } else if (!surplus.empty()) {
    const InputSpec &input = *surplus.front();
    llvm::SmallVector<std::string> open;
    for (auto [name, match] : llvm::zip_equal(names, matched))
      if (!match)
        open.push_back(name);
    StringRef nearest;
    unsigned best = ~0u;
    for (const std::string &name : open)
      if (unsigned distance = StringRef(input.name).edit_distance(name);
          distance < best)
        best = distance, nearest = name;
    std::string hint;
    if (best <= std::max<size_t>(2, input.name.size() / 2))
      hint = ("; did you mean '" + nearest + "'?").str();
    return error("forward has no argument '" + input.name +
                 "', its arguments are " + quotedList(names) + hint);
  }
  for (auto [argument, match] : llvm::zip_equal(arguments, matched))
    if (!match && !argument.default_value())
      missing.push_back(argument.name());
  if (!missing.empty())
    return error("no shape is given for forward's " + quotedList(missing) +
                 ", add --input " + missing.front() +
                 "=<shape>x<type>, as in " + missing.front() + "=2x64xi64");
  return llvm::Error::success();
}

/// The function's arguments and the meta tensors that stand for them.
llvm::Expected<std::vector<c10::IValue>>
ModelImporter::makeArguments(const c10::FunctionSchema &schema, Block &entry) {
  std::vector<c10::IValue> arguments;
  for (auto [i, input] : llvm::enumerate(matched)) {
    const c10::Argument &argument = schema.arguments()[i + 1];
    if (!input) {
      arguments.push_back(*argument.default_value());
      continue;
    }
    c10::TypePtr type = argument.type();
    if (auto optional = type->cast<c10::OptionalType>())
      type = optional->getElementType();
    if (type->kind() != c10::TypeKind::TensorType)
      return error("forward's '" + argument.name() + "' is of type " +
                   argument.type()->annotation_str() +
                   ", expected a tensor as an input");
    std::vector<int64_t> shape(input->type.getShape());
    at::Tensor meta = at::empty(
        shape, at::TensorOptions(toScalarType(input->type.getElementType()))
                   .device(at::kMeta));
    table.track(meta, entry.addArgument(input->type, b.getLoc()));
    arguments.push_back(meta);
  }
  return arguments;
}

/// Names as users see them: the keys of a dictionary, output0, output1, … of
/// a tuple or list, output alone.
llvm::Error ModelImporter::collectOutputs(const c10::IValue &value,
                                          const std::string &name) {
  bool isRoot = name.empty();
  std::string prefix = isRoot ? "output" : name;
  if (value.isTensor() && value.toTensor().defined()) {
    at::Tensor tensor = value.toTensor();
    if (!convertType(context, tensor.scalar_type()))
      return error("output '" + prefix + "' has element type " +
                   c10::toString(tensor.scalar_type()) +
                   ", expected f32, f64, f16, bf16, i64, i32, i16, i8, ui8 or "
                   "bool");
    Value output =
        tensor.is_meta() ? table.valueOf(tensor) : table.materialise(tensor);
    if (!output)
      return error("internal error: output '" + prefix + "' has no value");
    outputs.push_back(output);
    outputNames.push_back(prefix);
    return llvm::Error::success();
  }
  if (value.isNone() && !isRoot) {
    notes << "note: output '" << prefix << "' is None, so it is left out\n";
    return llvm::Error::success();
  }
  std::string separator = isRoot ? "" : ".";
  auto all = [&](const auto &elements) -> llvm::Error {
    for (auto [i, element] : llvm::enumerate(elements))
      if (llvm::Error e = collectOutputs(
              element, isRoot ? "output" + std::to_string(i)
                              : prefix + "." + std::to_string(i)))
        return e;
    return llvm::Error::success();
  };
  if (value.isTuple())
    return all(value.toTupleRef().elements());
  if (value.isList())
    return all(value.toListRef());
  if (value.isGenericDict() &&
      value.toGenericDict().keyType()->kind() == c10::TypeKind::StringType) {
    for (const auto &entry : value.toGenericDict()) {
      std::string key = entry.key().toStringRef();
      if (llvm::Error e =
              collectOutputs(entry.value(), isRoot ? key : prefix + "." + key))
        return e;
    }
    return llvm::Error::success();
  }
  return error("output '" + prefix + "' is of type " +
               value.type()->annotation_str() + ", expected a tensor");
}

/// One error text with all problems.
llvm::Error ModelImporter::report(llvm::ArrayRef<ImportProblem> problems) {
  auto describe = [](const ImportProblem &problem) {
    std::string text = problem.text + " (in ";
    text += problem.fqn.empty() ? "the root module" : "'" + problem.fqn + "'";
    if (!problem.location.empty())
      text += ", " + problem.location;
    return text + ")";
  };
  if (problems.size() == 1)
    return error(describe(problems.front()));
  std::string text = std::to_string(problems.size()) + " problems:";
  for (const ImportProblem &problem : problems)
    text += "\n  " + describe(problem);
  return error(text);
}

/// Erases ops without uses, which shape arithmetic leaves behind.
static void eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        eraseDeadOps(inner);
    if (isOpTriviallyDead(&op))
      op.erase();
  }
}

llvm::Expected<ImportedModel> ModelImporter::run() {
  auto forward = root.find_method("forward");
  if (!forward)
    return error("the module has no method 'forward'");
  const c10::FunctionSchema &schema = forward->function().getSchema();
  if (llvm::Error e = matchInputs(schema))
    return e;

  at::NoGradGuard noGrad;
  context->loadDialect<nn::NNDialect, func::FuncDialect>();
  ImportedModel model;
  model.module = ModuleOp::create(b.getLoc());
  OwningOpRef<func::FuncOp> function =
      func::FuncOp::create(b.getLoc(), "main", b.getFunctionType({}, {}));
  Block *entry = function->addEntryBlock();
  b.setInsertionPointToEnd(entry);
  table.enterModule("");

  auto arguments = makeArguments(schema, *entry);
  if (!arguments)
    return arguments.takeError();
  TorchInterpreter interpreter(root, b, table, signatures);
  auto result = interpreter.run(std::move(*arguments));
  table.setGradEnabled(true);
  if (!interpreter.getProblems().empty()) {
    // Values of skipped ops are missing; drop references before the ops go.
    function->getBody().dropAllReferences();
    return report(interpreter.getProblems());
  }
  if (!result)
    return error("forward returns nothing");
  if (llvm::Error e = collectOutputs(*result, ""))
    return e;
  if (outputs.empty())
    return error("forward returns no tensor");
  func::ReturnOp::create(b, outputs);

  function->setType(b.getFunctionType(entry->getArgumentTypes(),
                                      ValueRange(outputs).getTypes()));
  unsigned index = 0;
  for (const InputSpec *input : matched)
    if (input)
      function->setArgAttr(index++, "tp.name", b.getStringAttr(input->name));
  for (auto [i, name] : llvm::enumerate(outputNames))
    function->setResultAttr(i, "tp.name", b.getStringAttr(name));
  eraseDeadOps(*entry);
  model.module->push_back(function.release());

  std::string diagnostics;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    diagnostics += "\n  " + diagnostic.str();
    return success();
  });
  if (failed(verify(*model.module)))
    return error("the imported IR is invalid:" + diagnostics);

  std::set<std::string> used;
  model.module->walk(
      [&](nn::ParameterOp op) { used.insert(op.getFqn().str()); });
  for (const std::string &fqn : used)
    model.weights.push_back(describeWeight(fqn, table.weights().at(fqn)));
  return model;
}

llvm::Expected<ImportedModel> mlir::tp::importTorchModule(
    MLIRContext *context, const jit::Module &root, llvm::StringRef path,
    llvm::ArrayRef<InputSpec> inputs, llvm::raw_ostream &notes,
    const ForwardSignatures &signatures) {
  return ModelImporter(context, root, path, inputs, notes, signatures).run();
}
