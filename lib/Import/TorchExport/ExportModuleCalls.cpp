//===- ExportModuleCalls.cpp - calls of modules as nn.module ops ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExportOps.h"
#include "ExportRunner.h"
#include "tp/Dialect/NN/Traced.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::tp;

/// The values from outside that the ops read, in the order of their first use.
llvm::SetVector<ValueId> ExportRunner::getReads(Range range) const {
  llvm::SetVector<ValueId> reads;
  for (size_t i = range.begin; i < range.end; ++i)
    for (const ExportArgument &argument : program.steps[i].arguments)
      for (const ExportOperand &operand : argument.operands)
        if (operand.value && !isDefinedIn(*operand.value, range))
          reads.insert(*operand.value);
  return reads;
}

bool ExportRunner::isDefinedIn(ValueId id, Range range) const {
  return definitions[id] >= range.begin && definitions[id] < range.end;
}

bool ExportRunner::isTensor(ValueId id) const {
  return values[id] && values[id]->isTensor() &&
         values[id]->toTensor().defined();
}

/// Whether a value that a module reads enters it, as results of ops do:
/// parameters, constants and numbers don't.
bool ExportRunner::isOperand(ValueId id) {
  if (!isTensor(id))
    return false;
  at::Tensor tensor = values[id]->toTensor();
  TrackedTensor *tracked = tensor.is_meta() ? table.find(tensor) : nullptr;
  return tracked && !tracked->isParameter();
}

/// Adds the values that the ops read, but that aren't arguments of the call.
void ExportRunner::addCaptured(Range range, Call &call, int64_t position) {
  for (ValueId id : getReads(range)) {
    if (!isOperand(id) ||
        llvm::any_of(call.operands,
                     [&](const Operand &operand) { return operand.id == id; }))
      continue;
    call.operands.push_back(
        {id, "captured." + program.values[id].name, position++});
  }
}

/// The arguments as tp_trace.py has written them: the call begins with aliases
/// of its tensors.
void ExportRunner::readTracedSignature(const ForwardSignature &signature,
                                       Range range, Call &call) {
  unsigned number = numCalls[call.frame.fqn]++;
  if (number >= signature.calls.size())
    return; // reported at the end
  llvm::ArrayRef<unsigned> arguments = signature.calls[number];
  call.numAliases = arguments.size();
  for (unsigned i = 0; i < arguments.size(); ++i) {
    const ExportStep *step =
        range.begin + i < range.end ? &program.steps[range.begin + i] : nullptr;
    // One of a module in this one aliases what doesn't exist yet.
    if (!step || !isAlias(*step) ||
        !isTensor(*step->arguments[0].operands[0].value)) {
      call.operands.clear();
      call.numAliases = 0;
      return ops.problem(ImportProblem::Failed, "",
                         "the signatures don't fit '" + call.frame.fqn +
                             "': it wasn't exported by tp_trace.py, which "
                             "keeps the order of a module's arguments");
    }
    unsigned position = arguments[i];
    std::string name = signature.arguments[position];
    if (llvm::count(arguments, position) > 1)
      name += "." + std::to_string(i);
    call.operands.push_back(
        {*step->arguments[0].operands[0].value, name, position});
  }
  addCaptured(range, call, signature.arguments.size());
}

/// The arguments as the program has them, if it was exported with
/// preserve_module_call_signature. False if not, or if they aren't values of
/// the graph.
bool ExportRunner::readSignature(Range range, Call &call) {
  auto found = program.signatures.find(call.frame.getCallName());
  if (found == program.signatures.end())
    return false;
  const ExportSignature &signature = found->second;
  int64_t numArguments = 0;
  for (const auto &[name, position, id] : signature.arguments) {
    numArguments = std::max(numArguments, position + 1);
    if (!id)
      continue;
    if (!values[*id] || isDefinedIn(*id, range)) {
      call.operands.clear();
      return false;
    }
    if (isTensor(*id))
      call.operands.push_back({*id, name, position});
  }
  for (const ExportOperand &result : signature.results)
    if (result.value && isDefinedIn(*result.value, range))
      call.results.push_back(*result.value);
  addCaptured(range, call, numArguments);
  return true;
}

ExportRunner::Call ExportRunner::describeCall(Range range, unsigned depth) {
  Call call;
  call.frame = (*program.steps[range.begin].modules)[depth];
  auto traced = signatures.find(call.frame.fqn);
  if (traced != signatures.end()) {
    readTracedSignature(traced->second, range, call);
    return call;
  }
  if (readSignature(range, call))
    return call;
  for (ValueId id : getReads(range))
    if (isOperand(id))
      call.operands.push_back(
          {id, program.values[id].name, int64_t(call.operands.size())});
  call.isTraced = call.operands.size() > 1;
  return call;
}

