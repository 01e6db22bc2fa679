//===- TorchInterpreter.cpp - control flow, modules and containers --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of TorchScript's semantics that isn't in its ops: values,
// attributes, calls, branches, loops and containers. TorchOps.cpp has the ops.
//
//===----------------------------------------------------------------------===//

#include "TorchInterpreter.h"
#include "TorchArchive.h"
#include "tp/Dialect/NN/Traced.h"
#include <torch/csrc/jit/ir/constants.h>

using namespace mlir;
using namespace mlir::tp;
namespace jit = torch::jit;
namespace prim = c10::prim;
namespace attr = c10::attr;

/// A model whose loops run longer isn't treated as straight-line code.
static constexpr int64_t kMaxTripCount = 100000;
static constexpr unsigned kMaxDepth = 500;
/// The limit for all steps together, including nested loops and calls.
static constexpr int64_t kMaxSteps = 5'000'000;
/// Lists and strings of more elements than a model's shapes and texts have are
/// counted; kMaxElements limits their total.
static constexpr int64_t kLargeContainer = 1024;
static constexpr int64_t kMaxElements = int64_t(1) << 26;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

TorchInterpreter::DataKey TorchInterpreter::keyOf(const at::Tensor &tensor) {
  return {tensor.const_data_ptr(), tensor.sizes().vec(), tensor.strides().vec(),
          tensor.scalar_type()};
}

TorchInterpreter::TorchInterpreter(const jit::Module &root, ImportBuilder &b,
                                   TensorTable &table,
                                   const ForwardSignatures &signatures)
    : root(root), b(b), table(table), signatures(signatures),
      handlers(makeAtenTable()) {
  nameModules(root._ivalue(), "");
}

/// Names tensors in the order of PyTorch's state_dict: a module's parameters,
/// its buffers, then those of its children. A shared one keeps its first name.
void TorchInterpreter::nameModules(const Object &module,
                                   const std::string &fqn) {
  if (!moduleNames.try_emplace(module.get(), fqn).second)
    return;
  auto type = module->type();
  auto qualified = [&](size_t slot) {
    const std::string &name = type->getAttributeName(slot);
    return fqn.empty() ? name : fqn + "." + name;
  };
  auto rankOf = [&](size_t slot) {
    return type->is_parameter(slot) ? 0 : type->is_buffer(slot) ? 1 : 2;
  };
  for (int rank : {0, 1, 2})
    for (size_t slot = 0; slot < type->numAttributes(); ++slot) {
      const c10::IValue &value = module->getSlot(slot);
      if (rankOf(slot) != rank || !value.isTensor() ||
          !value.toTensor().defined())
        continue;
      at::Tensor tensor = value.toTensor();
      table.reserveName(qualified(slot));
      if (tensor.numel() > 0)
        parameterNames.try_emplace(
            keyOf(tensor), ParameterName{qualified(slot), tensor, rank != 0});
    }
  for (size_t slot = 0; slot < type->numAttributes(); ++slot) {
    const c10::IValue &value = module->getSlot(slot);
    if (value.isModule())
      nameModules(value.toObject(), qualified(slot));
  }
}

std::string mlir::tp::describeLocation(jit::Node &node) {
  jit::SourceRange range = node.sourceRange();
  if (!range.source())
    return "";
  if (auto original = range.source()->findSourceRangeThatGenerated(range))
    range = *original;
  auto place = range.file_line_col();
  if (!place)
    return "";
  auto [file, line, column] = *place;
  return file.empty() ? "" : file + ":" + std::to_string(line);
}

Location TorchInterpreter::locationOf(jit::Node &node) {
  MLIRContext *context = b.getContext();
  std::string text = describeLocation(node);
  auto [file, line] = StringRef(text).rsplit(':');
  unsigned number = 0;
  Location place = UnknownLoc::get(context);
  if (!line.getAsInteger(10, number))
    place = FileLineColLoc::get(context, file, number, 0);
  return NameLoc::get(StringAttr::get(context, currentFqn()), place);
}

