//===- Vmap.cpp - torch.vmap in exported programs -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Vmap.h"
#include "ExportOps.h"
#include "llvm/ADT/StringSwitch.h"
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/empty.h>

using namespace mlir;
using namespace mlir::tp;

static constexpr StringLiteral kPrefix = "torch._functorch.predispatch.";

namespace {
/// What an op does with dimensions that its tensors have in front of others.
enum class MapKind {
  /// Broadcasts them, as elementwise ops do.
  Broadcast,
  /// Only takes the tensor's type or device; the result isn't mapped.
  Make,
  /// Broadcasts the tensor to a shape without them.
  Expand,
  /// A lookup, which broadcasts them if only indices are mapped.
  Index,
  Unsupported
};
} // namespace

static MapKind getKind(const ExportStep &step) {
  StringRef target = step.target;
  if (step.isInPlace() || !target.consume_front("torch.ops."))
    return MapKind::Unsupported;
  auto [library, rest] = target.split('.');
  auto [name, overload] = rest.split('.');
  auto op = c10::Dispatcher::singleton().findSchema(c10::OperatorName(
      (library + "::" + name).str(),
      overload == "default" ? std::string() : overload.str()));
  if (!op)
    return MapKind::Unsupported;
  if (op->hasTag(at::Tag::pointwise))
    return MapKind::Broadcast;
  // Elementwise ops without this tag.
  return llvm::StringSwitch<MapKind>(target)
      .StartsWith("aten.to.", MapKind::Broadcast)
      .StartsWith("aten.__and__.", MapKind::Broadcast)
      .StartsWith("aten.__or__.", MapKind::Broadcast)
      .StartsWith("aten.__xor__.", MapKind::Broadcast)
      .StartsWith("aten.floor_divide.", MapKind::Broadcast)
      .Cases({"aten.alias.default", "aten._to_copy.default",
              "aten.detach.default", "aten.contiguous.default",
              "aten.zeros_like.default", "aten.ones_like.default",
              "aten.full_like.default"},
             MapKind::Broadcast)
      .Cases({"aten.new_zeros.default", "aten.new_ones.default",
              "aten.new_full.default"},
             MapKind::Make)
      .Case("aten.expand.default", MapKind::Expand)
      .Case("aten.index.Tensor", MapKind::Index)
      .Default(MapKind::Unsupported);
}

bool Vmap::concerns(const ExportStep &step) const {
  if (StringRef(step.target).starts_with(kPrefix))
    return true;
  return !mapped.empty() &&
         llvm::any_of(step.arguments, [&](const ExportArgument &argument) {
           for (size_t i = 0; i < argument.operands.size(); ++i)
             if (!getLevels(argument, i).empty())
               return true;
           return false;
         });
}

Vmap::Levels Vmap::getLevels(const ExportArgument &argument, size_t i) const {
  const ExportOperand &operand = argument.operands[i];
  return operand.value ? mapped.lookup(*operand.value) : Levels();
}

/// The result of an op that has one tensor as its result.
std::optional<at::Tensor> Vmap::call(StringRef target, const ExportStep &step,
                                     std::vector<c10::IValue> inputs) {
  ExportStep inner;
  inner.target = target;
  inner.place = step.place;
  for (auto [argument, input] :
       llvm::zip(nameOp(inner).schema->arguments(), inputs))
    inner.arguments.emplace_back().name = argument.name();
  TorchOp op = findOp(inner, inputs);
  auto results = ops.run(op, std::move(inputs));
  if (!results)
    return std::nullopt;
  return results->front().toTensor();
}

OpRunner::Results Vmap::add(const ExportStep &step,
                            llvm::ArrayRef<c10::IValue> inputs) {
  Levels levels = getLevels(step.arguments[0], 0);
  int64_t count = levels.size(), dim = inputs[1].toInt();
  auto result = call("torch.ops.aten.movedim.int", step,
                     {inputs[0], dim < 0 ? dim : count + dim, count});
  if (!result)
    return std::nullopt;
  levels.push_back(inputs[2].toInt());
  mapped[step.results.front().front()] = levels;
  return std::vector<c10::IValue>{*result};
}

OpRunner::Results Vmap::remove(const ExportStep &step,
                               llvm::ArrayRef<c10::IValue> inputs) {
  at::Tensor tensor = inputs[0].toTensor();
  Levels levels = getLevels(step.arguments[0], 0);
  int64_t outer = levels.size(), to = inputs[3].toInt();
  auto it = llvm::find(levels, inputs[1].toInt());
  std::optional<at::Tensor> result;
  if (it != levels.end()) {
    outer -= 1;
    result = call("torch.ops.aten.movedim.int", step,
                  {tensor, it - levels.begin(), to < 0 ? to : outer + to});
    levels.erase(it);
  } else if ((result = call("torch.ops.aten.unsqueeze.default", step,
                            {tensor, to < 0 ? to : outer + to}))) {
    auto sizes = result->sizes().vec();
    sizes[to < 0 ? result->dim() + to : outer + to] = inputs[2].toInt();
    result = call("torch.ops.aten.expand.default", step, {*result, sizes});
  }
  if (!result)
    return std::nullopt;
  if (!levels.empty())
    mapped[step.results.front().front()] = levels;
  return std::vector<c10::IValue>{*result};
}

