//===- ExportRunner.cpp - run an exported program -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExportRunner.h"
#include "ExportOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::tp;

/// Where values are defined that no op defines.
static constexpr size_t kBefore = std::numeric_limits<size_t>::max();

template <typename F>
static void forEachRead(const ExportStep &step, F f) {
  for (const ExportArgument &argument : step.arguments)
    for (const ExportOperand &operand : argument.operands)
      if (operand.value)
        f(*operand.value);
}

ExportRunner::ExportRunner(const ExportedProgram &program,
                           ModelBuilder &builder,
                           const ForwardSignatures &signatures)
    : program(program), b(builder.b), table(builder.table), ops(builder.ops),
      vmap(builder.ops), signatures(signatures), values(program.values.size()),
      definitions(program.values.size(), kBefore),
      lastReads(program.values.size()) {
  for (auto [i, value] : llvm::enumerate(program.values))
    if (value.constant)
      values[i] = value.constant;
  for (auto [i, step] : llvm::enumerate(program.steps)) {
    forEachRead(step, [&, i = i](ValueId id) { lastReads[id] = i; });
    for (auto &ids : step.results)
      for (ValueId id : ids)
        definitions[id] = i;
  }
  for (const ExportOperand &output : program.outputs)
    if (output.value)
      lastReads[*output.value] = program.steps.size();
  for (const auto &[buffer, next] : program.bufferMutations)
    nextValues[next].push_back(buffer);
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

void ExportRunner::bindParameter(const ExportInput &input, ValueId value,
                                 const at::Tensor &data) {
  at::Tensor meta = table.parameter(
      data, input.name, /*isBuffer=*/input.kind != ExportInput::Parameter,
      input.isSaved || data.is_meta());
  bind(value, meta);
  parameters[value] = meta;
}

/// Assigns the buffers whose next value is `id`, unless that is the result of a
/// write in place.
void ExportRunner::assignBuffers(ValueId id, llvm::StringRef place) {
  auto it = nextValues.find(id);
  if (it == nextValues.end() || !isTensor(id))
    return;
  at::Tensor next = values[id]->toTensor();
  for (ValueId buffer : it->second) {
    auto found = parameters.find(buffer);
    if (found == parameters.end() ||
        (next.is_meta() && next.is_alias_of(found->second)))
      continue;
    TrackedTensor *tracked = next.is_meta() ? table.find(next) : nullptr;
    if (tracked && !tracked->missing.empty())
      ops.problem(ImportProblem::UnsupportedOp, place, tracked->missing);
    Value value =
        next.is_meta() ? table.valueOf(next) : table.materialize(next);
    if (value) // else reported
      table.assign(found->second, value);
  }
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The argument's value; none if it is unknown.
std::optional<c10::IValue>
ExportRunner::evaluate(const ExportArgument &argument) {
  std::vector<c10::IValue> elements;
  for (const ExportOperand &operand : argument.operands) {
    if (operand.value && !values[*operand.value])
      return std::nullopt;
    elements.push_back(operand.value ? *values[*operand.value]
                                     : operand.constant);
  }
  if (!argument.elementType)
    return elements.front();
  c10::impl::GenericList list(argument.elementType);
  for (c10::IValue &element : elements)
    list.push_back(std::move(element));
  return list;
}

/// Whether a tensor has the element type and the sizes that the program states
/// for it, without those sizes that depend on its inputs. If not, the importer
/// has run another op than PyTorch.
bool ExportRunner::checkResult(const ExportStep &step, ValueId id,
                               const c10::IValue &value) {
  const auto &expected = program.values[id].tensor;
  // Results that aren't used may depend on PyTorch's version and on the device.
  if (!expected || lastReads[id] == 0 || !value.isTensor() ||
      !value.toTensor().defined())
    return true;
  at::Tensor tensor = value.toTensor();
  at::IntArrayRef sizes = tensor.sizes().slice(
      std::min<size_t>(vmap.countLevels(id), tensor.dim()));
  bool fits = tensor.scalar_type() == expected->type &&
              sizes.size() == expected->shape.size();
  std::vector<std::string> wanted;
  for (auto [i, size] : llvm::enumerate(expected->shape)) {
    bool isStatic = size.expression.empty();
    wanted.push_back(isStatic ? std::to_string(*size.value) : "?");
    fits = fits && (!isStatic || sizes[i] == *size.value);
  }
  if (!fits)
    ops.problem(ImportProblem::Failed, step.place,
                "the program says that the result '" + program.values[id].name +
                    "' of '" + step.target + "' is " +
                    c10::toString(expected->type) + " of sizes [" +
                    llvm::join(wanted, ", ") + "], but PyTorch computes " +
                    c10::toString(tensor.scalar_type()) + " of " +
                    c10::str(sizes) + "; export the model again");
  return fits;
}

void ExportRunner::runStep(const ExportStep &step) {
  if (!step.problem.empty())
    return ops.problem(ImportProblem::UnsupportedOp, step.place, step.problem);
  if (isAssertion(step))
    return;
  std::vector<c10::IValue> inputs;
  bool isUnknown = false;
  for (const ExportArgument &argument : step.arguments) {
    if (!argument.unknownKind.empty())
      return ops.problem(ImportProblem::UnsupportedOp, step.place,
                         "unsupported op '" + step.target +
                             "' with an argument of kind '" +
                             argument.unknownKind + "'");
    auto value = evaluate(argument);
    isUnknown |= !value;
    inputs.push_back(value.value_or(c10::IValue()));
  }
  bool isMapped = vmap.concerns(step);
  if (isUnknown) {
    // The unknown input was reported before, but an unsupported op is a problem
    // of its own.
    return isMapped ? void() : ops.check(nameOp(step));
  }
  OpRunner::Results results;
  if (isMapped) {
    results = vmap.run(step, std::move(inputs));
  } else {
    TorchOp op = findOp(step, inputs);
    results = ops.run(op, std::move(inputs));
  }
  if (!results)
    return;
  auto define = [&](ValueId id, const c10::IValue &value) {
    if (checkResult(step, id, value))
      values[id] = value;
  };
  for (auto [ids, result] : llvm::zip(step.results, *results)) {
    if (!result.isList())
      for (ValueId id : ids)
        define(id, result);
    else
      for (auto [id, element] : llvm::zip(ids, result.toListRef()))
        define(id, element);
    for (ValueId id : ids)
      assignBuffers(id, step.place);
  }
}

/// Whether PyTorch marks the step as one of the module at `depth`.
static bool hasModule(const ExportStep &step, unsigned depth) {
  return step.modules && step.modules->size() > depth;
}

/// The end of the ops of one call. Ops whose modules aren't known belong to the
/// call that they are in the middle of.
size_t ExportRunner::findEnd(Range range, unsigned depth) {
  const ExportFrame &frame = (*program.steps[range.begin].modules)[depth];
  size_t end = range.begin + 1;
  for (size_t i = end; i < range.end; ++i) {
    const ExportStep &step = program.steps[i];
    if (hasModule(step, depth) && (*step.modules)[depth] == frame)
      end = i + 1;
    else if (step.modules)
      break;
  }
  return end;
}

void ExportRunner::runSteps(Range range, unsigned depth) {
  for (size_t i = range.begin; i < range.end;) {
    table.setGradEnabled(program.steps[i].isGradEnabled);
    if (!hasModule(program.steps[i], depth)) {
      runStep(program.steps[i++]);
      continue;
    }
    Range inner{i, findEnd({i, range.end}, depth)};
    Call call = describeCall(inner, depth);
    callModule(call, inner, [&] {
      runSteps({inner.begin + call.numAliases, inner.end}, depth + 1);
    });
    i = inner.end;
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The next outputs of the program in the structure that it returns.
std::optional<c10::IValue> ExportRunner::collect(const ExportTree &tree,
                                                 size_t &next) {
  if (!tree.unknownType.empty())
    throw ExportError("the program returns a '" +
                      llvm::Twine(tree.unknownType) +
                      "', expected tensors in tuples, lists and dictionaries");
  if (tree.kind == ExportTree::Leaf) {
    if (next == program.outputs.size())
      throw ExportError("the program returns " +
                        llvm::Twine(program.outputs.size()) +
                        " values, fewer than its structure has");
    const ExportOperand &output = program.outputs[next++];
    if (!output.value)
      return output.constant;
    std::optional<c10::IValue> value = values[*output.value];
    if (!value || !value->isTensor())
      return value;
    tensorOutputs.push_back(next - 1);
    std::string why;
    at::Tensor now = table.current(value->toTensor(), why);
    if (now.defined())
      return now;
    ops.problem(ImportProblem::UnsupportedOp, "",
                "the program returns a view that was written through another "
                "tensor, and the importer can't update it: " +
                    why);
    return std::nullopt;
  }
  std::vector<c10::IValue> children;
  for (const ExportTree &child : tree.children) {
    auto value = collect(child, next);
    if (!value)
      return std::nullopt;
    children.push_back(std::move(*value));
  }
  if (tree.kind == ExportTree::Dict) {
    c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
    for (auto [key, value] : llvm::zip_equal(tree.keys, children))
      dict.insert_or_assign(key, std::move(value));
    return dict;
  }
  return c10::ivalue::Tuple::create(std::move(children));
}

std::optional<c10::IValue> ExportRunner::run() {
  if (llvm::none_of(program.steps,
                    [](const ExportStep &step) { return step.isInPlace(); }))
    ops.promiseNoWrites();
  Range all{0, program.steps.size()};
  callModule(describeRoot(), all, [&] {
    runSteps(all, 0);
    for (const ExportInput &input : program.inputs)
      assignBuffers(input.value, "");
  });
  for (auto &[fqn, signature] : signatures)
    if (numCalls[fqn] != signature.calls.size())
      ops.problem(ImportProblem::Failed, "",
                  "the signatures are of another trace: calls of '" + fqn +
                      "' are " + llvm::Twine(signature.calls.size()) +
                      " there, and " + llvm::Twine(numCalls[fqn]) +
                      " in the model");
  size_t next = 0;
  return collect(program.outputTree, next);
}
