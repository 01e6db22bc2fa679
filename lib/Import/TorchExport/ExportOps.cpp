//===- ExportOps.cpp - the ops of an exported program ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExportOps.h"
#include "CustomOps.h"
#include "Import/Aten/TorchSchema.h"
#include "llvm/ADT/StringSwitch.h"
#include <ATen/ScalarOps.h>
#include <torch/csrc/jit/runtime/operator.h>

using namespace mlir;
using namespace mlir::tp;
namespace jit = torch::jit;

static constexpr StringLiteral kOps = "torch.ops.";

bool mlir::tp::isAssertion(const ExportStep &step) {
  return llvm::StringSwitch<bool>(step.target)
      .Cases({"torch.ops.aten._assert_tensor_metadata.default",
              "torch.ops.aten._assert_async.default",
              "torch.ops.aten._assert_async.msg"},
             true)
      .Default(false);
}

bool mlir::tp::isAlias(const ExportStep &step) {
  return step.target == "torch.ops.aten.alias.default" && step.mapsTensor();
}

/// TorchScript's op for one of Python on numbers, or an empty name.
static StringRef translateNumberOp(StringRef target) {
  return llvm::StringSwitch<StringRef>(target)
      .Case("_operator.add", "aten::add")
      .Case("_operator.sub", "aten::sub")
      .Case("_operator.mul", "aten::mul")
      .Case("_operator.floordiv", "aten::floordiv")
      .Case("_operator.truediv", "aten::div")
      .Case("_operator.mod", "aten::remainder")
      .Case("_operator.pow", "aten::pow")
      .Case("_operator.neg", "aten::neg")
      .Case("_operator.eq", "aten::eq")
      .Case("_operator.ne", "aten::ne")
      .Case("_operator.lt", "aten::lt")
      .Case("_operator.le", "aten::le")
      .Case("_operator.gt", "aten::gt")
      .Case("_operator.ge", "aten::ge")
      .Case("_operator.and_", "aten::__and__")
      .Case("_operator.or_", "aten::__or__")
      .Case("_operator.lshift", "aten::__lshift__")
      .Case("_operator.rshift", "aten::__rshift__")
      .Case("torch.sym_not", "aten::__not__")
      .Case("torch.sym_max", "prim::max")
      .Case("torch.sym_min", "prim::min")
      .Case("torch.sym_float", "aten::Float")
      .Case("torch.sym_int", "aten::Int")
      .Case("math.trunc", "aten::Int")
      .Default("");
}

/// The overload of a number op for these inputs.
static std::shared_ptr<jit::Operator>
findNumberOp(StringRef name, llvm::ArrayRef<c10::IValue> inputs) {
  std::shared_ptr<jit::Operator> best;
  for (const auto &op :
       jit::getAllOperatorsFor(c10::Symbol::fromQualString(name.str()))) {
    auto &arguments = op->schema().arguments();
    if (arguments.size() != inputs.size() ||
        !llvm::all_of(llvm::zip(arguments, inputs), [](auto pair) {
          auto &[argument, input] = pair;
          return input.type()->isSubtypeOf(*argument.type());
        }))
      continue;
    // A power of integers is one, where TorchScript also has a real one.
    if (!best || op->schema().overload_name() == "int_to_int")
      best = op;
  }
  return best;
}

/// `value` as an argument of this type. PyTorch's Python frontend converts
/// numbers in the same way.
static c10::IValue convertTo(const c10::IValue &value,
                             const c10::TypePtr &type) {
  if (auto optional = type->cast<c10::OptionalType>())
    return value.isNone() ? value
                          : convertTo(value, optional->getElementType());
  if (type->kind() == c10::TypeKind::FloatType && value.isInt())
    return double(value.toInt());
  if (type->kind() == c10::TypeKind::TensorType && value.isScalar()) {
    at::Tensor number = c10::scalar_to_tensor(value.toScalar());
    number.unsafeGetTensorImpl()->set_wrapped_number(true);
    return number;
  }
  auto list = type->cast<c10::ListType>();
  if (!list || (!value.isList() && !value.isInt() && !value.isDouble()))
    return value;
  c10::impl::GenericList result(list->getElementType());
  if (!value.isList()) {
    result.push_back(convertTo(value, list->getElementType()));
    return result;
  }
  for (const c10::IValue &element : value.toListRef())
    result.push_back(convertTo(element, list->getElementType()));
  return result;
}

/// The inputs in the order of the schema.
static std::vector<c10::IValue>
orderInputs(const ExportStep &step, const c10::FunctionSchema &schema,
            llvm::ArrayRef<c10::IValue> inputs) {
  std::vector<c10::IValue> ordered;
  for (const c10::Argument &argument : schema.arguments()) {
    auto it = llvm::find_if(step.arguments, [&](const ExportArgument &given) {
      return given.name == argument.name();
    });
    if (it == step.arguments.end()) {
      if (!argument.default_value())
        throw ExportError("'" + llvm::Twine(step.target) +
                          "' is called without '" + argument.name() + "'");
      ordered.push_back(*argument.default_value());
      continue;
    }
    c10::IValue value =
        convertTo(inputs[it - step.arguments.begin()], argument.type());
    bool isNumber = argument.type()->kind() == c10::TypeKind::NumberType;
    if (isNumber ? !value.isScalar()
                 : !value.type()->isSubtypeOf(*argument.type()))
      throw ExportError("'" + llvm::Twine(step.target) + "' is called with '" +
                        argument.name() + "' of type " +
                        value.type()->annotation_str() + ", expected " +
                        argument.type()->annotation_str());
    ordered.push_back(std::move(value));
  }
  for (const ExportArgument &given : step.arguments)
    if (!schema.argumentIndexWithName(given.name))
      throw ExportError("'" + llvm::Twine(step.target) + "' is called with '" +
                        given.name + "', which isn't one of its arguments");
  return ordered;
}

/// PyTorch's op for a name such as "torch.ops.aten.add.Tensor"; null if there
/// is none. `qualified` becomes "aten::add".
static std::shared_ptr<jit::Operator> findRegistered(StringRef target,
                                                     std::string &qualified) {
  if (!target.consume_front(kOps))
    return nullptr;
  auto [library, rest] = target.split('.');
  auto [name, overload] = rest.split('.');
  qualified = (library + "::" + name).str();
  c10::OperatorName key(qualified, overload == "default" ? "" : overload.str());
  std::shared_ptr<jit::Operator> found = jit::findOperatorFor(key);
  if (found || !declareCustomOps(library))
    return found;
  return jit::findOperatorFor(key);
}

TorchOp mlir::tp::nameOp(const ExportStep &step) {
  TorchOp result;
  result.name = step.target;
  result.place = step.place;
  if (auto op = findRegistered(step.target, result.name))
    result.schema = &op->schema();
  return result;
}

TorchOp mlir::tp::findOp(const ExportStep &step,
                         std::vector<c10::IValue> &inputs) {
  TorchOp result = nameOp(step);
  std::shared_ptr<jit::Operator> op = findRegistered(step.target, result.name);
  if (op)
    inputs = orderInputs(step, op->schema(), inputs);
  else if (StringRef name = translateNumberOp(step.target); !name.empty())
    op = findNumberOp(name, inputs);
  if (!op)
    return result;
  result.name = op->schema().name();
  result.schema = &op->schema();
  result.isRandom = isRandom(op->schema(), inputs);
  result.execute = [op](c10::Stack &stack) { op->getOperation()(stack); };
  return result;
}