/// Converts the two tensors of an elementwise op to the type that PyTorch
/// promotes them to: that of tensors without mapped dimensions, where a number
/// is weaker than a tensor of numbers. For ops of more tensors, PyTorch itself
/// counts these dimensions. False because of a problem.
bool Vmap::promote(const ExportStep &step, std::vector<c10::IValue> &inputs) {
  at::native::ResultTypeState logical = {}, mapped = {};
  unsigned numTensors = 0;
  for (auto [argument, input] : llvm::zip(step.arguments, inputs)) {
    if (!input.isTensor() || !input.toTensor().defined())
      continue;
    at::Tensor tensor = input.toTensor();
    ++numTensors;
    size_t numLevels = getLevels(argument, 0).size();
    mapped = at::native::update_result_type_state(tensor, mapped);
    logical = at::native::update_result_type_state(
        at::empty(tensor.sizes().slice(numLevels),
                  tensor.options().device(at::kMeta)),
        logical);
  }
  at::ScalarType type = at::native::result_type(logical);
  if (numTensors != 2 || type == at::native::result_type(mapped))
    return true;
  bool isKnown = true;
  for (c10::IValue &input : inputs) {
    // Booleans are weaker than any numbers.
    if (!input.isTensor() || !input.toTensor().defined() ||
        input.toTensor().scalar_type() == at::kBool)
      continue;
    auto result =
        call("torch.ops.aten.to.dtype", step, {input, type, false, false});
    if (result)
      input = *result;
    isKnown &= bool(result);
  }
  return isKnown;
}

/// Gives the tensors among the inputs, from `first` on, all the levels that any
/// of them has, with size 1 where a tensor lacks one, and dimensions of size 1
/// behind these up to `rank` and to the largest rank. The levels; none because
/// of a problem.
std::optional<Vmap::Levels> Vmap::align(const ExportStep &step, size_t first,
                                        int64_t rank,
                                        std::vector<c10::IValue> &inputs) {
  Levels all;
  auto forEachTensor = [&](auto f) {
    for (size_t i = first; i < inputs.size(); ++i) {
      const ExportArgument &argument = step.arguments[i];
      if (inputs[i].isTensor()) {
        f(inputs[i], getLevels(argument, 0));
      } else if (argument.elementType && inputs[i].isList()) {
        auto list = inputs[i].toList();
        for (size_t j = 0; j < list.size(); ++j) {
          c10::IValue element = list.get(j);
          if (!element.isTensor())
            continue;
          f(element, getLevels(argument, j));
          list.set(j, element);
        }
      }
    }
  };
  forEachTensor([&](c10::IValue &value, const Levels &levels) {
    all.append(levels);
    rank = std::max<int64_t>(rank, value.toTensor().dim() - levels.size());
  });
  llvm::sort(all);
  all.erase(llvm::unique(all), all.end());
  bool isKnown = true;
  forEachTensor([&](c10::IValue &value, const Levels &levels) {
    if (levels.empty() || !isKnown)
      return;
    at::Tensor tensor = value.toTensor();
    std::vector<int64_t> sizes;
    size_t next = 0;
    for (int64_t level : all)
      sizes.push_back(llvm::is_contained(levels, level) ? tensor.size(next++)
                                                        : 1);
    sizes.resize(all.size() + rank - (tensor.dim() - levels.size()), 1);
    for (; int64_t(next) < tensor.dim(); ++next)
      sizes.push_back(tensor.size(next));
    if (tensor.sizes() == at::IntArrayRef(sizes))
      return;
    auto result = call("torch.ops.aten.reshape.default", step, {tensor, sizes});
    if (result)
      value = *result;
    isKnown &= bool(result);
  });
  return isKnown ? std::optional(all) : std::nullopt;
}

OpRunner::Results Vmap::run(const ExportStep &step,
                            std::vector<c10::IValue> inputs) {
  StringRef target = step.target;
  if (target.consume_front(kPrefix)) {
    // The others only open and close levels, which have numbers.
    bool isAdd = target == "_add_batch_dim";
    if (!isAdd && target != "_remove_batch_dim")
      return std::vector<c10::IValue>(step.results.size());
    if (inputs.size() == (isAdd ? 3 : 4) && inputs[0].isTensor() &&
        llvm::all_of(llvm::drop_begin(inputs),
                     [](const c10::IValue &v) { return v.isInt(); }) &&
        step.results.size() == 1 && step.results[0].size() == 1)
      return isAdd ? add(step, inputs) : remove(step, inputs);
    throw ExportError("'" + llvm::Twine(step.target) +
                      "' is called with other arguments than PyTorch's");
  }
  MapKind kind = getKind(step);
  bool isIndex = kind == MapKind::Index, isExpand = kind == MapKind::Expand;
  // A mapped table, dimensions left out, or arguments that don't fit.
  if ((isIndex || isExpand) && (inputs.size() < 2 || !inputs[0].isTensor()))
    kind = MapKind::Unsupported;
  else if (isIndex && (!getLevels(step.arguments[0], 0).empty() ||
                       !inputs[1].isTensorList()))
    kind = MapKind::Unsupported;
  else if (isExpand && !inputs[1].isIntList())
    kind = MapKind::Unsupported;
  if (kind == MapKind::Unsupported) {
    ops.problem(ImportProblem::UnsupportedOp, step.place,
                "unsupported op '" + step.target + "' under torch.vmap");
    return std::nullopt;
  }
  if (kind == MapKind::Broadcast && !promote(step, inputs))
    return std::nullopt;
  Levels levels;
  if (kind != MapKind::Make) {
    std::vector<int64_t> sizes;
    if (isExpand)
      sizes = inputs[1].toIntVector();
    auto aligned = align(step, isIndex ? 1 : 0, sizes.size(), inputs);
    if (!aligned)
      return std::nullopt;
    levels = *aligned;
    if (isExpand) {
      sizes.insert(sizes.begin(), levels.size(), -1); // as they are
      inputs[1] = sizes;
    }
  }
  TorchOp op = findOp(step, inputs);
  auto results = ops.run(op, std::move(inputs));
  if (!levels.empty())
    for (const auto &ids : step.results)
      for (ValueId id : ids)
        mapped[id] = levels;
  return results;
}