ExportRunner::Call ExportRunner::describeRoot() {
  Call call;
  call.isRoot = true;
  ++numCalls[""];
  call.frame.className = program.rootClass;
  for (auto [input, argument] :
       llvm::zip(llvm::make_filter_range(
                     program.inputs,
                     [](const ExportInput &i) { return i.isArgument(); }),
                 program.signature.arguments))
    if (input.kind == ExportInput::Tensor && isTensor(input.value))
      call.operands.push_back({input.value, argument.name, argument.position});
  for (const ExportOperand &output : program.outputs)
    if (output.value && definitions[*output.value] < program.steps.size())
      call.results.push_back(*output.value);
  return call;
}

/// Operands enter an nn.module, and results leave it. Inside and outside, they
/// are different meta tensors that share a storage.
void ExportRunner::callModule(const Call &call, Range range,
                              llvm::function_ref<void()> runBody) {
  Region region;
  Block &body = region.emplaceBlock();
  llvm::SmallVector<Value> operands;
  llvm::SmallVector<StringRef> names;
  llvm::SmallVector<int64_t> positions;
  llvm::SmallVector<c10::IValue> entering;
  llvm::SmallVector<std::pair<at::Tensor, Value>> constants;
  for (const Operand &operand : call.operands) {
    std::string why;
    at::Tensor tensor = table.current(values[operand.id]->toTensor(), why);
    c10::IValue &inner = entering.emplace_back(
        tensor.defined() ? tensor : values[operand.id]->toTensor());
    if (!tensor.defined())
      continue; // what reads it reports it
    TrackedTensor *tracked = tensor.is_meta() ? table.find(tensor) : nullptr;
    if (tensor.is_meta()
            ? !tracked || tracked->poisoned
            : tensor.dim() == 0 ||
                  !convertType(b.getContext(), tensor.scalar_type()))
      continue;
    Value value = tracked ? table.valueOf(tensor) : table.materialize(tensor);
    operands.push_back(value);
    names.push_back(operand.name);
    positions.push_back(operand.position);
    Value argument = body.addArgument(value.getType(), b.getLoc());
    if (!tracked) {
      constants.push_back({tensor, argument});
      continue;
    }
    inner = table.makeAlias(tensor, argument);
  }

  Location outer = b.getLoc();
  ops.enterModule(call.frame.fqn, &body);
  for (auto &[tensor, argument] : constants)
    table.setLocal(tensor, argument);
  OpBuilder::InsertPoint after = b.saveInsertionPoint();
  b.setInsertionPointToEnd(&body);
  llvm::DenseMap<ValueId, c10::IValue> outside;
  for (auto [i, operand] : llvm::enumerate(call.operands)) {
    if (i < call.numAliases) {
      const ExportStep &alias = program.steps[range.begin + i];
      values[alias.results.front().front()] = entering[i];
    }
    if (outside.try_emplace(operand.id, *values[operand.id]).second)
      values[operand.id] = entering[i];
  }
  runBody();

  llvm::SetVector<ValueId> results(call.results.begin(), call.results.end());
  for (size_t i = range.begin; i < range.end; ++i)
    for (auto &ids : program.steps[i].results)
      for (ValueId id : ids)
        if (!call.isRoot && lastReads[id] >= range.end)
          results.insert(id);
  llvm::SmallVector<Value> yielded;
  llvm::SmallVector<ValueId> leavingIds;
  llvm::SmallVector<at::Tensor> leaving;
  for (ValueId id : results) {
    if (!isTensor(id))
      continue;
    std::string why;
    at::Tensor now = table.current(values[id]->toTensor(), why);
    if (!now.defined())
      continue; // what reads it reports it
    values[id] = now;
    if (!now.is_meta())
      continue;
    if (Value value = table.valueOf(now)) {
      yielded.push_back(value);
      leavingIds.push_back(id);
      leaving.push_back(now);
    }
  }
  table.appendStorages(leaving, yielded);
  nn::YieldOp::create(b, outer, yielded);
  ops.leaveModule();
  b.restoreInsertionPoint(after);
  b.setLoc(outer);

  auto op = nn::ModuleOp::create(b, outer, call.frame.fqn, call.frame.className,
                                 operands, names, positions,
                                 ValueRange(yielded).getTypes());
  if (call.isTraced)
    op->setAttr(nn::kTracedAttr, b.getUnitAttr());
  op.getBody().takeBody(region);
  table.close(op, leaving.size());
  for (auto &[id, value] : outside)
    values[id] = value;
  for (auto [id, tensor, result] :
       llvm::zip_first(leavingIds, leaving, op.getResults()))
    values[id] = table.makeAlias(tensor, result);
}
