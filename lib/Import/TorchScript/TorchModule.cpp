//===- TorchModule.cpp - a loaded TorchScript module to MLIR --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchModule.h"

#include "Import/Aten/ModelBuilder.h"
#include "TorchInterpreter.h"
#include <ATen/core/grad_mode.h>

using namespace mlir;
using namespace mlir::tp;
namespace jit = torch::jit;

/// The arguments of forward: meta tensors for the inputs, and defaults.
static llvm::Expected<std::vector<c10::IValue>>
makeArguments(ModelBuilder &builder, llvm::ArrayRef<c10::Argument> arguments,
              llvm::ArrayRef<const InputSpec *> inputs) {
  std::vector<c10::IValue> values;
  for (auto [argument, input] : llvm::zip_equal(arguments, inputs)) {
    if (!input) {
      values.push_back(*argument.default_value());
      continue;
    }
    c10::TypePtr type = argument.type();
    if (auto optional = type->cast<c10::OptionalType>())
      type = optional->getElementType();
    if (type->kind() != c10::TypeKind::TensorType)
      return builder.error("forward's '" + argument.name() + "' is of type " +
                           argument.type()->annotation_str() +
                           ", expected a tensor as an input");
    values.push_back(builder.addInput(input->name, input->type));
  }
  return values;
}

llvm::Expected<ImportedModel> mlir::tp::importTorchModule(
    MLIRContext *context, const jit::Module &root, llvm::StringRef path,
    llvm::ArrayRef<InputSpec> inputs, llvm::raw_ostream &notes,
    const ForwardSignatures &signatures) {
  ModelBuilder builder(context, path, notes);
  auto forward = root.find_method("forward");
  if (!forward)
    return builder.error("the module has no method 'forward'");
  auto arguments =
      llvm::ArrayRef(forward->function().getSchema().arguments()).drop_front();
  llvm::SmallVector<ForwardArgument> names;
  for (const c10::Argument &argument : arguments)
    names.push_back({argument.name(), argument.default_value().has_value()});
  auto matched = builder.matchInputs(names, inputs);
  if (!matched)
    return matched.takeError();

  at::NoGradGuard noGrad;
  auto values = makeArguments(builder, arguments, *matched);
  if (!values)
    return values.takeError();
  TorchInterpreter interpreter(root, builder.b, builder.table, builder.ops,
                               signatures);
  return builder.finish(interpreter.run(std::move(*values)));
}