void TorchInterpreter::problem(ImportProblem::Kind kind, jit::Node &node,
                               const llvm::Twine &text) {
  ImportProblem problem{kind, text.str(), currentFqn(), describeLocation(node)};
  if (!llvm::is_contained(problems, problem))
    problems.push_back(std::move(problem));
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

std::optional<c10::IValue>
TorchInterpreter::run(std::vector<c10::IValue> arguments) {
  fqns.push_back("");
  Result result =
      callModule(root._ivalue(), root.get_method("forward").function(),
                 std::move(arguments));
  for (auto &[fqn, signature] : signatures)
    if (result && numCalls[fqn] != signature.calls.size())
      problem(ImportProblem::Failed,
              *root.get_method("forward").graph()->return_node(),
              "the signatures are of another trace: calls of '" + fqn +
                  "' are " + llvm::Twine(signature.calls.size()) +
                  " there, and " + llvm::Twine(numCalls[fqn]) +
                  " in the model");
  return result;
}

TorchInterpreter::Result
TorchInterpreter::runGraph(jit::Graph &graph,
                           std::vector<c10::IValue> arguments,
                           const c10::ivalue::Object *self) {
  Frame frame;
  frame.self = self;
  for (auto [value, argument] : llvm::zip(graph.inputs(), arguments))
    frame.values[value] = std::move(argument);
  if (++depth > kMaxDepth) {
    problem(ImportProblem::Failed, *graph.return_node(),
            "calls nest deeper than " + llvm::Twine(kMaxDepth));
    return std::nullopt;
  }
  bool done = runBlock(*graph.block(), frame);
  --depth;
  if (!done)
    return std::nullopt;
  auto it = frame.values.find(graph.outputs()[0]);
  if (it == frame.values.end())
    return std::nullopt;
  return it->second;
}

bool TorchInterpreter::runBlock(jit::Block &block, Frame &frame) {
  for (jit::Node *node : block.nodes())
    if (!runNode(*node, frame))
      return false;
  return true;
}

bool TorchInterpreter::runNode(jit::Node &node, Frame &frame) {
  if (++numSteps > kMaxSteps) {
    problem(ImportProblem::Failed, node,
            "the model takes more than " + llvm::Twine(kMaxSteps) + " steps");
    return false;
  }
  if (!hasRoom(node, 0))
    return false;
  if (node.kind() == prim::Constant) {
    if (node.output()->type()->kind() == c10::TypeKind::FunctionType)
      return true;
    if (auto value = jit::toIValue(node.output()))
      frame.values[node.output()] = *value;
    return true;
  }
  if (node.kind() == prim::If)
    return runIf(node, frame);
  if (node.kind() == prim::Loop)
    return runLoop(node, frame);

  std::vector<c10::IValue> inputs;
  bool unknown = false;
  for (jit::Value *input : node.inputs()) {
    if (input->type()->kind() == c10::TypeKind::FunctionType)
      continue;
    auto it = frame.values.find(input);
    if (it == frame.values.end())
      unknown = true;
    else
      inputs.push_back(it->second);
  }
  if (unknown) {
    // The unknown input was reported before, but an unsupported op is a problem
    // of its own.
    if (node.kind().is_aten() && node.maybeSchema())
      for (const c10::Argument &result : node.schema().returns())
        if (result.type()->kind() == c10::TypeKind::TensorType)
          emit(node, {}, {});
    return true;
  }
  bool handled = false;
  bool goOn = runStructural(node, frame, inputs, handled);
  if (!handled)
    runOp(node, frame, std::move(inputs));
  return goOn;
}

bool TorchInterpreter::runIf(jit::Node &node, Frame &frame) {
  auto it = frame.values.find(node.input());
  if (it == frame.values.end())
    return true;
  jit::Block *block = node.blocks()[it->second.toBool() ? 0 : 1];
  if (!runBlock(*block, frame))
    return false;
  for (auto [output, result] : llvm::zip(node.outputs(), block->outputs())) {
    auto found = frame.values.find(result);
    if (found != frame.values.end())
      frame.values[output] = found->second;
  }
  return true;
}

bool TorchInterpreter::runLoop(jit::Node &node, Frame &frame) {
  auto count = frame.values.find(node.inputs()[0]);
  auto condition = frame.values.find(node.inputs()[1]);
  if (count == frame.values.end() || condition == frame.values.end())
    return true;
  jit::Block &body = *node.blocks()[0];
  int64_t trips = count->second.toInt();
  bool goOn = condition->second.toBool();

  auto carry = [&](at::ArrayRef<jit::Value *> from,
                   at::ArrayRef<jit::Value *> to) {
    std::vector<std::optional<c10::IValue>> values;
    for (jit::Value *value : from) {
      auto it = frame.values.find(value);
      values.push_back(it == frame.values.end()
                           ? std::nullopt
                           : std::optional<c10::IValue>(it->second));
    }
    for (auto [value, target] : llvm::zip(values, to)) {
      if (value)
        frame.values[target] = *value;
      else
        frame.values.erase(target);
    }
  };
  carry(node.inputs().slice(2), body.inputs().slice(1));
  int64_t i = 0;
  for (; i < trips && goOn; ++i) {
    if (i == kMaxTripCount) {
      problem(ImportProblem::Failed, node,
              "a loop takes more than " + llvm::Twine(kMaxTripCount) +
                  " steps");
      return false;
    }
    frame.values[body.inputs()[0]] = i;
    if (!runBlock(body, frame))
      return false;
    auto next = frame.values.find(body.outputs()[0]);
    if (next == frame.values.end())
      return true;
    goOn = next->second.toBool();
    carry(body.outputs().slice(1), body.inputs().slice(1));
  }
  carry(body.inputs().slice(1), node.outputs());
  return true;
}

//===----------------------------------------------------------------------===//
// Containers, attributes, calls
//===----------------------------------------------------------------------===//

/// Reports a problem if `count` more elements of lists and strings are too
/// many.
bool TorchInterpreter::hasRoom(jit::Node &node, double count) {
  if (numElements + count <= kMaxElements)
    return true;
  problem(ImportProblem::Failed, node,
          "the lists and strings of the model have more than " +
              llvm::Twine(kMaxElements) + " elements");
  return false;
}

static int64_t countElements(const c10::IValue &value) {
  if (value.isList())
    return value.toListRef().size();
  if (value.isString())
    return value.toStringRef().size();
  return 0;
}

void TorchInterpreter::setOutputs(jit::Node &node, Frame &frame,
                                  llvm::ArrayRef<c10::IValue> outputs) {
  auto isNew = [&](const c10::IValue &value) { // append returns its own list
    return llvm::none_of(node.inputs(), [&](jit::Value *input) {
      auto it = frame.values.find(input);
      return it != frame.values.end() && it->second.is(value);
    });
  };
  for (const c10::IValue &value : outputs)
    if (int64_t count = countElements(value);
        count > kLargeContainer && isNew(value))
      numElements += count;
  for (auto [output, value] : llvm::zip(node.outputs(), outputs))
    frame.values[output] = value;
}

bool TorchInterpreter::runStructural(jit::Node &node, Frame &frame,
                                     std::vector<c10::IValue> &inputs,
                                     bool &handled) {
  handled = true;
  auto set = [&](c10::IValue value) {
    frame.values[node.output()] = std::move(value);
    return true;
  };
  switch (node.kind()) {
  case prim::GetAttr:
    getAttribute(node, frame, inputs[0]);
    return true;
  case prim::SetAttr:
    setAttribute(node, inputs[0].toObject(), inputs[1]);
    return true;
  case prim::CallMethod:
    callMethod(node, frame, std::move(inputs));
    return true;
  case prim::CallFunction:
    callFunction(node, frame, std::move(inputs));
    return true;
  case prim::CreateObject: {
    auto type = node.output()->type()->expect<c10::ClassType>();
    return set(c10::ivalue::Object::create(
        c10::StrongTypePtr(type->compilation_unit(), type),
        type->numAttributes()));
  }
  case prim::RaiseException:
    problem(ImportProblem::Failed, node,
            "the model raises: " + (inputs[0].isString()
                                        ? inputs[0].toStringRef()
                                        : std::string("an exception")));
    return false;
  case prim::Uninitialized:
    return set(c10::IValue());
  case prim::Print:
    return true;
  case prim::Enter:
    return callContext(node, frame, inputs[0], "__enter__");
  case prim::Exit:
    return callContext(node, frame, inputs[0], "__exit__");
  case prim::unchecked_cast:
  case prim::unchecked_unwrap_optional:
    return set(inputs[0]);
  case prim::isinstance: {
    bool matches = false;
    for (const c10::TypePtr &type : node.tys(attr::types))
      matches |= inputs[0].type()->isSubtypeOf(*type);
    return set(matches);
  }
  case prim::TupleConstruct: {
    auto type = node.output()->type()->expect<c10::TupleType>();
    if (type->name())
      return set(c10::ivalue::Tuple::createNamed(std::move(inputs), type));
    return set(c10::ivalue::Tuple::create(std::move(inputs)));
  }
  case prim::TupleUnpack:
    setOutputs(node, frame, inputs[0].toTuple()->elements().vec());
    return true;
  case prim::TupleIndex: {
    const auto &elements = inputs[0].toTupleRef().elements();
    int64_t i = inputs[1].toInt(), size = elements.size();
    if (i < -size || i >= size) {
      problem(ImportProblem::Failed, node,
              "index " + llvm::Twine(i) + " of a tuple of " +
                  llvm::Twine(size) + " elements");
      return false;
    }
    return set(elements[i < 0 ? i + size : i]);
  }
  case prim::TupleSlice: {
    const auto &elements = inputs[0].toTupleRef().elements();
    return set(c10::ivalue::Tuple::create(
        std::vector<c10::IValue>(elements.begin() + node.i(attr::beg),
                                 elements.begin() + node.i(attr::end))));
  }
  case prim::ListConstruct: {
    c10::impl::GenericList list(
        node.output()->type()->expectRef<c10::ListType>().getElementType());
    for (c10::IValue &input : inputs)
      list.push_back(std::move(input));
    return set(std::move(list));
  }
  case prim::ListUnpack: {
    auto elements = inputs[0].toListRef().vec();
    if (elements.size() != node.outputs().size()) {
      problem(ImportProblem::Failed, node,
              "a list of " + llvm::Twine(elements.size()) +
                  " elements is unpacked into " +
                  llvm::Twine(node.outputs().size()));
      return false;
    }
    setOutputs(node, frame, elements);
    return true;
  }
  case prim::DictConstruct: {
    const auto &type = node.output()->type()->expectRef<c10::DictType>();
    c10::impl::GenericDict dict(type.getKeyType(), type.getValueType());
    for (size_t i = 0; i + 1 < inputs.size(); i += 2)
      dict.insert_or_assign(inputs[i], inputs[i + 1]);
    return set(std::move(dict));
  }
  default:
    break;
  }
  StringRef name = node.kind().toQualString();
  if (name == "aten::warn")
    return true;
  if (name == "aten::is_grad_enabled")
    return set(table.isGradEnabled());
  if (name == "aten::set_grad_enabled") {
    table.setGradEnabled(inputs[0].toBool());
    return true;
  }
  handled = false;
  return true;
}

void TorchInterpreter::getAttribute(jit::Node &node, Frame &frame,
                                    const c10::IValue &object) {
  c10::IValue value = object.toObjectRef().getAttr(node.s(attr::name));
  if (object.isModule() && value.isTensor() && value.toTensor().defined()) {
    at::Tensor tensor = value.toTensor();
    if (!convertType(b.getContext(), tensor.scalar_type())) {
      problem(ImportProblem::UnsupportedOp, node,
              "element type " +
                  llvm::Twine(c10::toString(tensor.scalar_type())) + " of '" +
                  node.s(attr::name) + "'");
      return;
    }
    // A tensor without elements has no data that could identify it.
    auto it = parameterNames.find(keyOf(tensor));
    if (tensor.numel() > 0 && it != parameterNames.end())
      value =
          table.parameter(it->second.data, it->second.fqn, it->second.isBuffer);
  }
  frame.values[node.output()] = std::move(value);
}

void TorchInterpreter::setAttribute(jit::Node &node, const Object &object,
                                    const c10::IValue &value) {
  const std::string &name = node.s(attr::name);
  if (object->type()->is_module())
    problem(ImportProblem::UnsupportedOp, node,
            "the model writes its attribute '" + name +
                "', but keeps no state between calls");
  else
    object->setAttr(name, value);
}

void TorchInterpreter::callFunction(jit::Node &node, Frame &frame,
                                    std::vector<c10::IValue> inputs) {
  auto type = node.inputs()[0]->type()->expect<c10::FunctionType>();
  jit::GraphFunction *function = jit::tryToGraphFunction(*type->function());
  if (!function) {
    problem(ImportProblem::UnsupportedOp, node,
            "unsupported function '" + type->function()->name() + "'");
    return;
  }
  if (auto result = runGraph(*function->graph(), std::move(inputs), frame.self))
    frame.values[node.output()] = std::move(*result);
}

void TorchInterpreter::callMethod(jit::Node &node, Frame &frame,
                                  std::vector<c10::IValue> inputs) {
  Object object = inputs[0].toObject();
  jit::Function &method = object->type()->getMethod(node.s(attr::name));
  Result result;
  if (inputs[0].isModule() && object.get() != frame.self) {
    inputs.erase(inputs.begin());
    result = callModule(object, method, std::move(inputs));
  } else {
    const c10::ivalue::Object *self =
        inputs[0].isModule() ? object.get() : frame.self;
    result = runGraph(*jit::toGraphFunction(method).graph(), std::move(inputs),
                      self);
  }
  if (result)
    frame.values[node.output()] = std::move(*result);
}

/// Calls __enter__ or __exit__ for `with object:`. Exceptions aren't handled,
/// so __exit__ gets none.
bool TorchInterpreter::callContext(jit::Node &node, Frame &frame,
                                   const c10::IValue &object,
                                   const char *name) {
  jit::Function &method = object.toObject()->type()->getMethod(name);
  std::vector<c10::IValue> arguments(method.getSchema().arguments().size());
  arguments[0] = object;
  Result result = runGraph(*jit::toGraphFunction(method).graph(),
                           std::move(arguments), frame.self);
  if (!result)
    return false;
  frame.values[node.output()] = std::move(*result);
  return true;
}

static StringRef classNameOf(const c10::ivalue::Object &object) {
  return StringRef(object.type()->name()->name());
}

/// Whether `tensor` is a tied parameter of another module: tracing reaches it
/// through one of its owners, and passes it to the other as an argument that
/// the module's own forward doesn't have.
bool TorchInterpreter::isHoisted(const at::Tensor &tensor) {
  TrackedTensor *tracked = tensor.is_meta() ? table.find(tensor) : nullptr;
  if (!tracked || !tracked->isParameter())
    return false;
  StringRef name = tracked->fqn;
  size_t dot = name.rfind('.');
  return (dot == StringRef::npos ? "" : name.take_front(dot)) != currentFqn();
}

/// Whether a method's graph was traced: the source locations of its ops are
/// then Python call stacks instead of spans of a text. A graph without
/// locations may have been traced.
static bool isTraced(at::ArrayRef<jit::Node *> nodes) {
  for (jit::Node *node : nodes) {
    jit::SourceRange range = node->sourceRange();
    if (!range.source())
      continue;
    auto original = range.source()->findSourceRangeThatGenerated(range);
    if (!original || !original->source())
      continue;
    std::string text = original->source()->text_str().str();
    if (text.empty()) // a call in a trace
      continue;
    return StringRef(text).contains("): _slow_forward") ||
           StringRef(text).contains("): trace_module");
  }
  return true;
}

static bool isTraced(jit::Graph &graph) {
  std::vector<jit::Node *> nodes;
  std::vector<jit::Block *> blocks{graph.block()};
  while (!blocks.empty()) {
    jit::Block *block = blocks.back();
    blocks.pop_back();
    for (jit::Node *node : block->nodes()) {
      nodes.push_back(node);
      for (jit::Block *inner : node->blocks())
        blocks.push_back(inner);
    }
  }
  return isTraced(nodes);
}

/// Gives the inputs of a call the names and positions that they have in
/// forward, if the call was traced. `values` are the graph's values for the
/// arguments that aren't hoisted; positions in `inputs` are indices into them.
void TorchInterpreter::findForwardNames(jit::Graph &graph,
                                        llvm::ArrayRef<jit::Value *> values,
                                        const std::string &fqn,
                                        Inputs &inputs) {
  auto found = signatures.find(fqn);
  if (found == signatures.end()) {
    inputs.areTraced = inputs.names.size() > 1 && isTraced(graph);
    return;
  }
  const ForwardSignature &signature = found->second;
  unsigned call = numCalls[fqn]++;
  if (call >= signature.calls.size())
    return; // reported at the end
  llvm::ArrayRef<unsigned> arguments = signature.calls[call];
  // tp_trace.py makes a module begin with aliases of its arguments; an unused
  // argument has none.
  bool isOrdered = arguments.size() <= values.size() && isTraced(graph);
  for (jit::Value *value : values.take_front(arguments.size()))
    isOrdered &= llvm::all_of(value->uses(), [](const jit::Use &use) {
      return use.user->kind() == c10::Symbol::aten("alias");
    });
  if (!isOrdered)
    return problem(ImportProblem::Failed, *graph.return_node(),
                   "the signatures don't fit the model: it wasn't traced by "
                   "tp_trace.py, which keeps the order of a module's "
                   "arguments");
  for (auto [i, name, position] :
       llvm::enumerate(inputs.names, inputs.positions)) {
    size_t value = position;
    if (value >= arguments.size()) { // a value from outside of forward
      position = signature.arguments.size() + value - arguments.size();
      name = "captured." + name;
      continue;
    }
    position = arguments[value];
    name = signature.arguments[position];
    if (llvm::count(arguments, arguments[value]) > 1)
      name += "." + std::to_string(i);
  }
}

/// A module's tensors, including those in lists and dictionaries, enter an
/// nn.module as operands and leave it as results. Inside and outside, they are
/// different meta tensors that share a storage.
TorchInterpreter::Result
TorchInterpreter::callModule(const Object &module, jit::Function &method,
                             std::vector<c10::IValue> arguments) {
  auto name = moduleNames.find(module.get());
  const c10::FunctionSchema &schema = method.getSchema();
  llvm::SmallVector<Value> operands;
  Inputs entering;
  llvm::SmallVector<jit::Value *> values;
  jit::Graph &graph = *jit::toGraphFunction(method).graph();
  Region region;
  Block &body = region.emplaceBlock();
  llvm::SmallVector<std::pair<at::Tensor, Value>> constants;

  int64_t position = -1;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (argument.isTensor() && isHoisted(argument.toTensor()))
      continue;
    ++position;
    values.push_back(graph.inputs()[i + 1]);
    const std::string &argumentName = schema.arguments()[i + 1].name();
    size_t firstOperand = operands.size();
    auto enter = [&](const at::Tensor &tensor) {
      // A number stays a number, because shapes may be computed from it.
      if (!tensor.is_meta() && tensor.dim() == 0)
        return tensor;
      TrackedTensor *tracked = tensor.is_meta() ? table.find(tensor) : nullptr;
      if (tensor.is_meta() &&
          (!tracked || tracked->poisoned || table.isStale(tensor)))
        return tensor;
      if (!tensor.is_meta() &&
          !convertType(b.getContext(), tensor.scalar_type()))
        return tensor;
      Value value = tracked ? table.valueOf(tensor) : table.materialise(tensor);
      std::string operandName = argumentName;
      if (!argument.isTensor())
        operandName += "." + std::to_string(operands.size() - firstOperand);
      operands.push_back(value);
      entering.names.push_back(operandName);
      entering.positions.push_back(position);
      Value inner = body.addArgument(value.getType(), b.getLoc());
      if (!tracked) {
        constants.push_back({tensor, inner});
        return tensor;
      }
      at::Tensor alias = tensor.alias();
      table.track(alias, inner).isDetached = tracked->isDetached;
      return alias;
    };
    argument = mapTensors(argument, enter);
  }

  Location outer = b.getLoc();
  fqns.push_back(name == moduleNames.end() ? currentFqn() : name->second);
  findForwardNames(graph, values, currentFqn(), entering);
  table.enterModule(currentFqn());
  for (auto &[tensor, inner] : constants)
    table.setLocal(tensor, inner);
  OpBuilder::InsertPoint after = b.saveInsertionPoint();
  b.setInsertionPointToEnd(&body);

  arguments.insert(arguments.begin(), module);
  Result result = runGraph(graph, std::move(arguments), module.get());
  llvm::SmallVector<Value> yielded;
  llvm::SmallVector<at::Tensor> leaving;
  if (result) {
    // A constant that was overwritten with data leaves with its current value.
    bool stale = false;
    result = mapTensors(*result, [&](const at::Tensor &tensor) {
      at::Tensor now = table.current(tensor);
      stale |= !now.defined();
      return now.defined() ? now : tensor;
    });
    if (stale)
      problem(ImportProblem::UnsupportedOp, *graph.return_node(),
              "unsupported in-place write: the result is a tensor of which "
              "another view was written");
    forEachTensor(*result, [&](const at::Tensor &tensor) {
      if (!tensor.is_meta())
        return;
      if (Value value = table.valueOf(tensor)) {
        yielded.push_back(value);
        leaving.push_back(tensor);
      }
    });
  }
  nn::YieldOp::create(b, outer, yielded);
  table.leaveModule();
  std::string fqn = fqns.back();
  fqns.pop_back();
  b.restoreInsertionPoint(after);
  b.setLoc(outer);

  auto nameRefs = llvm::map_to_vector(
      entering.names, [](const std::string &name) { return StringRef(name); });
  auto op = nn::ModuleOp::create(b, outer, fqn, classNameOf(*module), operands,
                                 nameRefs, entering.positions,
                                 ValueRange(yielded).getTypes());
  if (entering.areTraced)
    op->setAttr(nn::kTracedAttr, b.getUnitAttr());
  op.getBody().takeBody(region);
  if (!result)
    return std::nullopt;
  unsigned next = 0;
  return mapTensors(*result, [&](const at::Tensor &tensor) {
    if (next == leaving.size() || !leaving[next].unsafeGetTensorImpl() ||
        leaving[next].unsafeGetTensorImpl() != tensor.unsafeGetTensorImpl())
      return tensor;
    at::Tensor alias = tensor.alias();
    bool isDetached = table.find(tensor)->isDetached;
    table.track(alias, op.getResult(next++)).isDetached = isDetached;
    return alias;
  });
}
