//===- ModelBuilder.cpp - the function of an imported model ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ModelBuilder.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tp/Dialect/TP/ConstantBuffers.h"
#include "tp/Dialect/TP/Fsdp.h"
#include "tp/Dialect/TP/TP.h"
#include "tp/Support/NearestName.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringSet.h"
#include <ATen/ops/empty.h>

using namespace mlir;
using namespace mlir::tp;

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

/// The context, with the dialects of imported models.
static MLIRContext *loadDialects(MLIRContext *context) {
  context->loadDialect<nn::NNDialect, func::FuncDialect>();
  return context;
}

ModelBuilder::ModelBuilder(MLIRContext *context, StringRef path,
                           llvm::raw_ostream &notes)
    : b(loadDialects(context)), table(b), ops(b, table), context(context),
      path(path), notes(notes) {
  module = ModuleOp::create(b.getLoc());
  function =
      func::FuncOp::create(b.getLoc(), "main", b.getFunctionType({}, {}));
  b.setInsertionPointToEnd(function->addEntryBlock());
  ops.enterModule("", &function->front());
}

static std::string quotedList(llvm::ArrayRef<std::string> names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

llvm::Expected<llvm::SmallVector<const InputSpec *>>
ModelBuilder::matchInputs(llvm::ArrayRef<ForwardArgument> arguments,
                          llvm::ArrayRef<InputSpec> inputs) {
  llvm::SmallVector<std::string> names, missing;
  for (const ForwardArgument &argument : arguments)
    names.push_back(argument.name);
  llvm::SmallVector<const InputSpec *> matched(arguments.size(), nullptr);

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
    note() << "no input has a name of forward's arguments (" +
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
    if (!match && !argument.isOptional)
      missing.push_back(argument.name);
  if (!missing.empty())
    return error("no shape is given for forward's " + quotedList(missing) +
                 ", add --input " + missing.front() +
                 "=SIZExSIZE...xTYPE, as in " + missing.front() + "=2x64xi64");
  return matched;
}

at::Tensor ModelBuilder::addInput(StringRef name, RankedTensorType type) {
  std::vector<int64_t> shape(type.getShape());
  at::Tensor meta = at::empty(
      shape,
      at::TensorOptions(toScalarType(type.getElementType())).device(at::kMeta));
  table.track(meta, function->front().addArgument(type, b.getLoc()));
  inputNames.push_back(name.str());
  inputs.push_back(meta);
  return meta;
}

/// Names as users see them: the keys of a dictionary, output0, output1, … of
/// a tuple or list, output alone.
llvm::Error ModelBuilder::collectOutputs(const c10::IValue &value,
                                         const std::string &name) {
  bool isRoot = name.empty();
  std::string prefix = isRoot ? "output" : name;
  if (value.isTensor() && value.toTensor().defined()) {
    at::Tensor tensor = value.toTensor();
    if (!convertType(context, tensor.scalar_type()))
      return error("output '" + prefix + "' has element type " +
                   c10::toString(tensor.scalar_type()) +
                   ", expected f32, f64, f16, bf16, i64, i32, i16, i8, ui8 or "
                   "i1");
    TrackedTensor *tracked = tensor.is_meta() ? table.find(tensor) : nullptr;
    if (tracked && !tracked->missing.empty())
      return error(tracked->missing);
    Value output =
        tensor.is_meta() ? table.valueOf(tensor) : table.materialize(tensor);
    if (!output)
      return error("internal error: output '" + prefix + "' has no value");
    outputs.push_back(output);
    outputNames.push_back(prefix);
    return llvm::Error::success();
  }
  if (value.isNone() && !isRoot) {
    note() << "output '" << prefix << "' is None, so it is left out\n";
    return llvm::Error::success();
  }
  if ((value.isScalar() || value.isString()) && !isRoot) {
    note() << "output '" << prefix << "' is the constant " << c10::str(value)
           << ", so it is left out\n";
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

void ModelBuilder::noteWrittenInput(StringRef name) {
  note() << "the model writes its input '" << name
         << "'; the imported function leaves the caller's tensor unchanged\n";
}

/// One error text with all problems.
llvm::Error ModelBuilder::report(llvm::ArrayRef<ImportProblem> problems) {
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

/// Erases ops and results of modules without uses, which shape arithmetic and
/// writes leave behind.
static void eraseDeadOps(Block &block, TensorTable &table) {
  for (Operation &each : llvm::make_early_inc_range(llvm::reverse(block))) {
    Operation *op = &each;
    if (auto module = dyn_cast<nn::ModuleOp>(op)) {
      module = table.dropUnused(module);
      eraseDeadOps(*module.getBodyBlock(), table);
      op = module;
    }
    if (isOpTriviallyDead(op))
      op->erase();
  }
}

/// The number that all elements of a constant are; nullopt if they differ.
static std::optional<double> getSplat(Operation *op) {
  auto constant = dyn_cast<nn::ConstantOp>(op);
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                           : DenseElementsAttr();
  if (!elements || !elements.isSplat())
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<FloatAttr>().getValueAsDouble();
  APInt number = elements.getSplatValue<APInt>();
  return number.getBitWidth() == 1 ? number.getZExtValue()
                                   : number.getSExtValue();
}

/// The program has a buffer that no state_dict has, and that it only reads, as
/// a constant. Makes parameters that keep their value of those which other
/// programs write, and lists the others on the module.
llvm::Error ModelBuilder::describeConstantBuffers() {
  llvm::MapVector<StringAttr, llvm::SmallVector<Operation *>> constants;
  llvm::StringSet<> assigned;
  function->walk([&](Operation *op) {
    if (auto name = dyn_cast_or_null<StringAttr>(op->removeAttr(kNameAttr)))
      constants[name].push_back(op);
    if (auto assign = dyn_cast<nn::AssignOp>(op))
      assigned.insert(assign.getFqn());
  });
  for (const std::string &state : states) {
    StringAttr fqn = b.getStringAttr(state);
    llvm::SmallVector<Operation *> ops = constants.lookup(fqn);
    if (ops.empty() && !assigned.contains(state)) {
      auto known = llvm::map_to_vector(
          constants, [](auto &entry) { return entry.first.getValue(); });
      return error("the program reads no buffer '" + state +
                   "' that isn't in the model's state_dict" +
                   suggestNearest(state, known));
    }
    if (ops.empty())
      continue;
    std::optional<double> init = getSplat(ops.front());
    if (!init)
      return error("the elements of buffer '" + state +
                   "' aren't all equal at first, which they must be for state "
                   "that the model's state_dict doesn't have");
    Location loc = ops.front()->getLoc();
    Type type = ops.front()->getResult(0).getType();
    auto build = [&](OpBuilder builder) {
      auto parameter =
          nn::ParameterOp::create(builder, loc, type, fqn, /*frozen=*/true);
      parameter->setAttr(kBufferAttr, builder.getUnitAttr());
      return parameter;
    };
    for (Operation *op : ops) {
      op->replaceAllUsesWith(build(OpBuilder(op)));
      op->erase();
    }
    OpBuilder atStart = OpBuilder::atBlockBegin(&function->front());
    nn::ParameterOp kept = build(atStart);
    atStart.setInsertionPointAfter(kept);
    nn::AssignOp::create(atStart, loc, fqn, kept,
                         atStart.getF64FloatAttr(*init));
    constants.erase(fqn);
  }
  if (!constants.empty())
    module.get()->setAttr(kConstantsAttr, b.getStrArrayAttr(llvm::map_to_vector(
                                              constants, [](auto &entry) {
                                                return entry.first.getValue();
                                              })));
  return llvm::Error::success();
}

llvm::Expected<ImportedModel>
ModelBuilder::finish(const std::optional<c10::IValue> &result) {
  table.setGradEnabled(true);
  if (!ops.getProblems().empty()) {
    // Values of skipped ops are missing; drop references before the ops go.
    function->getBody().dropAllReferences();
    return report(ops.getProblems());
  }
  if (!result)
    return error("forward returns nothing");
  if (llvm::Error e = collectOutputs(*result, ""))
    return e;
  if (outputs.empty())
    return error("forward returns no tensor");
  for (auto [name, input] : llvm::zip_equal(inputNames, inputs))
    if (table.isWritten(input))
      noteWrittenInput(name);
  func::ReturnOp::create(b, outputs);
  table.buildAssignments();

  Block &entry = function->front();
  function->setType(b.getFunctionType(entry.getArgumentTypes(),
                                      ValueRange(outputs).getTypes()));
  for (auto [i, name] : llvm::enumerate(inputNames))
    function->setArgAttr(i, "tp.name", b.getStringAttr(name));
  for (auto [i, name] : llvm::enumerate(outputNames))
    function->setResultAttr(i, "tp.name", b.getStringAttr(name));
  eraseDeadOps(entry, table);
  if (llvm::Error e = describeConstantBuffers())
    return e;
  table.completeAssignments(*function);
  ImportedModel model;
  model.module = std::move(module);
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
  model.module->walk([&](nn::AssignOp op) {
    if (op.getInit()) // says the value
      used.erase(op.getFqn().str());
  });
  for (const std::string &fqn : used)
    model.weights.push_back(describeWeight(fqn, table.weights().at(fqn)));
  return model;
}
