//===- TorchInterpreter.cpp - control flow, containers, functions ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of TorchScript's semantics that isn't in its ops: values,
// attributes, calls, branches, loops and containers. OpRunner has the ops,
// TorchModuleCalls.cpp the calls of modules.
//
//===----------------------------------------------------------------------===//

#include "TorchInterpreter.h"
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
/// counted.
static constexpr int64_t kLargeContainer = 1024;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

TorchInterpreter::TorchInterpreter(const jit::Module &root, ImportBuilder &b,
                                   TensorTable &table, OpRunner &ops,
                                   const ForwardSignatures &signatures)
    : root(root), b(b), table(table), ops(ops), signatures(signatures) {
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
            DataKey(tensor),
            ParameterName{qualified(slot), tensor, rank != 0, rank != 2});
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

static TorchOp describeOp(jit::Node &node) {
  TorchOp op;
  op.name = node.kind().toQualString();
  op.schema = node.maybeSchema();
  op.place = describeLocation(node);
  op.literals.resize(node.inputs().size());
  for (auto [i, input] : llvm::enumerate(node.inputs()))
    op.literals[i] = input->node()->kind() == prim::Constant;
  if (!node.maybeOperator())
    return op;
  op.isRandom = op.schema && node.isNondeterministic();
  op.execute = [&node](c10::Stack &stack) {
    size_t count = stack.size();
    jit::Operation operation = node.getOperation();
    if (const c10::FunctionSchema *schema = node.maybeSchema())
      if (schema->is_vararg())
        stack.emplace_back(int64_t(count));
    operation(stack);
  };
  return op;
}

void TorchInterpreter::problem(ImportProblem::Kind kind, jit::Node &node,
                               const llvm::Twine &text) {
  ops.problem(kind, describeLocation(node), text);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

std::optional<c10::IValue>
TorchInterpreter::run(std::vector<c10::IValue> arguments) {
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
  if (!ops.hasRoom(describeLocation(node), 0))
    return false;
  // Those of the last step of a loop.
  for (jit::Value *output : node.outputs())
    frame.values.erase(output);
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
          ops.check(describeOp(node));
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
      ops.countElements(count);
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

void TorchInterpreter::runOp(jit::Node &node, Frame &frame,
                             std::vector<c10::IValue> inputs) {
  if (auto outputs = ops.run(describeOp(node), std::move(inputs)))
    setOutputs(node, frame, *outputs);
}

/// The meta tensor of a parameter or buffer, or else the tensor itself.
at::Tensor TorchInterpreter::toParameter(const at::Tensor &tensor) {
  auto it = tensor.numel() > 0 ? parameterNames.find(DataKey(tensor))
                               : parameterNames.end();
  // A complex buffer is a constant of pairs of reals.
  if (it == parameterNames.end() || tensor.is_complex())
    return tensor;
  return table.parameter(it->second.data, it->second.fqn, it->second.isBuffer,
                         it->second.isSaved);
}

void TorchInterpreter::getAttribute(jit::Node &node, Frame &frame,
                                    const c10::IValue &object) {
  c10::IValue value = object.toObjectRef().getAttr(node.s(attr::name));
  if (object.isModule() && value.isTensor() && value.toTensor().defined()) {
    at::Tensor tensor = value.toTensor();
    bool isConstant = tensor.is_complex() && !tensor.requires_grad();
    if (!isConstant && !convertType(b.getContext(), tensor.scalar_type())) {
      problem(ImportProblem::UnsupportedOp, node,
              "element type " +
                  llvm::Twine(c10::toString(tensor.scalar_type())) + " of '" +
                  node.s(attr::name) + "'");
      return;
    }
    value = toParameter(tensor);
  } else if (object.isModule() && value.isTensorList()) {
    // The weights of a recurrent layer are a list.
    c10::List<at::Tensor> list;
    bool isOfParameters = true;
    for (const at::Tensor &tensor : value.toTensorVector()) {
      list.push_back(toParameter(tensor));
      isOfParameters &= list.get(list.size() - 1).is_meta();
    }
    if (isOfParameters)
      value = std::move(list);
  }
  frame.values[node.output()] = std::move(value);
}

void TorchInterpreter::setAttribute(jit::Node &node, const Object &object,
                                    const c10::IValue &value) {
  const std::string &name = node.s(attr::name);
  if (object->type()->is_module())
    problem(ImportProblem::UnsupportedOp, node,
            "the model assigns a new value to its attribute '" + name +
                "'; keep it in a buffer, and write that in place, as in self." +
                name + ".copy_(x)");
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
