//===- TorchModuleCalls.cpp - calls of modules as nn.module ops -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchInterpreter.h"
#include "tp/Dialect/NN/Traced.h"

using namespace mlir;
using namespace mlir::tp;
namespace jit = torch::jit;

static StringRef classNameOf(const c10::ivalue::Object &object) {
  return StringRef(object.type()->name()->name());
}

/// Whether `tensor` is a tied parameter of another module: tracing reaches it
/// through one of its owners, and passes it to the other as an argument that
/// the module's own forward doesn't have. A parameter of the calling module may
/// be either, unless the module has a signature: then the caller passes aliases
/// of its arguments.
bool TorchInterpreter::isHoisted(const at::Tensor &tensor, bool hasSignature) {
  TrackedTensor *tracked = tensor.is_meta() ? table.find(tensor) : nullptr;
  if (!tracked || !tracked->isParameter())
    return false;
  if (hasSignature)
    return true;
  StringRef name = tracked->fqn;
  size_t dot = name.rfind('.');
  return (dot == StringRef::npos ? "" : name.take_front(dot)) !=
         ops.currentFqn();
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

  bool hasSignature =
      name != moduleNames.end() && signatures.count(name->second);
  int64_t position = -1;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (argument.isTensor() && isHoisted(argument.toTensor(), hasSignature))
      continue;
    ++position;
    values.push_back(graph.inputs()[i + 1]);
    const std::string &argumentName = schema.arguments()[i + 1].name();
    size_t firstOperand = operands.size();
    auto enter = [&](const at::Tensor &given) {
      std::string why;
      at::Tensor tensor = table.current(given, why);
      if (!tensor.defined())
        return given; // what reads it reports it
      // A number stays a number, because shapes may be computed from it.
      if (!tensor.is_meta() && tensor.dim() == 0)
        return tensor;
      TrackedTensor *tracked = tensor.is_meta() ? table.find(tensor) : nullptr;
      if (tensor.is_meta() && (!tracked || tracked->poisoned))
        return tensor;
      if (!tensor.is_meta() &&
          !convertType(b.getContext(), tensor.scalar_type()))
        return tensor;
      Value value = tracked ? table.valueOf(tensor) : table.materialize(tensor);
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
      return table.makeAlias(tensor, inner);
    };
    argument = mapTensors(argument, enter);
  }

  Location outer = b.getLoc();
  std::string fqn = name == moduleNames.end() ? ops.currentFqn() : name->second;
  ops.enterModule(fqn, &body);
  findForwardNames(graph, values, fqn, entering);
  for (auto &[tensor, inner] : constants)
    table.setLocal(tensor, inner);
  OpBuilder::InsertPoint after = b.saveInsertionPoint();
  b.setInsertionPointToEnd(&body);

  arguments.insert(arguments.begin(), module);
  Result result = runGraph(graph, std::move(arguments), module.get());
  llvm::SmallVector<Value> yielded;
  llvm::SmallVector<at::Tensor> leaving;
  if (result) {
    std::string why;
    result = mapTensors(*result, [&](const at::Tensor &tensor) {
      at::Tensor now = table.current(tensor, why);
      return now.defined() ? now : tensor;
    });
    if (!why.empty())
      problem(ImportProblem::UnsupportedOp, *graph.return_node(),
              "the module returns a view that was written through another "
              "tensor, and the importer can't update it: " +
                  why);
    forEachTensor(*result, [&](const at::Tensor &tensor) {
      if (!tensor.is_meta())
        return;
      if (Value value = table.valueOf(tensor)) {
        yielded.push_back(value);
        leaving.push_back(tensor);
      }
    });
  }
  unsigned numResults = yielded.size();
  table.appendStorages(leaving, yielded);
  nn::YieldOp::create(b, outer, yielded);
  ops.leaveModule();
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
  table.close(op, numResults);
  if (!result)
    return std::nullopt;
  unsigned next = 0;
  return mapTensors(*result, [&](const at::Tensor &tensor) {
    if (next == leaving.size() || !leaving[next].unsafeGetTensorImpl() ||
        leaving[next].unsafeGetTensorImpl() != tensor.unsafeGetTensorImpl())
      return tensor;
    return table.makeAlias(tensor, op.getResult(next++));
  });
}
